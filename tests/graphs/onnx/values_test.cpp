#include <doctest/doctest.h>
#include <fmt/format.h>
#include <onnx/defs/parser.h>

#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "ftax/types.hpp"
#include "graphs/onnx/import_onnx.hpp"

// Operators against ONNX Runtime, which runs them: the values that shapes are computed from, types and shapes.

using namespace ftax;

namespace {

/// "f32[2,3]" of the result y of operators in ONNX's text format; "?" for what is not known.
std::string type_of_result(const std::string& opset, const std::string& x, const std::string& operators) {
    const std::string text =
        fmt::format("<ir_version: 8, opset_import: [\"\" : {}]> g (float[{}] x) => (float y) {{{}}}", opset, x,
                    std::regex_replace(operators, std::regex(";"), "\n"));
    ::onnx::ModelProto model;
    ::onnx::OnnxParser parser(text.c_str());
    const auto status = parser.Parse(model);
    REQUIRE_MESSAGE(status.IsOK(), status.ErrorMessage());
    model.mutable_graph()->mutable_output(0)->clear_type();
    const Graph graph = import_onnx(model.SerializeAsString(), "test.onnx", {});
    const Tensor& y = graph.tensors[graph.outputs.at(0)];
    std::string shape;
    for (const Expression dim : y.shape) {
        const auto size = graph.expressions.constant_value(dim);
        shape += (shape.empty() ? "" : ",") + (size ? std::to_string(*size) : "?");
    }
    return fmt::format("{}[{}]", name_of(y.dtype), y.known_shape ? shape : "?");
}

/// Lines of a file of tests/oracle by their columns.
std::vector<std::vector<std::string>> recorded(const std::string& name) {
    std::ifstream file(FTAX_SOURCE_DIR "/tests/oracle/" + name);
    std::vector<std::vector<std::string>> lines;
    for (std::string line; std::getline(file, line);) {
        std::istringstream columns(line);
        lines.emplace_back();
        for (std::string column; std::getline(columns, column, '\t');) lines.back().push_back(column);
    }
    return lines;
}

}  // namespace

TEST_CASE("700 random computations of a shape have the values that ONNX Runtime computes") {
    const auto lines = recorded("onnx_values.tsv");  // onnx_values.py beside it writes it
    CHECK(lines.size() == 700);
    for (const auto& line : lines)
        CHECK_MESSAGE(type_of_result("17", "1", line[0]) == fmt::format("f32[{}]", line[1]), line[0]);
}

TEST_CASE("700 random operators have the types and shapes that ONNX Runtime computes") {
    const auto lines = recorded("onnx_shapes.tsv");  // onnx_shapes.py beside it writes it
    CHECK(lines.size() == 700);
    for (const auto& line : lines)
        CHECK_MESSAGE(type_of_result(line[0], line[1], line[2]) == line[3], fmt::format("x[{}]: {}", line[1], line[2]));
}
