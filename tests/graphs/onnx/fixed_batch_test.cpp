#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "ftax/import.hpp"
#include "ftax/work.hpp"
#include "tests/graphs/onnx/model_files.hpp"

// A file exported at a fixed batch holds it in the constants of its Reshapes: asked at another batch it is to do the
// work of the same network exported with a dynamic batch.

using namespace ftax;
using namespace ftax::test;

namespace {

/// Attention as tracing writes it, over x[b,16,32] or, with `sequence_first`, x[16,b,32]; `batch` is "batch" or a
/// number, and the constants of the Reshapes hold `b` or -1 where it is.
OnnxModel attention(const std::string& batch, std::int64_t b, bool sequence_first) {
    OnnxModel model;
    model.input("x", {batch, "16", "32"}).output("y");
    const auto perm = [&](const std::string& from, const std::string& to, const std::vector<std::int64_t>& axes) {
        OnnxModel::attribute(model.node("Transpose", {from}, {to}), "perm", axes);
    };
    const auto reshape = [&](const std::string& from, const std::string& to, const std::vector<std::int64_t>& shape) {
        model.integers(to + "_shape", shape);
        model.node("Reshape", {from, to + "_shape"}, {to});
    };
    model.weight("wo", {32, 32});
    for (const std::string name : {"q", "k", "v"}) {
        model.weight("w" + name, {32, 32});
        model.node("MatMul", {"x", "w" + name}, {name});
        if (sequence_first) {  // 4·b batches of a product, as nn.MultiheadAttention has them
            perm(name, name + "t", {1, 0, 2});
            reshape(name + "t", name + "r", {16, b < 0 ? -1 : 4 * b, 8});
            perm(name + "r", name + "h",
                 name == "k" ? std::vector<std::int64_t>{1, 2, 0} : std::vector<std::int64_t>{1, 0, 2});
        } else {
            reshape(name, name + "r", {b, 16, 4, 8});
            perm(name + "r", name + "h",
                 name == "k" ? std::vector<std::int64_t>{0, 2, 3, 1} : std::vector<std::int64_t>{0, 2, 1, 3});
        }
    }
    model.node("MatMul", {"qh", "kh"}, {"scores"});
    model.node("Softmax", {"scores"}, {"weights"});
    model.node("MatMul", {"weights", "vh"}, {"attended"});
    if (sequence_first) {
        perm("attended", "back", {1, 0, 2});
        reshape("back", "rows", {b < 0 ? -1 : 16 * b, 32});
    } else {
        perm("attended", "back", {0, 2, 1, 3});
        reshape("back", "rows", {b, 16, 32});
    }
    model.node("MatMul", {"rows", "wo"}, {"y"});
    return model;
}

std::int64_t flops(const OnnxModel& model, const std::vector<InputShape>& shapes, const ShapeBindings& bindings) {
    const TemporaryFolder folder;
    ImportOptions options;
    options.input_shapes = shapes;
    const Graph graph = load_graph(folder.write("model.onnx", model.bytes()), options);
    return total_work(graph, ftax::bind(graph, bindings)).flops;
}

}  // namespace

TEST_CASE("a file of a fixed batch does the work of its dynamic twin at every batch") {
    for (const bool sequence_first : {false, true}) {
        for (const std::int64_t held : {1, 2, 3}) {
            CAPTURE(sequence_first);
            CAPTURE(held);
            const OnnxModel fixed = attention(std::to_string(held), held, sequence_first);
            for (const std::int64_t b : {1, 2, 8}) {
                const std::int64_t right = flops(attention("batch", -1, sequence_first), {}, {{"batch", b}});
                CHECK(flops(fixed, {{"x", {"batch", "16", "32"}, {}}}, {{"batch", b}}) == right);
                CHECK(flops(fixed, {{"x", {std::to_string(b), "16", "32"}, {}}}, {}) == right);
            }
        }
    }
}

