#include "graphs/ir/canonical/canonical.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "ftax/text_graph.hpp"
#include "graphs/ir/strides.hpp"
#include "tests/graphs/onnx/model_files.hpp"

// Patterns that exporters take apart, each as some exporter writes it.

using namespace ftax;
using namespace ftax::test;

namespace {

/// Adds x → … step by step; scalars are initializers of one element.
struct Program {
    Program() { model.input("x", {"batch", "16", "64"}); }

    std::string scalar(float value) {
        const std::string name = "c" + std::to_string(next++);
        auto* tensor = model.graph().add_initializer();
        tensor->set_name(name);
        tensor->set_data_type(::onnx::TensorProto::FLOAT);
        tensor->add_float_data(value);
        return name;
    }
    std::string apply(const std::string& op, const std::vector<std::string>& inputs) {
        const std::string name = "t" + std::to_string(next++);
        last = &model.node(op, inputs, {name});
        return name;
    }
    std::string mean(const std::string& x) {
        const std::string name = apply("ReduceMean", {x});
        OnnxModel::attribute(*last, "axes", std::vector<std::int64_t>{-1});
        return name;
    }
    Graph finish(const std::string& output) {
        model.output(output);
        return model.import();
    }

    OnnxModel model;
    ::onnx::NodeProto* last = nullptr;
    int next = 0;
};

const Op& only_op(const Graph& graph) {
    REQUIRE_MESSAGE(graph.ops.size() == 1, to_text(graph));
    return graph.ops[0];
}

}  // namespace

TEST_CASE("GELU through Erf is one function, for any order of its factors") {
    for (int form = 0; form < 4; ++form) {
        Program p;
        const std::string erf = form % 2 == 0 ? p.apply("Erf", {p.apply("Div", {"x", p.scalar(1.41421356F)})})
                                              : p.apply("Erf", {p.apply("Mul", {"x", p.scalar(0.70710678F)})});
        const std::string one_plus = p.apply("Add", {erf, p.scalar(1)});
        std::string y;
        if (form == 0) y = p.apply("Mul", {p.apply("Mul", {"x", one_plus}), p.scalar(0.5F)});
        if (form == 1) y = p.apply("Mul", {p.apply("Mul", {"x", p.scalar(0.5F)}), one_plus});
        if (form == 2) y = p.apply("Mul", {"x", p.apply("Mul", {one_plus, p.scalar(0.5F)})});
        if (form == 3) y = p.apply("Div", {p.apply("Mul", {one_plus, "x"}), p.scalar(2)});
        const Graph graph = p.finish(y);
        CHECK(only_op(graph).text("function") == "gelu");
        CHECK(graph.ops[0].inputs == graph.inputs);
        CHECK(graph.ops[0].source.find("Erf") != std::string::npos);
    }
}

namespace {

/// x · ½ · (1 + tanh(√(2/π)(x + 0.044715 x³))) around a cube that an exporter or a model wrote.
Graph gelu_through_tanh(Program& p, const std::string& cube) {
    const std::string inner = p.apply("Add", {"x", p.apply("Mul", {cube, p.scalar(0.044715F)})});
    const std::string tanh = p.apply("Tanh", {p.apply("Mul", {inner, p.scalar(0.7978846F)})});
    return p.finish(p.apply("Mul", {p.apply("Mul", {"x", p.scalar(0.5F)}), p.apply("Add", {tanh, p.scalar(1)})}));
}

}  // namespace

TEST_CASE("GELU through Tanh is one function") {
    Program p;
    CHECK(only_op(gelu_through_tanh(p, p.apply("Mul", {p.apply("Mul", {"x", "x"}), "x"}))).text("function") == "gelu");
}

TEST_CASE("a GELU that the model spells out with pow is what eager PyTorch runs, until an optimiser recognises it") {
    Program p;
    Graph graph = gelu_through_tanh(p, p.apply("Pow", {"x", p.scalar(3)}));
    CHECK(graph.ops.size() == 8);
    canonicalize(graph, SpelledOut::recognise);
    CHECK(only_op(graph).text("function") == "gelu");
}

