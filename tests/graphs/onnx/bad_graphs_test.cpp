#include <doctest/doctest.h>

#include <algorithm>

#include "ftax/graph.hpp"
#include "ftax/work.hpp"
#include "tests/graphs/onnx/model_files.hpp"

// Well-formed files whose graphs do not make sense: rows 10 to 25 and 29, 30 of the bad inputs.

using namespace ftax;
using namespace ftax::test;

namespace {

Failure failure_of_model(const OnnxModel& model, const ImportOptions& options = {}) {
    return failure_of([&] { return model.import(options); });
}

bool warns(const Graph& graph, const std::string& text) {
    return std::any_of(graph.warnings.begin(), graph.warnings.end(),
                       [&](const auto& w) { return w.find(text) != std::string::npos; });
}

/// x[dims] → op → y, with an optional second input.
OnnxModel one_node(const std::string& op, const std::vector<std::string>& dims, std::vector<std::string> inputs = {"x"},
                   std::int64_t opset = 17) {
    OnnxModel model(opset);
    model.input("x", dims).output("y");
    model.node(op, inputs, {"y"});
    return model;
}

void check_invalid(const OnnxModel& model, const std::string& says) {
    const auto failure = failure_of_model(model);
    REQUIRE_MESSAGE(failure, says);
    CHECK(failure.code == ErrorCode::model);
    CHECK_MESSAGE(failure.says(says), failure.message);
}

}  // namespace

TEST_CASE("BAD_INPUTS 10: a cycle and a self-loop are refused, one cycle is printed") {
    OnnxModel model;
    model.input("x", {"8"}).output("c");
    model.node("Add", {"x", "c"}, {"a"});
    model.node("Relu", {"a"}, {"b"});
    model.node("Exp", {"b"}, {"c"});
    const auto failure = failure_of_model(model);
    REQUIRE(failure);
    CHECK(failure.code == ErrorCode::model);
    for (const char* name : {"Add_of_a", "Relu_of_b", "Exp_of_c", "→"})
        CHECK_MESSAGE(failure.says(name), failure.message);

    OnnxModel loop;
    loop.input("x", {"8"}).output("y");
    loop.node("Add", {"x", "y"}, {"y"});
    check_invalid(loop, "cycle");
}

TEST_CASE("BAD_INPUTS 11: unsorted nodes are sorted, with a warning") {
    OnnxModel model;
    model.input("x", {"8"}).output("y");
    model.node("Exp", {"a"}, {"y"});
    model.node("Relu", {"x"}, {"a"});
    const Graph graph = model.import();
    CHECK(graph.ops.at(0).source == "Relu");
    CHECK(graph.ops.at(1).source == "Exp");
    CHECK(warns(graph, "order"));
}

TEST_CASE("BAD_INPUTS 12: duplicate outputs and dangling inputs are refused; in dead code they warn") {
    OnnxModel twice;
    twice.input("x", {"8"}).output("y");
    twice.node("Relu", {"x"}, {"y"});
    twice.node("Exp", {"x"}, {"y"});
    check_invalid(twice, "two producers");
    check_invalid(one_node("Add", {"8"}, {"x", "nowhere"}), "nowhere");

    OnnxModel dead = relu_model();
    dead.node("Exp", {"nowhere"}, {"unused"});
    const Graph graph = dead.import();
    CHECK(graph.ops.size() == 1);
    CHECK(warns(graph, "nowhere"));
}

TEST_CASE("BAD_INPUTS 13: a missing initializer that is named as an input is an input; without shape it is asked for") {
    OnnxModel model;
    model.input("x", {"batch", "3", "32", "32"}).input("w", {"16", "3", "3", "3"}).output("y");
    model.node("Conv", {"x", "w"}, {"y"});
    const Graph stripped = model.import();
    CHECK(stripped.inputs.size() == 2);
    CHECK(stripped.tensors[stripped.inputs[1]].role == TensorRole::weight);

    model.graph().mutable_input(1)->mutable_type()->mutable_tensor_type()->clear_shape();
    const auto failure = failure_of_model(model);
    REQUIRE(failure);
    CHECK(failure.code == ErrorCode::usage);
    CHECK(failure.says("--shapes w:"));
    OnnxModel declared = relu_model();  // stripped, but with a declared type: a weight
    declared.graph().mutable_node(0)->set_op_type("MatMul");
    declared.graph().mutable_node(0)->add_input("stripped");
    OnnxModel::value(*declared.graph().add_value_info(), "stripped", {"8", "5"});
    const Graph graph = declared.import();
    CHECK(graph.ops.at(0).kind == OpKind::linear);
    CHECK(warns(graph, "stripped"));
}

