#include <doctest/doctest.h>

#include "tests/graphs/onnx/model_files.hpp"

// Shape arithmetic inside the graph, as exporters write it, must stay symbolic.

using namespace ftax;
using namespace ftax::test;

namespace {

std::string shape_of(const Graph& graph, std::size_t output = 0) {
    const Tensor& tensor = graph.tensors[graph.outputs.at(output)];
    if (!tensor.known_shape) return "?";
    std::string text;
    for (const Expression dim : tensor.shape) text += (text.empty() ? "" : ",") + graph.expressions.to_string(dim);
    return text;
}

std::string gathered(OnnxModel& model, const std::string& shape, std::int64_t index) {
    const std::string name = shape + "_" + std::to_string(index);
    model.integers(name + "_index", {index});
    model.node("Gather", {shape, name + "_index"}, {name});
    return name;
}

}  // namespace

TEST_CASE("Shape, Gather, Concat and Reshape fold to symbols and leave one reshape") {
    OnnxModel model;
    model.input("x", {"batch", "seq", "768"}).output("y").integers("heads", {12}).integers("minus_one", {-1});
    model.node("Shape", {"x"}, {"s"});
    const std::string b = gathered(model, "s", 0), n = gathered(model, "s", 1);
    OnnxModel::attribute(model.node("Concat", {b, n, "heads", "minus_one"}, {"target"}), "axis", std::int64_t{0});
    model.node("Reshape", {"x", "target"}, {"y"});
    const Graph graph = model.import();
    CHECK(shape_of(graph) == "batch,seq,12,64");
    CHECK(graph.ops.size() == 1);
}

TEST_CASE("detours through floats stay exact: Cast, Mul 0.5, Floor, Cast") {
    OnnxModel model;
    model.input("x", {"batch", "3", "height", "width"}).output("y");
    model.node("Shape", {"x"}, {"s"});
    const std::string h = gathered(model, "s", 2);
    OnnxModel::attribute(model.node("Cast", {h}, {"f"}), "to", std::int64_t{1});
    auto* half = model.graph().add_initializer();
    half->set_name("half");
    half->set_data_type(::onnx::TensorProto::FLOAT);
    half->add_float_data(0.5F);
    model.node("Mul", {"f", "half"}, {"g"});
    model.node("Floor", {"g"}, {"i"});
    OnnxModel::attribute(model.node("Cast", {"i"}, {"k"}), "to", std::int64_t{7});
    model.integers("zero", {0}).integers("two", {2});
    model.node("Slice", {"x", "zero", "k", "two"}, {"y"});
    const Graph graph = model.import();
    CHECK(bound_type(graph.tensors[graph.outputs[0]], bind(graph, {{"batch", 1}, {"height", 7}, {"width", 5}})).shape ==
          std::vector<std::int64_t>{1, 3, 3, 5});
}

TEST_CASE("Expand behind Where(Equal(shape, -1)) knows that a dimension is not -1") {
    OnnxModel model;
    model.input("x", {"batch", "1", "8"})
        .output("y")
        .integers("minus_one", {-1})
        .integers("ones", {1, 1, 1})
        .integers("n", {5});
    model.node("Shape", {"x"}, {"s"});
    const std::string b = gathered(model, "s", 0), w = gathered(model, "s", 2);
    OnnxModel::attribute(model.node("Concat", {b, "n", w}, {"target"}), "axis", std::int64_t{0});
    model.node("Equal", {"target", "minus_one"}, {"same"});
    model.node("Where", {"same", "ones", "target"}, {"safe"});
    model.node("Expand", {"x", "safe"}, {"y"});
    CHECK(shape_of(model.import()) == "batch,5,8");
}

TEST_CASE("Range and ConstantOfShape over a symbol are fills of symbolic size") {
    OnnxModel model;
    model.input("x", {"batch", "seq"}).output("positions").output("zeros").integers("one_element", {1});
    model.node("Shape", {"x"}, {"s"});
    const std::string n = gathered(model, "s", 1);
    model.node("Squeeze", {n}, {"count"});
    model.integers("start1", {0}).integers("step1", {1});
    model.node("Squeeze", {"start1"}, {"start"});
    model.node("Squeeze", {"step1"}, {"step"});
    model.node("Range", {"start", "count", "step"}, {"positions"});
    model.node("ConstantOfShape", {"s"}, {"zeros"});
    const Graph graph = model.import();
    CHECK(shape_of(graph, 0) == "seq");
    CHECK(shape_of(graph, 1) == "batch,seq");
    REQUIRE(graph.ops.size() == 2);
    CHECK(graph.ops[0].kind == OpKind::fill);
    CHECK(graph.ops[0].inputs.empty());
}