TEST_CASE("what only looks like GELU stays as it is") {
    Program p;  // x · (1 + erf(x)), without the half
    const std::string y = p.apply("Mul", {"x", p.apply("Add", {p.apply("Erf", {"x"}), p.scalar(1)})});
    CHECK(p.finish(y).ops.size() == 3);
    Program used;  // the sum is an output of its own
    const std::string sum =
        used.apply("Add", {used.apply("Erf", {used.apply("Mul", {"x", used.scalar(0.70710678F)})}), used.scalar(1)});
    const std::string z = used.apply("Mul", {used.apply("Mul", {"x", sum}), used.scalar(0.5F)});
    used.model.output(sum);
    CHECK(used.finish(z).ops.size() == 5);
}

TEST_CASE("SiLU, HardSwish and Mish are one function each") {
    Program silu;
    CHECK(only_op(silu.finish(silu.apply("Mul", {"x", silu.apply("Sigmoid", {"x"})}))).text("function") == "silu");
    Program gate;
    CHECK(only_op(gate.finish(gate.apply("Mul", {"x", gate.apply("HardSigmoid", {"x"})}))).text("function") ==
          "hardswish");
    Program clip;
    const std::string six =
        clip.apply("Clip", {clip.apply("Add", {"x", clip.scalar(3)}), clip.scalar(0), clip.scalar(6)});
    CHECK(only_op(clip.finish(clip.apply("Div", {clip.apply("Mul", {"x", six}), clip.scalar(6)}))).text("function") ==
          "hardswish");
    Program mish;
    CHECK(only_op(mish.finish(mish.apply("Mul", {"x", mish.apply("Tanh", {mish.apply("Softplus", {"x"})})})))
              .text("function") == "mish");
}

TEST_CASE("LayerNorm and RMSNorm are one operator with their parameters") {
    for (const bool centred : {true, false}) {
        for (const bool squared_by_product : {true, false}) {
            Program p;
            p.model.weight("gamma", {64}).weight("beta", {64});
            const std::string d = centred ? p.apply("Sub", {"x", p.mean("x")}) : "x";
            const std::string square = squared_by_product ? p.apply("Mul", {d, d}) : p.apply("Pow", {d, p.scalar(2)});
            const std::string root = p.apply("Sqrt", {p.apply("Add", {p.mean(square), p.scalar(1e-5F)})});
            const std::string scaled =
                squared_by_product ? p.apply("Mul", {d, p.apply("Reciprocal", {root})}) : p.apply("Div", {d, root});
            std::string y = p.apply("Mul", {"gamma", scaled});
            if (centred) y = p.apply("Add", {y, "beta"});
            Graph graph = p.finish(y);
            if (!centred) {
                // torch.nn.RMSNorm is the only one that an exporter takes apart; the others are spelled out by models.
                CHECK(graph.ops.size() == 6);
                canonicalize(graph, SpelledOut::recognise);
            }
            const Op& op = only_op(graph);
            CHECK(op.kind == (centred ? OpKind::layer_norm : OpKind::rms_norm));
            CHECK(op.inputs.size() == (centred ? 3 : 2));
            CHECK(op.integer("axis", -1) == 2);
        }
    }
}

TEST_CASE("an inverse root in any spelling is that of a norm; what only looks like a norm stays as it is") {
    // x · f, f one of 1/√v, √v⁻¹ and others; v is mean(xᵖ) + ε.
    const auto operators = [](float power, float numerator, bool adds) {
        Program p;
        p.model.weight("gamma", {64}).weight("beta", {64});
        const std::string mean = p.mean(p.apply("Pow", {"x", p.scalar(power)}));
        const std::string root = p.apply("Sqrt", {p.apply("Add", {mean, p.scalar(1e-5F)})});
        const std::string scaled = p.apply("Mul", {"x", p.apply("Div", {p.scalar(numerator), root})});
        std::string y = p.apply("Mul", {scaled, "gamma"});
        if (adds) y = p.apply("Add", {y, "beta"});
        Graph graph = p.finish(y);
        canonicalize(graph, SpelledOut::recognise);
        return graph;
    };
    CHECK(only_op(operators(2, 1, false)).kind == OpKind::rms_norm);
    const Graph added = operators(2, 1, true);  // an RMS norm has no bias: the sum is a kernel of its own
    REQUIRE(added.ops.size() == 2);
    CHECK(added.ops[0].kind == OpKind::rms_norm);
    CHECK(added.ops[0].inputs.size() == 2);
    for (const Graph& other : {operators(3, 1, false), operators(2, 2, false)}) {
        for (const Op& op : other.ops) CHECK(op.kind != OpKind::rms_norm);
    }
}