TEST_CASE("BAD_INPUTS 14: negative dimensions and two -1 are refused, naming the node") {
    check_invalid(one_node("Relu", {"-2", "8"}), "-2");
    OnnxModel reshape = one_node("Reshape", {"4", "8"}, {"x", "shape"});
    reshape.integers("shape", {-1, -1});
    check_invalid(reshape, "Reshape_of_y");
    reshape.graph().clear_initializer();
    reshape.integers("shape", {-5, 8});
    check_invalid(reshape, "-5");
    OnnxModel pool = one_node("MaxPool", {"1", "3", "4", "4"});
    OnnxModel::attribute(*pool.graph().mutable_node(0), "kernel_shape", std::vector<std::int64_t>{9, 9});
    check_invalid(pool, "MaxPool_of_y");
}

TEST_CASE("BAD_INPUTS 15: a dimension 0 leaves a node without work") {
    const Graph graph = one_node("Relu", {"0", "8"}).import();
    REQUIRE(graph.ops.size() == 1);
    CHECK(element_count(graph.tensors[graph.outputs[0]], bind(graph, {})) == 0);
}

TEST_CASE("BAD_INPUTS 16: products of dimensions beyond int64 hit a limit") {
    OnnxModel model = one_node("Flatten", {"4611686018427387904", "4", "2"});
    OnnxModel::attribute(*model.graph().mutable_node(0), "axis", std::int64_t{2});
    CHECK(failure_of_model(model).code == ErrorCode::limit);
    const Graph graph = one_node("Relu", {"batch", "4611686018427387904"}).import();
    const BoundShapes bound = bind(graph, {{"batch", 8}});
    CHECK(failure_of([&] { return element_count(graph.tensors[graph.outputs[0]], bound); }).code == ErrorCode::limit);
}

TEST_CASE("BAD_INPUTS 16: a dimension squared or halved at every node hits a limit, in time and in memory") {
    for (const std::string op : {"Mul", "Div"}) {
        OnnxModel model;
        model.input("x", {"batch", "n"}).output("y");
        model.node("Shape", {"x"}, {"s0"});
        model.integers("two", {2}).integers("three", {3});
        for (int i = 0; i < 3000; ++i) {
            const std::string from = "s" + std::to_string(i), to = "s" + std::to_string(i + 1);
            if (op == "Mul") {
                model.node("Mul", {from, from}, {to});
            } else {  // s → s/2 + s/3: the printed expression doubles
                model.node("Div", {from, "two"}, {from + "a"});
                model.node("Div", {from, "three"}, {from + "b"});
                model.node("Add", {from + "a", from + "b"}, {to});
            }
        }
        model.node("Reshape", {"x", "s3000"}, {"y"});
        const auto failure = failure_of_model(model);
        REQUIRE(failure);
        CHECK(failure.code == ErrorCode::limit);
    }
}

TEST_CASE("BAD_INPUTS 17: sums of work beyond int64 hit a limit") {
    const Graph graph = one_node("Exp", {"batch", "1152921504606846976"}).import();
    CHECK(failure_of([&] { return total_work(graph, bind(graph, {{"batch", 4}})); }).code == ErrorCode::limit);
}

TEST_CASE("BAD_INPUTS 18: an unresolved symbol is a usage error naming symbol and flag") {
    const Graph graph = one_node("Relu", {"batch", "width", "3"}).import();
    const auto failure = failure_of([&] { return bind(graph, {{"batch", 2}}); });
    REQUIRE(failure);
    CHECK(failure.code == ErrorCode::usage);
    CHECK(failure.says("--dim width=N"));
    const Graph unnamed = one_node("Relu", {"", "", "3"}).import();
    CHECK(unnamed.expressions.symbols() == std::vector<std::string>{"batch", "x_1"});
    CHECK(warns(unnamed, "batch"));
}

TEST_CASE("BAD_INPUTS 19: one symbol with two values is refused") {
    OnnxModel model;
    model.input("a", {"n", "8"}).input("b", {"n", "8"}).output("y");
    model.node("Add", {"a", "b"}, {"y"});
    ImportOptions options;
    options.input_shapes = {{"a", {"4", "8"}, {}}, {"b", {"6", "8"}, {}}};
    const auto failure = failure_of_model(model, options);
    REQUIRE(failure);
    CHECK(failure.code == ErrorCode::model);
    options.input_shapes[1].dims[0] = "4";
    const Graph graph = model.import(options);
    CHECK(graph.expressions.symbols().empty());
    options.input_shapes = {{"c", {"4"}, {}}};
    CHECK(failure_of_model(model, options).code == ErrorCode::usage);
}

