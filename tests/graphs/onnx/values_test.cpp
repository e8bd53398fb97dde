#include <doctest/doctest.h>
#include <fmt/format.h>
#include <onnx/defs/parser.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "ftax/types.hpp"
#include "graphs/loading.hpp"

// Operators against ONNX Runtime, which runs them: the values that shapes are computed from, types and shapes.

using namespace ftax;

namespace {

/// Operators in ONNX's text format, from an input x to a result y.
Graph imported(const std::string& opset, const std::string& x, const std::string& operators,
               const ImportOptions& options = {}) {
    const std::string text =
        fmt::format("<ir_version: 8, opset_import: [\"\" : {}]> g (float[{}] x) => (float y) {{{}}}", opset, x,
                    std::regex_replace(operators, std::regex(";"), "\n"));
    ::onnx::ModelProto model;
    ::onnx::OnnxParser parser(text.c_str());
    const auto status = parser.Parse(model);
    REQUIRE_MESSAGE(status.IsOK(), status.ErrorMessage());
    model.mutable_graph()->mutable_output(0)->clear_type();
    return import_onnx(model.SerializeAsString(), "test.onnx", options);
}

/// "f32[2,3]" of the result y; "?" for what is not known.
std::string type_of_result(const std::string& opset, const std::string& x, const std::string& operators) {
    const Graph graph = imported(opset, x, operators);
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

TEST_CASE("850 random operators have the types and shapes that ONNX Runtime computes") {
    const auto lines = recorded("onnx_shapes.tsv");  // onnx_shapes.py beside it writes it
    CHECK(lines.size() == 850);
    for (const auto& line : lines)
        CHECK_MESSAGE(type_of_result(line[0], line[1], line[2]) == line[3], fmt::format("x[{}]: {}", line[1], line[2]));
}

TEST_CASE("a softmax before opset 13 is over what follows its axis, 1 by default, later over one axis, the last") {
    for (const char* op : {"Softmax", "LogSoftmax"}) {
        const auto axis = [&](const char* opset, const char* x, const char* attribute) {
            const Graph graph = imported(opset, x, fmt::format("y = {} {}(x)", op, attribute));
            return graph.ops.back().integer("axis", -9);
        };
        for (const char* opset : {"1", "11", "12"}) CHECK(axis(opset, "2,3,4", "") == 1);
        for (const char* opset : {"13", "17"}) CHECK(axis(opset, "2,3,4", "") == 2);
        for (const char* opset : {"11", "13"}) {
            CHECK(axis(opset, "5", "") == 0);
            CHECK(axis(opset, "2,3,4", "<axis = 0> ") == 0);
            CHECK(axis(opset, "2,3,4", "<axis = -2> ") == 1);
        }
    }
}

TEST_CASE("an einsum permutes the operands whose letters are in another order than a product's, and no others") {
    const std::tuple<const char*, const char*, const char*, int> products[] = {
        {"ij,jk->ik", "2,3", "3,4", 0},
        {"ji,jk->ik", "3,2", "3,4", 1},
        {"bij,bjk->bik", "2,3,4", "2,4,5", 0},
        {"bji,bjk->bik", "2,4,3", "2,4,5", 1},
        {"ibj,bjk->bik", "3,2,4", "2,4,5", 1},
        {"ibj,jbk->bik", "3,2,4", "4,2,5", 2},
        {"bhij,bhjd->bhid", "2,3,4,5", "2,3,5,6", 0},
        {"bihj,bhjd->bhid", "2,4,3,5", "2,3,5,6", 1}};
    for (const auto& [equation, x, w, permuted] : products) {
        const Graph graph =
            imported("17", x,
                     fmt::format("c = Constant <value = int64[{0}] {{{1}}}> (); w = ConstantOfShape (c); "
                                 "y = Einsum <equation = \"{2}\"> (x, w)",
                                 std::count(w, w + std::char_traits<char>::length(w), ',') + 1, w, equation));
        const auto count = [&](OpKind kind) { return std::ranges::count(graph.ops, kind, &Op::kind); };
        const std::string of = equation;
        CHECK_MESSAGE(count(OpKind::transpose) == permuted, of);
        CHECK_MESSAGE(count(OpKind::matmul) + count(OpKind::linear) == 1, of);
    }
}

TEST_CASE("a Scan reads along its input axes and stacks along its output axes") {
    const auto scanned = [](const char* axes) {
        return type_of_result(
            "17", "4,5",
            fmt::format("y = Scan <num_scan_inputs = 1{}, body = b (float[N] s) => (float[N] r) {{ r = Relu(s) }}> (x)",
                        axes));
    };
    CHECK(scanned("") == "f32[4,5]");
    CHECK(scanned(", scan_output_axes = [1]") == "f32[5,4]");
    CHECK(scanned(", scan_output_axes = [-1]") == "f32[5,4]");
    CHECK(scanned(", scan_input_axes = [1]") == "f32[5,4]");
    CHECK(scanned(", scan_input_axes = [1], scan_output_axes = [1]") == "f32[4,5]");
}

TEST_CASE("every member of a sequence is an output, and a size that --shapes overrides is said to be") {
    CHECK(imported("17", "2,3", "y = SequenceConstruct (x, x, x)").outputs.size() == 3);
    ImportOptions options;
    options.input_shapes = {{.input = "x", .dims = {"8", "3"}, .dtype = {}}};
    const Graph graph = imported("17", "2,3", "y = Relu (x)", options);
    REQUIRE(graph.warnings.size() == 1);
    CHECK(graph.warnings[0] == "input 'x' is declared 2 along axis 0; 8 is used");
}

TEST_CASE("comparisons of all pairs of whole and broken numbers are those of C++") {
    const std::pair<const char*, bool (*)(double, double)> functions[] = {
        {"Equal", [](double a, double b) { return a == b; }},
        {"Less", [](double a, double b) { return a < b; }},
        {"Greater", [](double a, double b) { return a > b; }},
        {"LessOrEqual", [](double a, double b) { return a <= b; }},
        {"GreaterOrEqual", [](double a, double b) { return a >= b; }}};
    for (const auto& function : functions) {
        for (const double a : {-2.0, -0.3, 0.0, 0.1, 0.5, 1.0, 3.0}) {
            for (const double b : {-2.0, -0.3, 0.0, 0.1, 0.5, 1.0, 3.0}) {
                const std::string operators = fmt::format(
                    "a = Constant <value = float[1] {{{:.1f}}}> (); b = Constant <value = float[1] {{{:.1f}}}> (); "
                    "c = {} (a, b); s = Cast <to = 7> (c); y = ConstantOfShape (s)",
                    a, b, function.first);
                CHECK_MESSAGE(type_of_result("17", "1", operators) == (function.second(a, b) ? "f32[1]" : "f32[0]"),
                              operators);
            }
        }
    }
}

TEST_CASE("an operator notes a scalar that is known, held by the file or computed, on either side, and no other") {
    const std::string held = "c = Constant <value = float[1] {3}> (); ";
    const auto size = [](int axis) {
        return fmt::format(
            "s = Shape (x); i = Constant <value = int64[1] {{{}}}> (); g = Gather (s, i); c = Cast <to = 1> (g); ",
            axis);
    };
    for (const char* op : {"Add", "Sub", "Mul", "Div", "Pow", "Less", "Greater", "Equal"}) {
        for (const char* operands : {"x, c", "c, x"}) {
            const auto notes = [&](const std::string& made) {
                const Graph graph = imported("17", "N,3", fmt::format("{}y = {} ({})", made, op, operands));
                return std::ranges::count(graph.ops.back().attributes, "scalar", &Attribute::name);
            };
            CAPTURE(op);
            CHECK(notes(held) == 1);
            CHECK(notes(size(1)) == 1);
            CHECK(notes(size(0)) == 0);
        }
    }
}