TEST_CASE("a group norm that the exporter wrote as an instance norm of its groups is one operator") {
    for (const bool affine : {true, false}) {
        Program p;
        p.model.weight("ones", {4}).weight("zeros", {4}).weight("gamma", {16, 1}).weight("beta", {16, 1});
        p.model.integers("grouped", {0, 4, -1});
        const std::string grouped = p.apply("Reshape", {"x", "grouped"});
        const std::string normed = p.apply("InstanceNormalization", {grouped, "ones", "zeros"});
        std::string y = p.apply("Reshape", {normed, p.apply("Shape", {"x"})});
        if (affine) y = p.apply("Add", {p.apply("Mul", {y, "gamma"}), "beta"});
        const Graph graph = p.finish(y);
        const Op& op = only_op(graph);
        CHECK(op.kind == OpKind::group_norm);
        CHECK(op.integer("groups", 0) == 4);
        CHECK(op.inputs.size() == (affine ? 3 : 1));
        CHECK(graph.tensors[op.inputs[0]].name == "x");
    }
}

TEST_CASE("an RMSNorm is one operator where the exporter took it apart, and rsqrt is one function") {
    Program p;
    p.model.weight("gamma", {64});
    const std::string mean = p.mean(p.apply("Pow", {"x", p.scalar(2)}));
    const std::string root = p.apply("Sqrt", {p.apply("Add", {mean, p.scalar(1e-5F)})});
    const std::string scaled = p.apply("Mul", {"x", p.apply("Reciprocal", {root})});
    Graph graph = p.finish(p.apply("Mul", {scaled, "gamma"}));
    REQUIRE(graph.ops.size() == 6);
    CHECK(graph.ops[3].text("function") == "rsqrt");
    canonicalize(graph, SpelledOut::keep, [](const Op& last, OpKind kind) {
        CHECK(last.source == "Mul");
        return kind == OpKind::rms_norm;
    });
    CHECK(only_op(graph).kind == OpKind::rms_norm);
}

TEST_CASE("a matrix product with a weight, and the bias added to it, are a linear layer") {
    Program p;
    p.model.weight("w", {64, 10}).weight("b", {10});
    const Graph graph = p.finish(p.apply("Add", {"b", p.apply("MatMul", {"x", "w"})}));
    const Op& op = only_op(graph);
    CHECK(op.kind == OpKind::linear);
    CHECK(op.inputs.size() == 3);
    CHECK(op.integer("transposed_weight", 1) == 0);
    CHECK(graph.expressions.to_string(graph.tensors[op.outputs[0]].shape[2]) == "10");
}

TEST_CASE("a mean over height and width is global pooling, over other axes it is not") {
    const auto kind = [](const std::vector<std::int64_t>& axes) {
        OnnxModel model;
        model.input("x", {"batch", "32", "7", "7"}).output("y");
        OnnxModel::attribute(model.node("ReduceMean", {"x"}, {"y"}), "axes", axes);
        return only_op(model.import()).kind;
    };
    CHECK(kind({2, 3}) == OpKind::global_pool);
    for (const auto& axes : std::vector<std::vector<std::int64_t>>{{2}, {1, 2}, {1, 3}, {2, 1}, {2, 0}, {1, 2, 3}})
        CHECK(kind(axes) == OpKind::reduce);
}

