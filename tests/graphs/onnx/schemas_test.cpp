#include <doctest/doctest.h>
#include <onnx/defs/schema.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "graphs/onnx/node.hpp"

using namespace ftax::onnx_import;

// ONNX's schemas, as the installed package has them: a newer package brings the operators that ftax lacks to light.
TEST_CASE("every operator of ONNX is known and needs as many inputs as its schema says") {
    constexpr int oldest_opset = 7;
    // Control flow and functions of a sequence have graphs inside, which no row describes.
    const std::set<std::string> with_bodies{"If", "Loop", "Scan", "SequenceMap"};
    // Read more liberally than ONNX has it: exporters leave these inputs out.
    const std::set<std::string> lenient{"OptionalGetElement", "OptionalHasElement", "PRelu", "Reshape"};
    // Training and text are no inference on a GPU: without a rule they are `custom`.
    const std::set<std::string> no_inference{
        "NegativeLogLikelihoodLoss", "RegexFullMatch", "SoftmaxCrossEntropyLoss", "StringConcat",
        "StringNormalizer",          "StringSplit",    "TfIdfVectorizer"};
    std::map<std::string, std::map<int, int>> fewest_inputs;  // operator → since version → inputs
    for (const auto& schema : onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
        if (schema.domain().empty()) fewest_inputs[schema.Name()][schema.SinceVersion()] = schema.min_input();
    }
    CHECK(fewest_inputs.size() > 150);
    for (const auto& schema : fewest_inputs) {
        const auto& name = schema.first;
        const auto& versions = schema.second;
        CAPTURE(name);
        if (with_bodies.contains(name)) continue;
        int fewest = versions.rbegin()->second;
        for (auto version = versions.begin(); std::next(version) != versions.end(); ++version) {
            if (std::next(version)->first > oldest_opset) fewest = std::min(fewest, version->second);
        }
        const OpRow* row = find_row("", name);
        if (no_inference.contains(name)) {
            CHECK(row == nullptr);
            continue;
        }
        REQUIRE(row != nullptr);
        if (lenient.contains(name)) {
            CHECK(row->required_inputs < fewest);
        } else {
            CHECK(row->required_inputs == fewest);
        }
    }
}