TEST_CASE("an input without a declared rank takes the shape that it is given, of any rank") {
    std::vector<std::string> dims;
    for (const char* const dim : {"2", "n", "3", "n", "5"}) {
        OnnxModel model;
        auto* input = model.graph().add_input();
        input->set_name("x");
        input->mutable_type()->mutable_tensor_type()->set_elem_type(::onnx::TensorProto::FLOAT);
        model.output("y").node("Relu", {"x"}, {"y"});
        dims.emplace_back(dim);
        ImportOptions options;
        options.input_shapes = {{"x", dims, {}}};
        const Graph graph = model.import(options);
        const Tensor& y = graph.tensors[graph.outputs.at(0)];
        REQUIRE(y.shape.size() == dims.size());
        for (std::size_t axis = 0; axis < dims.size(); ++axis)
            CHECK(graph.expressions.to_string(y.shape[axis]) == dims[axis]);
    }
}

TEST_CASE("BAD_INPUTS 20: arithmetic in dim_param is evaluated by a bounded parser") {
    const Graph graph = one_node("Relu", {"batch", "2*s0+1", "s0"}).import();
    // An exporter's number is no name: the dimension is called by its input and axis.
    const BoundShapes bound = bind(graph, {{"batch", 2}, {"x.2", 5}});
    CHECK(bound_type(graph.tensors[graph.outputs[0]], bound).shape == std::vector<std::int64_t>{2, 11, 5});
    CHECK(failure_of_model(one_node("Relu", {std::string(5000, '(')})).code == ErrorCode::limit);
    // What is no expression is a name.
    CHECK(one_node("Relu", {"batch size", "8"}).import().expressions.symbols().size() == 1);
}

TEST_CASE("BAD_INPUTS 21: impossible windows, groups, axes and permutations are refused") {
    const auto conv = [](const std::string& key, AttributeValue value) {
        OnnxModel model = one_node("Conv", {"1", "6", "8", "8"}, {"x", "w"});
        model.weight("w", {4, 3, 3, 3});
        auto& node = *model.graph().mutable_node(0);
        OnnxModel::attribute(node, "group", std::int64_t{2});
        if (key == "group") node.clear_attribute();
        if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) OnnxModel::attribute(node, key, *list);
        if (const auto* number = std::get_if<std::int64_t>(&value)) OnnxModel::attribute(node, key, *number);
        return model;
    };
    using List = std::vector<std::int64_t>;
    CHECK_FALSE(failure_of_model(conv("strides", List{1, 1})));
    check_invalid(conv("strides", List{0, 1}), "strides");
    check_invalid(conv("dilations", List{1, 0}), "dilations");
    check_invalid(conv("kernel_shape", List{0, 3}), "kernel");
    check_invalid(conv("strides", List{1, 1, 1}), "strides");
    check_invalid(conv("group", std::int64_t{0}), "group 0");
    check_invalid(conv("group", std::int64_t{4}), "does not divide");
    check_invalid(conv("group", std::int64_t{1}), "channels");

    OnnxModel softmax = one_node("Softmax", {"2", "3"});
    OnnxModel::attribute(*softmax.graph().mutable_node(0), "axis", std::int64_t{2});
    check_invalid(softmax, "axis 2");
    for (const List& perm : {List{0, 0}, List{0}, List{0, 2}, List{-1, 0}}) {
        OnnxModel transpose = one_node("Transpose", {"2", "3"});
        OnnxModel::attribute(*transpose.graph().mutable_node(0), "perm", perm);
        check_invalid(transpose, "permutation");
    }
}

TEST_CASE("BAD_INPUTS 22: missing or wrong-typed attributes and missing inputs are refused") {
    check_invalid(one_node("Concat", {"2", "3"}, {"x", "x"}), "'axis' is missing");
    OnnxModel concat = one_node("Concat", {"2", "3"}, {"x", "x"});
    OnnxModel::attribute(*concat.graph().mutable_node(0), "axis", std::vector<std::int64_t>{1});
    check_invalid(concat, "'axis' is not an integer");
    check_invalid(one_node("Cast", {"2"}), "'to' is missing");
    check_invalid(one_node("MatMul", {"2", "3"}), "input 1");
    check_invalid(one_node("Conv", {"1", "3", "8", "8"}, {"x", ""}), "input 1");
    check_invalid(one_node("MaxPool", {"1", "3", "8", "8"}), "kernel_shape");
    check_invalid(one_node("If", {"1"}, {"x"}), "then_branch");
    // Every operator without any input: an error or a graph, never a crash.
    for (const char* op : {"Add",    "Attention",  "BatchNormalization",
                           "Clip",   "Concat",     "DFT",
                           "Einsum", "Gather",     "LSTM",
                           "Loop",   "Pad",        "QLinearConv",
                           "Range",  "Resize",     "STFT",
                           "Scan",   "SequenceAt", "Slice",
                           "Split",  "TopK",       "Where"}) {
        failure_of_model(one_node(op, {"2"}, {}));
    }
}