TEST_CASE("attention whose factors were scaled before the product is fused attention, other attention stays") {
    // Under a mask of true and false the exporter adds 0 or -inf and turns rows of nothing, which are NaN, to 0.
    const auto program = [](bool scaled_before, bool masked = false) {
        Program p;
        if (masked) p.model.input("allowed", {"batch", "1", "seq", "seq"}, ::onnx::TensorProto::BOOL);
        p.model.input("q", {"batch", "4", "seq", "16"})
            .input("kt", {"batch", "seq", "4", "16"})
            .input("v", {"batch", "4", "seq", "16"});
        const std::string k = p.apply("Transpose", {"kt"});
        OnnxModel::attribute(*p.last, "perm", std::vector<std::int64_t>{0, 2, 3, 1});
        std::string scores =
            scaled_before
                ? p.apply("MatMul", {p.apply("Mul", {"q", p.scalar(0.5F)}), p.apply("Mul", {k, p.scalar(0.5F)})})
                : p.apply("Div", {p.apply("MatMul", {"q", k}), p.scalar(4)});
        if (masked) scores = p.apply("Add", {scores, p.apply("Where", {"allowed", p.scalar(0), p.scalar(-INFINITY)})});
        std::string weights = p.apply("Softmax", {scores});
        if (masked) weights = p.apply("Where", {p.apply("IsNaN", {weights}), p.scalar(0), weights});
        return p.finish(p.apply("MatMul", {weights, "v"}));
    };
    const Graph masked = program(true, true);
    REQUIRE_MESSAGE(masked.ops.size() == 2, to_text(masked));
    CHECK(masked.ops[1].kind == OpKind::attention);
    CHECK(masked.tensors[masked.ops[1].inputs.at(3)].name == "allowed");
    const Graph fused = program(true);
    REQUIRE(fused.ops.size() == 2);
    CHECK(fused.ops[0].kind == OpKind::transpose);
    CHECK(fused.ops[1].kind == OpKind::attention);
    const Tensor& keys = fused.tensors[fused.ops[1].inputs[1]];
    CHECK(fused.expressions.to_string(keys.shape[2]) == "seq");
    CHECK(fused.expressions.to_string(keys.shape[3]) == "16");
    CHECK(program(false).ops.size() == 5);
}

TEST_CASE("attention under a mask is one operator if the exporter names it so, and reads the mask itself") {
    for (const bool called : {true, false}) {
        Program p;
        p.model.input("q", {"batch", "4", "seq", "16"}).input("k", {"batch", "4", "seq", "16"});
        p.model.input("v", {"batch", "4", "seq", "16"});
        p.model.input("kept", {"batch", "1", "1", "seq"});
        const std::string kept = p.apply("Cast", {"kept"});
        OnnxModel::attribute(*p.last, "to", std::int64_t{::onnx::TensorProto::BOOL});
        const std::string turned = p.apply("Transpose", {"k"});
        OnnxModel::attribute(*p.last, "perm", std::vector<std::int64_t>{0, 1, 3, 2});
        const std::string zero = p.scalar(0);
        const std::string added = p.apply("Where", {kept, zero, p.scalar(-1e9F)});
        const std::string scores = p.apply("Add", {p.apply("MatMul", {"q", turned}), added});
        const std::string weights = p.apply("Softmax", {scores});
        const std::string finite = p.apply("Where", {p.apply("IsNaN", {weights}), zero, weights});
        const std::string y = p.apply("MatMul", {finite, "v"});
        p.last->set_name(called ? "node_scaled_dot_product_attention" : "node_matmul_1");
        const Graph graph = p.finish(y);
        const auto fused =
            std::find_if(graph.ops.begin(), graph.ops.end(), [](const Op& op) { return op.kind == OpKind::attention; });
        REQUIRE((fused != graph.ops.end()) == called);
        if (!called) continue;
        CHECK(graph.ops.size() == 2);  // the mask and the attention
        REQUIRE(fused->inputs.size() == 4);
        CHECK(graph.tensors[fused->inputs[3]].dtype == DType::boolean);
    }
}