TEST_CASE("the leading dimension of all inputs is batch and a sequence length is seq") {
    OnnxModel model;
    model.input("ids", {"N", "sequence_length"}, ::onnx::TensorProto::INT64)
        .input("mask", {"N", "sequence_length"})
        .output("y");
    OnnxModel::attribute(model.node("Cast", {"ids"}, {"f"}), "to", std::int64_t{1});
    model.node("Mul", {"f", "mask"}, {"y"});
    const Graph graph = model.import();
    CHECK(shape_of(graph) == "batch,seq");
    CHECK(graph.warnings.empty());

    OnnxModel guessed;
    guessed.input("a", {"unk__1", "8"}).input("b", {"unk__1", "8"}).output("y");
    guessed.node("Add", {"a", "b"}, {"y"});
    const Graph other = guessed.import();
    CHECK(shape_of(other) == "batch,8");
    CHECK(other.warnings.size() == 1);

    OnnxModel masked;  // a mask may be longer than the tokens
    masked.input("attention_mask", {"s0", "s1"}, ::onnx::TensorProto::INT64)
        .input("ids", {"s0", "s2"}, ::onnx::TensorProto::INT64)
        .output("y");
    OnnxModel::attribute(masked.node("Concat", {"attention_mask", "ids"}, {"y"}), "axis", std::int64_t{1});
    const std::string joined = shape_of(masked.import());
    CHECK_MESSAGE(joined.find("seq") != std::string::npos, joined);
    CHECK_MESSAGE(joined.find("attention_mask.1") != std::string::npos, joined);
}

TEST_CASE("scaled_dot_product: einsum becomes views and one matrix product") {
    OnnxModel model;
    model.input("q", {"batch", "seq", "12", "64"}).input("k", {"batch", "seq", "12", "64"}).output("y");
    auto* equation = model.node("Einsum", {"q", "k"}, {"y"}).add_attribute();
    equation->set_name("equation");
    equation->set_type(::onnx::AttributeProto::STRING);
    equation->set_s("bqhd,bkhd->bhqk");
    const Graph graph = model.import();
    CHECK(shape_of(graph) == "batch,12,seq,seq");
    int products = 0;
    for (const Op& op : graph.ops) products += op.kind == OpKind::matmul;
    CHECK(products == 1);
}

TEST_CASE("batch norms that the exporter folded come back, linear weights regain their layout") {
    OnnxModel model;
    model.input("x", {"batch", "3", "8", "8"})
        .output("y")
        .weight("onnx::Conv_7", {16, 3, 3, 3})
        .weight("onnx::Conv_8", {16});
    model.node("Conv", {"x", "onnx::Conv_7", "onnx::Conv_8"}, {"y"}).set_name("/stem/conv/Conv");
    const Graph graph = model.import();
    REQUIRE(graph.ops.size() == 2);
    CHECK(graph.ops[0].inputs.size() == 2);
    CHECK(graph.ops[0].module == "stem.conv");
    CHECK(graph.ops[1].kind == OpKind::batch_norm);
    CHECK(graph.ops[1].inputs.size() == 5);
    CHECK(graph.warnings.size() == 1);

    // A folded weight norm leaves the convolution its own bias, whatever the scope calls the module.
    OnnxModel weight_norm;
    weight_norm.input("x", {"batch", "3", "8", "8"}).output("y");
    weight_norm.weight("onnx::Conv_7", {16, 3, 3, 3}).weight("m.stem.conv.bias", {16});
    weight_norm.node("Conv", {"x", "onnx::Conv_7", "m.stem.conv.bias"}, {"y"}).set_name("/stem/conv/Conv");
    CHECK(weight_norm.import().ops.size() == 1);

    OnnxModel linear;
    linear.input("x", {"batch", "8"}).output("y").weight("onnx::MatMul_9", {8, 5});
    linear.node("MatMul", {"x", "onnx::MatMul_9"}, {"y"});
    const Graph layer = linear.import();
    CHECK(layer.ops.at(0).integer("transposed_weight", 1) == 1);
    CHECK(layer.expressions.to_string(layer.tensors[layer.ops[0].inputs[1]].shape[0]) == "5");
}