TEST_CASE(
    "a file whose input is dynamic but whose constants are not is refused at any other batch, naming the Reshape") {
    const OnnxModel traced = attention("batch", 2, false);
    CHECK(flops(traced, {}, {{"batch", 2}}) == flops(attention("batch", -1, false), {}, {{"batch", 2}}));
    const Failure failure = failure_of([&] { return flops(traced, {}, {{"batch", 8}}); });
    CHECK(failure.code == ErrorCode::model);
    CHECK_MESSAGE(failure.says("Reshape_of_qr"), failure.message);
}

TEST_CASE("a leading dimension other than the batch may vary if the operators allow it") {
    OnnxModel model;
    model.input("x", {"16", "8"}).output("y");
    OnnxModel::attribute(model.node("Transpose", {"x"}, {"t"}), "perm", std::vector<std::int64_t>{1, 0});
    model.node("MatMul", {"x", "t"}, {"scores"});
    model.node("Softmax", {"scores"}, {"y"});
    const auto at = [&](const std::string& tokens) { return flops(model, {{"x", {tokens, "8"}, {}}}, {}); };
    CHECK(at("32") == 4 * at("16"));
}

TEST_CASE("open dimensions that all have one name, or -1, are sizes of their own") {
    for (const char* open : {"-1", "?", "None", ""}) {
        CAPTURE(open);
        OnnxModel model;
        model.input("x", {open, "3", open, open}).output("y").weight("w", {16, 3, 3, 3});
        model.node("Conv", {"x", "w"}, {"y"});
        const Graph graph = model.import();
        CHECK(graph.expressions.symbols().size() == 3);
        CHECK(flops(model, {{"x", {"2", "3", "10", "7"}, {}}}, {}) == 2 * 2 * 16 * 8 * 5 * 27);
    }
}

TEST_CASE("the number of results of a NonZero is a symbol where the caller names it") {
    OnnxModel model;
    model.input("x", {"batch", "8"}).input("values", {"100", "32"}).weight("w", {32, 10}).output("y");
    model.node("NonZero", {"x"}, {"found"});
    OnnxModel::attribute(model.node("Transpose", {"found"}, {"places"}), "perm", std::vector<std::int64_t>{1, 0});
    model.integers("first", {0});
    OnnxModel::attribute(model.node("Gather", {"places", "first"}, {"rows"}), "axis", std::int64_t{1});
    model.node("Gather", {"values", "rows"}, {"picked"});
    model.node("MatMul", {"picked", "w"}, {"y"});
    const Graph open = model.import();
    REQUIRE(open.warnings.size() == 1);
    CHECK(open.warnings[0].find("--dim NonZero_of_found=N") != std::string::npos);
    const std::vector<bool> guessed = guessed_operators(open);
    CHECK(modelled_flops(open, ftax::bind(open, {{"batch", 2}}), guessed) ==
          0);  // its only weight meets an unknown number of rows

    ImportOptions options;
    options.data_sizes = {"NonZero_of_found"};
    const Graph given = model.import(options);
    CHECK(given.warnings.empty());
    const auto bound = ftax::bind(given, {{"batch", 2}, {"NonZero_of_found", 7}});
    CHECK(work_of(given, given.ops.back(), bound).flops == 2 * 7 * 32 * 10);
    CHECK(modelled_flops(given, bound, guessed_operators(given)) == 1);
}

TEST_CASE("inputs of the same batch follow the one that is named") {
    OnnxModel model;
    model.input("a", {"2", "4"}).input("b", {"2", "4"}).input("c", {"1", "4"}).output("y");
    model.input("d", {"2", "8"}).output("z");
    model.node("Relu", {"d"}, {"z"});
    model.node("Add", {"a", "b"}, {"s"});
    model.node("Add", {"s", "c"}, {"y"});
    const TemporaryFolder folder;
    ImportOptions options;
    options.input_shapes = {{.input = "a", .dims = {"batch", "4"}, .dtype = {}}};
    const Graph graph = load_graph(folder.write("model.onnx", model.bytes()), options);
    const auto leading = [&](std::size_t input) {
        return graph.expressions.to_string(graph.tensors[graph.inputs[input]].shape[0]);
    };
    CHECK(leading(0) == "batch");
    CHECK(leading(1) == "batch");
    CHECK(leading(2) == "1");
    CHECK(leading(3) == "batch");
}