TEST_CASE(
    "a scalar operand of add, subtract or divide is not a tensor operand, and a missing permutation is not followed") {
    const std::string scaled =
        "graph g\ninput %q f32[2,4,8,16]\ninput %k f32[2,4,8,16]\nconstant %c f32[]\n"
        "%qs f32[2,4,8,16] = pointwise(%q, %c) {function=\"mul\" scalar=0.35}\n";
    const std::string attended =
        "%p f32[2,4,8,8] = softmax(%a) {axis=3}\n%o f32[2,4,8,16] = matmul(%p, %q)\noutput %o\n";
    for (const std::string& text :
         {scaled +
              "%kt f32[2,4,16,8] = transpose(%k) {perm=[0,1,3,2]}\n"
              "%ks f32[2,4,16,8] = pointwise(%kt, %c) {function=\"mul\" scalar=0.35}\n"
              "%s f32[2,4,8,8] = matmul(%qs, %ks)\n%a f32[2,4,8,8] = pointwise(%s) {function=\"add\" scalar=1.0}\n" +
              attended,
          scaled +
              "%kt f32[2,4,16,8] = transpose(%k)\n"
              "%ks f32[2,4,16,8] = pointwise(%kt, %c) {function=\"mul\" scalar=0.35}\n"
              "%a f32[2,4,8,8] = matmul(%qs, %ks)\n" +
              attended,
          std::string("graph g\ninput %x f32[2,8,64]\n%d f32[2,8,64] = pointwise(%x) {function=\"sub\" scalar=1.0}\n"
                      "%s f32[2,8,64] = pointwise(%d, %d) {function=\"mul\"}\n"
                      "%m f32[2,8,1] = reduce(%s) {function=\"mean\" axes=[2] keepdims=1}\n"
                      "%e f32[2,8,1] = pointwise(%m) {function=\"add\" scalar=1e-05}\n"
                      "%r f32[2,8,1] = pointwise(%e) {function=\"sqrt\"}\n"
                      "%h f32[2,8,1] = pointwise(%r) {function=\"div\" scalar=2.0}\noutput %h\n")}) {
        Graph graph = parse_text_graph(text);
        const std::string before = to_text(graph);
        canonicalize(graph, SpelledOut::recognise);
        CHECK(to_text(graph) == before);
    }
}

TEST_CASE("views get the strides of eager PyTorch; what needs a copy is contiguous") {
    Graph graph = parse_text_graph(R"(graph heads
input %x f32[batch,seq,12,64]
%t f32[batch,12,seq,64] = transpose(%x) {perm=[0,2,1,3]}
%k f32[batch,12,64,seq] = transpose(%t) {perm=[0,1,3,2]}
%r f32[batch,seq,12,64] = transpose(%t) {perm=[0,2,1,3]}
%m f32[batch,seq,768] = reshape(%t)
%u f32[batch,1,12,seq,64] = reshape(%t)
%s f32[batch,12,8,64] = slice(%x) {axes=[1]}
%g f32[batch,12,seq,64] = pointwise(%t) {function="relu"}
%e f32[5,batch,seq,12,64] = expand(%x)
output %k
output %r
output %m
output %u
output %s
output %g
output %e
)");
    propagate_strides(graph);
    const auto strides = [&](const std::string& name) {
        std::string text;
        for (const Tensor& tensor : graph.tensors) {
            if (tensor.name != name) continue;
            for (const Expression e : tensor.strides)
                text += (text.empty() ? "" : ",") + graph.expressions.to_string(e);
        }
        return text;
    };
    CHECK(strides("t") == "768*seq,64,768,1");
    CHECK(strides("k") == "768*seq,64,1,768");
    CHECK(strides("r") == "");  // back in memory order
    CHECK(strides("m") == "");  // a copy
    CHECK(strides("u").ends_with("64,768,1"));
    CHECK(strides("s") == "768*seq,768,64,1");
    CHECK(strides("g") == strides("t"));
    CHECK(strides("e") == "0,768*seq,768,64,1");
}