TEST_CASE("a bias of zeros that the exporter gave a convolution is none; the layer's own stays") {
    for (const bool own : {false, true}) {
        OnnxModel model;
        const std::string bias = own ? "stem.bias" : "val_3";
        model.input("x", {"batch", "3", "8", "8"}).output("y").weight("stem.weight", {16, 3, 3, 3}).weight(bias, {16});
        model.node("Conv", {"x", "stem.weight", bias}, {"y"}).set_name("/stem/Conv");
        CHECK(model.import().ops.at(0).inputs.size() == (own ? 3 : 2));
    }
}

TEST_CASE("of CastLike's second operand only the type counts: the number stays known") {
    OnnxModel model;
    model.input("x", {"batch", "8"}).output("y").integers("n", {64});
    model.node("CastLike", {"n", "x"}, {"n_as_float"});
    model.node("Sqrt", {"n_as_float"}, {"root"});
    model.node("Mul", {"x", "root"}, {"y"});
    const Graph graph = model.import();
    REQUIRE(graph.ops.size() == 1);
    CHECK(std::get<double>(graph.ops[0].attributes.back().value) == 8.0);
}

TEST_CASE("module paths come from node names and become module calls") {
    OnnxModel model;
    model.input("x", {"batch", "8"}).output("y");
    model.node("Relu", {"x"}, {"a"}).set_name("/layer1/layer1.0/relu/Relu");
    model.node("Exp", {"a"}, {"b"}).set_name("/layer1/layer1.0/Exp");
    model.node("Exp", {"b"}, {"c"}).set_name("/blocks.0/act/Exp");
    model.node("Relu", {"c"}, {"y"}).set_name("/head/Relu");
    const Graph graph = model.import();
    CHECK(graph.ops[0].module == "layer1.0.relu");
    CHECK(graph.ops[1].module == "layer1.0");
    std::vector<std::string> paths;
    for (const ModuleCall& call : graph.module_calls) paths.push_back(call.path);
    CHECK(paths ==
          std::vector<std::string>{"", "layer1", "layer1.0", "layer1.0.relu", "blocks.0", "blocks.0.act", "head"});
}

TEST_CASE("dimensions are named by what files call them, where that is one thing") {
    const auto shapes = [](const std::vector<std::vector<std::string>>& inputs, const char* name = "in") {
        OnnxModel model;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            model.input(name + std::to_string(i), inputs[i]).output("y" + std::to_string(i));
            model.node("Relu", {name + std::to_string(i)}, {"y" + std::to_string(i)});
        }
        const Graph graph = model.import();
        std::string text;
        for (std::size_t i = 0; i < inputs.size(); ++i) text += (i > 0 ? " " : "") + shape_of(graph, i);
        return std::pair(text, graph.warnings.size());
    };
    // An encoder's and a decoder's length are two; one of either kind is seq.
    CHECK(shapes({{"N", "seq_len", "8"}, {"N", "text_length", "8"}}).first == "batch,seq_len,8 batch,text_length,8");
    CHECK(shapes({{"N", "seq_len", "8"}, {"N", "seq_len", "8"}}).first == "batch,seq,8 batch,seq,8");
    // Unnamed leading dimensions of all inputs are the batch; names that differ are not.
    CHECK(shapes({{"?", "8"}, {"None", "8"}}).first == "batch,8 batch,8");
    CHECK(shapes({{"???", "8"}}).first == "batch,8");
    CHECK(shapes({{"batch", "???"}, {"batch", "???"}}).first == "batch,in0_1 batch,in1_1");  // sizes of their own
    CHECK(shapes({{"rows", "8"}, {"columns", "8"}}).first == "rows,8 columns,8");
    // Earlier tokens, by name or as the third dimension of a cache.
    const auto past = shapes({{"batch", "4", "past_sequence_length", "8"}});
    CHECK(past.first == "batch,4,past,8");
    CHECK(past.second == 0);
    CHECK(shapes({{"s0", "4", "s1", "8"}}, "cache.key").first == "batch,4,past,8");
    CHECK(shapes({{"s0", "4", "s1", "8"}}, "past_key").first == "batch,4,past,8");
    CHECK(shapes({{"s0", "4", "s1", "8"}}, "image").first.find("past") == std::string::npos);
}
