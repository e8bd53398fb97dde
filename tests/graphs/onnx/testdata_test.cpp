#include "tests/graphs/onnx/testdata.hpp"

#include <doctest/doctest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "ftax/error.hpp"
#include "graphs/ir/operands.hpp"
#include "graphs/loading.hpp"

// Oracle: the models of libonnx-testdata with the inputs and outputs that ONNX's reference implementation recorded.

using namespace ftax;
using namespace ftax::test;

namespace {

/// Numbers of the outputs that are tensors: sequences have no one shape to compare. Empty for models of training and of
/// text, whose operators have no rule.
std::vector<std::size_t> tensor_outputs(const std::string& bytes) {
    static const std::set<std::string> without_a_rule{"Adagrad",
                                                      "Adam",
                                                      "Gradient",
                                                      "Momentum",
                                                      "NegativeLogLikelihoodLoss",
                                                      "SoftmaxCrossEntropyLoss",
                                                      "StringNormalizer",
                                                      "TfIdfVectorizer"};
    ::onnx::ModelProto model;
    REQUIRE(model.ParseFromString(bytes));
    for (const auto& node : model.graph().node()) {
        if (without_a_rule.contains(node.op_type())) return {};
    }
    std::vector<std::size_t> result;
    for (int i = 0; i < model.graph().output_size(); ++i) {
        if (!model.graph().output(i).type().has_tensor_type()) return {};
        result.push_back(static_cast<std::size_t>(i));
    }
    return result;
}

}  // namespace

TEST_CASE(
    "every model of libonnx-testdata is imported with the operands that its operators need, or refused with a "
    "message") {
    const auto files = model_files();
    CHECK(files.size() >= 1072);
    std::size_t imported = 0;
    for (const auto& path : files) {
        try {
            const Graph graph = import_onnx(read_bytes(path), path.string(), {});
            imported += !graph.outputs.empty();
            CHECK_NOTHROW(check_operands(graph));
        } catch (const Error& error) {
            MESSAGE(error.what());
        }
    }
    MESSAGE(imported, " of ", files.size(), " models imported");
    CHECK(imported >= files.size() * 99 / 100);
}

TEST_CASE("inferred output shapes equal those recorded in libonnx-testdata where no value decides them") {
    // Their sizes depend on the values of a tensor; Scan of operator set 8 is not inlined.
    constexpr std::array undecided{"test_nonmaxsuppression_", "test_unique_", "test_scan_sum"};
    std::size_t compared = 0;
    for (const auto& path : model_files()) {
        const auto folder = path.parent_path() / "test_data_set_0";
        std::vector<std::vector<std::int64_t>> expected;
        for (const std::size_t i : tensor_outputs(read_bytes(path))) {
            ::onnx::TensorProto output;
            REQUIRE(output.ParseFromString(read_bytes(folder / ("output_" + std::to_string(i) + ".pb"))));
            expected.emplace_back(output.dims().begin(), output.dims().end());
        }
        if (expected.empty()) continue;
        compared += expected.size();
        std::string wrong;
        try {
            const Graph graph = import_onnx(without_answers(path), path.string(), {});
            for (std::size_t i = 0; i < expected.size(); ++i) {
                const Tensor* tensor = i < graph.outputs.size() ? &graph.tensors[graph.outputs[i]] : nullptr;
                std::vector<std::int64_t> shape;
                bool known = tensor && tensor->known_shape;
                for (std::size_t d = 0; known && d < tensor->shape.size(); ++d) {
                    const auto value = graph.expressions.constant_value(tensor->shape[d]);
                    known = value.has_value();
                    shape.push_back(value.value_or(0));
                }
                if (!known || shape != expected[i]) wrong += known ? " differs" : " unknown";
            }
        } catch (const Error& error) {
            wrong = error.what();
        }
        const std::string name = path.parent_path().filename().string();
        const bool is_undecided = std::any_of(undecided.begin(), undecided.end(),
                                              [&](const char* prefix) { return name.starts_with(prefix); });
        if (is_undecided) {
            CHECK_MESSAGE((!wrong.empty() && wrong.find("differs") == std::string::npos), name);
        } else {
            CHECK_MESSAGE(wrong.empty(), name, ": ", wrong);
        }
    }
    CHECK(compared >= 1000);
}