TEST_CASE("BAD_INPUTS 23: rank 0 is legal, a rank above 32 hits a limit") {
    CHECK(one_node("Relu", {}).import().tensors.size() == 2);
    CHECK_FALSE(failure_of_model(one_node("Relu", std::vector<std::string>(32, "1"))));
    CHECK(failure_of_model(one_node("Relu", std::vector<std::string>(33, "1"))).code == ErrorCode::limit);
}

TEST_CASE("BAD_INPUTS 24: sub-byte element types count in bits, unknown ones warn") {
    OnnxModel model;
    model.input("x", {"3", "5"}, 22).output("y");  // INT4, unknown to libonnx 1.12
    model.node("Identity", {"x"}, {"y"});
    const Graph graph = model.import();
    CHECK(byte_count(graph.tensors[graph.inputs[0]], bind(graph, {})) == 8);
    OnnxModel unknown = one_node("MatMul", {"3", "5"}, {"x", "w"});
    unknown.weight("w", {5, 7}, 99);
    const Graph strange = unknown.import();
    CHECK(warns(strange, "99"));
    CHECK(strange.ops.size() == 1);
}

TEST_CASE("BAD_INPUTS 25: an unknown operator warns; value_info gives shapes downstream, else they are unknown") {
    OnnxModel model;
    model.input("x", {"batch", "8"}).output("y");
    auto& custom = model.node("Frobnicate", {"x"}, {"a"});
    custom.set_domain("com.example");
    model.node("Relu", {"a"}, {"y"});
    const Graph blind = model.import();
    CHECK(warns(blind, "com.example::Frobnicate"));
    CHECK(blind.ops.at(0).kind == OpKind::custom);
    CHECK_FALSE(blind.tensors[blind.outputs[0]].known_shape);

    OnnxModel::value(*model.graph().add_value_info(), "a", {"batch", "5"});
    const Graph imported = model.import();
    const Tensor& y = imported.tensors[imported.outputs[0]];
    REQUIRE(y.known_shape);
    CHECK(imported.expressions.to_string(y.shape[0]) == "batch");
    CHECK(imported.expressions.to_string(y.shape[1]) == "5");

    ImportOptions options;
    options.unsupported_is_error = true;
    CHECK(failure_of_model(model, options).code == ErrorCode::model);
}

TEST_CASE("BAD_INPUTS 29: long chains are imported iteratively, --max-nodes limits") {
    OnnxModel model;
    model.input("x", {"batch", "8"});
    std::string last = "x";
    const int length = 100'000;
    for (int i = 0; i < length; ++i) {
        const std::string next = "t" + std::to_string(i);
        model.node("Relu", {last}, {next});
        last = next;
    }
    model.output(last);
    CHECK(model.import().ops.size() == length);
    ImportOptions options;
    options.max_nodes = length - 1;
    const auto failure = failure_of_model(model, options);
    REQUIRE(failure);
    CHECK(failure.code == ErrorCode::limit);
    CHECK(failure.says("--max-nodes"));
}

// Work that grew with the square of these counts would take minutes; what it leaves behind is counted.
TEST_CASE("BAD_INPUTS 30: a node with very many inputs, and very many concatenations, grow by what they are") {
    constexpr int inputs = 200'000;
    OnnxModel wide;
    wide.input("x", {"batch", "8"}).output("y");
    auto& node = wide.node("Concat", std::vector<std::string>(inputs, "x"), {"y"});
    OnnxModel::attribute(node, "axis", std::int64_t{1});
    const Graph joined = wide.import();
    CHECK(joined.expressions.to_string(joined.tensors[joined.outputs[0]].shape[1]) == std::to_string(8 * inputs));
    CHECK(joined.expressions.size() < 2 * inputs);

    OnnxModel chain;
    chain.input("x", {"batch", "8"});
    std::string last = "x";
    constexpr int links = 20'000;
    for (int i = 0; i < links; ++i) {
        const std::string next = "t" + std::to_string(i);
        OnnxModel::attribute(chain.node("Concat", {last, "x"}, {next}), "axis", std::int64_t{0});
        last = next;
    }
    chain.output(last);
    const Graph graph = chain.import();
    CHECK(graph.expressions.to_string(graph.tensors[graph.outputs[0]].shape[0]) == "20001*batch");
    CHECK(graph.expressions.size() < 4 * links);
}
