#include <doctest/doctest.h>

#include "ftax/text_graph.hpp"
#include "ftax/work.hpp"
#include "graphs/aten/aten_call.hpp"
#include "graphs/aten/aten_table.hpp"
#include "graphs/base/data_rows.hpp"
#include "graphs/base/embedded.hpp"
#include "graphs/loading.hpp"
#include "tests/failure.hpp"

using namespace ftax;

TEST_CASE("every operator of data/aten_operators.tsv is in one row, whose functions there are") {
    std::size_t operators = 0;
    for_each_data_row(embedded_text("data/aten_operators.tsv"), [&](DataRow row) {
        const auto words = words_of(row.text());
        const OpKind kind = op_kind_from_name(row.text()).value();
        const bool shaped = !row.text().empty();
        for (const std::string_view word : words) {
            const std::string name(word.substr(0, word.find('=')));
            CAPTURE(name);
            const AtenRow* const found = find_aten_row("aten::" + name);
            REQUIRE(found);
            CHECK(found->kind == kind);
            CHECK((found->shape || found->edit) == shaped);
            ++operators;
        }
    });
    CHECK(operators > 400);
    CHECK(find_aten_row("aten::gelu_") == find_aten_row("aten::gelu"));
    CHECK_FALSE(find_aten_row("aten::no_such_operator"));
}

TEST_CASE("the fast path of multi-head attention is the products and the fused attention that it runs") {
    Graph graph;
    const auto tensor = [&](const std::string& name, const std::vector<std::int64_t>& dims) {
        Tensor result;
        result.name = name;
        for (const std::int64_t dim : dims) result.shape.push_back(graph.expressions.constant(dim));
        graph.tensors.push_back(std::move(result));
        return static_cast<TensorId>(graph.tensors.size() - 1);
    };
    const TensorId x = tensor("x", {2, 5, 12});
    AtenCall call;
    call.target = "aten::_native_multi_head_attention";
    call.name = "attention";
    for (const char* operand : {"query", "key", "value"}) call.arguments.push_back({operand, {x}, {}, {}, {}, {}});
    call.arguments.push_back({"embed_dim", {}, {12}, {}, {}, {}});
    call.arguments.push_back({"num_head", {}, {3}, {}, {}, {}});
    call.arguments.push_back({"qkv_weight", {tensor("qkv_weight", {36, 12})}, {}, {}, {}, {}});
    call.arguments.push_back({"qkv_bias", {tensor("qkv_bias", {36})}, {}, {}, {}, {}});
    call.arguments.push_back({"proj_weight", {tensor("proj_weight", {12, 12})}, {}, {}, {}, {}});
    call.arguments.push_back({"proj_bias", {tensor("proj_bias", {12})}, {}, {}, {}, {}});
    call.outputs = {tensor("y", {2, 5, 12})};
    append_aten(graph, call);

    std::vector<OpKind> kinds;
    std::int64_t flops = 0;
    const BoundShapes bound = bind(graph, {});
    for (const Op& op : graph.ops) {
        kinds.push_back(op.kind);
        if (op.kind == OpKind::linear) flops += work_of(graph, op, bound).flops;
    }
    CHECK(kinds == std::vector{OpKind::linear, OpKind::split, OpKind::attention, OpKind::reshape, OpKind::linear});
    CHECK(flops == 2 * (2 * 5 * 12 * 36) + 2 * (2 * 5 * 12 * 12));
    CHECK(graph.tensors[call.outputs[0]].producer == graph.ops.size() - 1);
}

TEST_CASE("the fast path of an encoder layer is its attention, two norms and two linear layers") {
    for (const bool norm_first : {false, true}) {
        Graph graph;
        const auto tensor = [&](const std::string& name, const std::vector<std::int64_t>& dims) {
            Tensor result;
            result.name = name;
            for (const std::int64_t dim : dims) result.shape.push_back(graph.expressions.constant(dim));
            graph.tensors.push_back(std::move(result));
            return static_cast<TensorId>(graph.tensors.size() - 1);
        };
        AtenCall call;
        call.target = "aten::_transformer_encoder_layer_fwd";
        call.name = "layer";
        const auto add = [&](const char* name, const std::vector<std::int64_t>& dims) {
            call.arguments.push_back({name, {tensor(name, dims)}, {}, {}, {}, {}});
        };
        add("src", {2, 5, 12});
        call.arguments.push_back({"embed_dim", {}, {12}, {}, {}, {}});
        call.arguments.push_back({"num_heads", {}, {3}, {}, {}, {}});
        add("qkv_weight", {36, 12}), add("qkv_bias", {36}), add("proj_weight", {12, 12}), add("proj_bias", {12});
        call.arguments.push_back({"use_gelu", {}, {1}, {}, {}, {}});
        call.arguments.push_back({"norm_first", {}, {norm_first ? 1 : 0}, {}, {}, {}});
        add("norm_weight_1", {12}), add("norm_bias_1", {12}), add("norm_weight_2", {12}), add("norm_bias_2", {12});
        add("ffn_weight_1", {48, 12}), add("ffn_bias_1", {48}), add("ffn_weight_2", {12, 48}), add("ffn_bias_2", {12});
        call.outputs = {tensor("y", {2, 5, 12})};
        append_aten(graph, call);

        std::int64_t flops = 0, norms = 0;
        const BoundShapes bound = bind(graph, {});
        for (const Op& op : graph.ops) {
            norms += op.kind == OpKind::layer_norm;
            if (op.kind == OpKind::linear) flops += work_of(graph, op, bound).flops;
        }
        CHECK(norms == 2);
        CHECK(flops == 2 * (2 * 5 * 12 * (36 + 12 + 48 + 48)));
        CHECK(graph.tensors[call.outputs[0]].producer == graph.ops.size() - 1);
        CHECK(graph.ops.front().kind == (norm_first ? OpKind::layer_norm : OpKind::linear));
    }
}

TEST_CASE("an empty vector before the other parts of a concatenation does not count") {
    Graph graph;
    for (const auto& shape : {std::vector<std::int64_t>{0}, {2, 4, 7, 8}, {2, 4, 7, 8}}) {
        Tensor& tensor = graph.tensors.emplace_back();
        tensor.name = std::to_string(graph.tensors.size());
        for (const std::int64_t dim : shape) tensor.shape.push_back(graph.expressions.constant(dim));
    }
    AtenCall call;
    call.target = "aten::cat";
    call.name = "keys";
    call.arguments.push_back({"tensors", {0, 1}, {}, {}, {}, {}});
    call.arguments.push_back({"dim", {}, {-2}, {}, {}, {}});
    call.outputs = {2};
    append_aten(graph, call);
    REQUIRE(graph.ops.size() == 1);
    CHECK(graph.ops[0].kind == OpKind::concat);
    CHECK(graph.ops[0].integer("axis", -1) == 2);
    const std::int64_t bytes = 2 * 4 * 7 * 8 * 4;
    const Work work = work_of(graph, graph.ops[0], bind(graph, {}));
    CHECK(work.read_bytes == bytes);
    CHECK(work.write_bytes == bytes);
}

TEST_CASE("a tensordot is one product of the dimensions that it sums") {
    Graph graph;
    for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{7, 3, 4}, {4, 5, 3}, {7, 5}}) {
        Tensor& tensor = graph.tensors.emplace_back();
        tensor.name = std::to_string(graph.tensors.size());
        for (const std::int64_t dim : shape) tensor.shape.push_back(graph.expressions.constant(dim));
    }
    AtenCall call;
    call.target = "aten::tensordot";
    call.name = "product";
    call.arguments = {{"self", {0}, {}, {}, {}, {}},
                      {"other", {1}, {}, {}, {}, {}},
                      {"dims_self", {}, {1, 2}, {}, {}, {}},
                      {"dims_other", {}, {2, 0}, {}, {}, {}}};
    call.outputs = {2};
    append_aten(graph, call);
    CHECK(total_work(graph, bind(graph, {})).flops == 2 * 7 * 5 * 3 * 4);
}

TEST_CASE("an einsum of three operands is taken from the left, with a product by element where nothing is summed") {
    Graph graph;
    for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{7, 3}, {7, 3}, {3, 5}, {7, 5}}) {
        Tensor& tensor = graph.tensors.emplace_back();
        tensor.name = std::to_string(graph.tensors.size());
        for (const std::int64_t dim : shape) tensor.shape.push_back(graph.expressions.constant(dim));
    }
    AtenCall call;
    call.target = "aten::einsum";
    call.name = "sum";
    call.arguments = {{.name = "equation", .text = "ij,ij,jk->ik"}, {.name = "tensors", .tensors = {0, 1, 2}}};
    call.outputs = {3};
    append_aten(graph, call);
    CHECK(graph.ops.front().kind == OpKind::pointwise);
    CHECK(total_work(graph, bind(graph, {})).flops == 7 * 3 + 2 * 7 * 5 * 3);
    // j of the first operand alone would have to be summed first.
    graph.ops.clear();
    call.arguments[0].text = "ij,il,lk->ik";
    append_aten(graph, call);
    CHECK(graph.ops.front().kind == OpKind::custom);
}

TEST_CASE("losses and distances are the kernels that they run") {
    const auto kernels = [](const char* target, const std::vector<const char*>& operands, DType second = DType::f32) {
        Graph graph;
        AtenCall call;
        call.target = target;
        call.name = "loss";
        for (const char* operand : operands) {
            const bool labels = second != DType::f32 && call.arguments.size() == 1;
            Tensor& tensor = graph.tensors.emplace_back();
            tensor.dtype = labels ? second : DType::f32;
            tensor.shape.push_back(graph.expressions.constant(8));
            if (!labels) tensor.shape.push_back(graph.expressions.constant(10));
            call.arguments.push_back({.name = operand, .tensors = {static_cast<TensorId>(graph.tensors.size() - 1)}});
        }
        graph.tensors.emplace_back();
        call.outputs = {static_cast<TensorId>(graph.tensors.size() - 1)};
        append_aten(graph, call);
        CHECK(graph.tensors[call.outputs[0]].producer == graph.ops.size() - 1);
        CHECK(graph.ops.front().integer("inner", 0) == 0);
        return graph.ops.size();
    };
    CHECK(kernels("aten::logsumexp", {"self"}) == 9);
    CHECK(kernels("aten::cosine_similarity", {"x1", "x2"}) == 10);
    CHECK(kernels("aten::mse_loss", {"self", "target"}) == 2);
    CHECK(kernels("aten::l1_loss", {"self", "target"}) == 3);
    CHECK(kernels("aten::kl_div", {"self", "target"}) == 4);
    CHECK(kernels("aten::triplet_margin_loss", {"anchor", "positive", "negative"}) == 10);
    CHECK(kernels("aten::cross_entropy_loss", {"self", "target"}, DType::i64) == 2);
}

TEST_CASE("dropout in training is a kernel unless it drops nothing, a batch norm then computes its statistics") {
    const auto appended = [](const char* target, std::vector<AtenArgument> arguments) {
        Graph graph;
        for (int i = 0; i < 2; ++i) {
            Tensor& tensor = graph.tensors.emplace_back();
            for (const std::int64_t dim : {2, 8, 4, 4}) tensor.shape.push_back(graph.expressions.constant(dim));
        }
        arguments.push_back({.name = "input", .tensors = {0}});
        AtenCall call;
        call.target = target;
        call.arguments = std::move(arguments);
        call.outputs = {1};
        append_aten(graph, call);
        return graph.ops.back();
    };
    const AtenArgument train{.name = "train", .integers = {1}};
    CHECK(appended("aten::dropout", {train, {.name = "p", .number = 0.1}}).kind == OpKind::pointwise);
    CHECK(appended("aten::dropout", {train, {.name = "p", .number = 0.0}}).kind == OpKind::identity);
    CHECK(appended("aten::dropout", {{.name = "p", .number = 0.1}}).kind == OpKind::identity);
    CHECK(appended("aten::batch_norm", {{.name = "training", .integers = {1}}}).integer("training", 0) == 1);
    CHECK(appended("aten::batch_norm", {{.name = "training", .integers = {0}}}).attributes.empty());
}

TEST_CASE("a number that torch.export wraps into a tensor launches no kernel, a copied tensor does") {
    Graph graph;
    const auto tensor = [&](const std::vector<std::int64_t>& sizes) {
        Tensor t;
        for (const std::int64_t size : sizes) t.shape.push_back(graph.expressions.constant(size));
        graph.tensors.push_back(std::move(t));
        return static_cast<TensorId>(graph.tensors.size() - 1);
    };
    for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{}, {4}}) {
        AtenCall call;
        call.target = "aten::lift_fresh_copy";
        call.arguments = {{.name = "self", .tensors = {tensor(sizes)}}};
        call.outputs = {tensor(sizes)};
        append_aten(graph, call);
        CHECK(graph.ops.back().kind == (sizes.empty() ? OpKind::identity : OpKind::copy));
    }
}

TEST_CASE("a product of rows sorted by expert is one, whether of torch or of transformers") {
    for (const auto& [target, first, second] :
         {std::tuple("aten::_grouped_mm", "self", "mat2"), {"transformers::grouped_mm_fallback", "input", "weight"}}) {
        Graph graph = parse_text_graph(
            "input %x f32[6,64]\nweight %w f32[8,64,128]\ninput %o i64[8]\n%y f32[6,128] = pointwise(%x)\noutput %y\n");
        graph.ops.clear();
        AtenCall call;
        call.target = target;
        call.arguments = {
            {.name = first, .tensors = {0}}, {.name = second, .tensors = {1}}, {.name = "offs", .tensors = {2}}};
        call.outputs = {3};
        append_aten(graph, call);
        REQUIRE(graph.ops.size() == 1);
        CHECK(graph.ops[0].kind == OpKind::matmul);
        CHECK(graph.ops[0].inputs == std::vector<TensorId>{0, 1});
        CHECK(graph.ops[0].integer("experts", 0) == 8);
    }
}

TEST_CASE("an operator without a rule that takes a weight counts as a product with it") {
    const auto flops = [](const char* operands) {
        const Graph graph =
            parse_text_graph(std::string("input %x f32[8,64]\ninput %i i64[8]\nweight %w f32[32,64]\n") +
                             "weight %b f32[32]\n%y f32[8,32] = custom(" + operands + ")\noutput %y\n");
        return total_work(graph, bind(graph, {})).flops;
    };
    CHECK(flops("%x,%w,%b") == 2 * 8 * 32 * 64);
    CHECK(flops("%x,%b") == 8 * 32);
    CHECK(flops("%w,%i") == 8 * 32);  // a lookup
}

TEST_CASE("BAD_INPUTS 17: layers of a recurrence are multiplied, not walked through") {
    const auto flops = [](const std::string& layers) {
        const Graph graph = parse_text_graph(
            "input %x f32[2,3,8]\n%y f32[2,3,10] = recurrent(%x) {cell=\"lstm\" hidden=5 layers=" + layers +
            " directions=2}\noutput %y\n");
        return work_of(graph, graph.ops[0], bind(graph, {})).flops;
    };
    // Steps × gates × directions × hidden × (input + hidden); the second and third layer read both directions.
    CHECK(flops("3") == 2 * (2 * 3) * 4 * 2 * 5 * ((8 + 5) + 2 * (10 + 5)));
    CHECK(test::failure_of([&] { return flops("1000000000000000000"); }).code == ErrorCode::limit);
}

TEST_CASE("targets are known that decompose and those that are one operator, others are not") {
    for (const char* known : {"aten::relu", "aten::linear", "aten::_native_multi_head_attention"})
        CHECK(is_known_aten(known));
    for (const char* unknown : {"aten::no_such_operator", "mine::relu", ""}) CHECK_FALSE(is_known_aten(unknown));
}

namespace {

/// The graph of one call on tensors of these shapes; inputs whose name begins with w are weights.
struct OneCall {
    Graph graph;
    AtenCall call;

    OneCall(const char* target, const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& operands,
            const std::vector<std::int64_t>& result) {
        call.target = target;
        call.name = "call";
        for (const auto& [name, dims] : operands) call.arguments.push_back({name, {add(name, dims)}, {}, {}, {}, {}});
        call.outputs = {add("y", result)};
    }
    OneCall& integers(const char* name, const std::vector<std::int64_t>& values) {
        call.arguments.push_back({name, {}, values, {}, {}, {}});
        return *this;
    }
    Op append() {
        append_aten(graph, call);
        return graph.ops.back();
    }

  private:
    TensorId add(const std::string& name, const std::vector<std::int64_t>& dims) {
        Tensor tensor;
        tensor.name = name;
        if (name.starts_with("mat2")) tensor.role = TensorRole::weight;
        for (const std::int64_t dim : dims) tensor.shape.push_back(graph.expressions.constant(dim));
        graph.tensors.push_back(std::move(tensor));
        return static_cast<TensorId>(graph.tensors.size() - 1);
    }
};

}  // namespace

TEST_CASE("a permutation has every axis once") {
    const auto permute = [](const std::vector<std::int64_t>& dims) {
        return test::failure_of([&] {
            return OneCall("aten::permute", {{"self", {2, 3, 4}}}, {4, 2, 3}).integers("dims", dims).append();
        });
    };
    CHECK_FALSE(permute({2, 0, -2}));
    for (const std::vector<std::int64_t>& wrong :
         std::vector<std::vector<std::int64_t>>{{0, 1}, {0, 0, 1}, {0, 1, 2, 2}})
        CHECK(permute(wrong).says("is not a permutation of 3 axes"));
}

TEST_CASE("addmm of a bias vector is a linear layer, of a matrix a product and a sum") {
    const auto kind = [](const std::vector<std::int64_t>& self) {
        return OneCall("aten::addmm", {{"self", self}, {"mat1", {5, 16}}, {"mat2", {16, 8}}}, {5, 8}).append().kind;
    };
    CHECK(kind({8}) == OpKind::linear);
    CHECK(kind({5, 8}) != OpKind::linear);
}

TEST_CASE("a dimension that a call leaves out is that of PyTorch's schema, the last or the first") {
    const auto axis = [](const char* target, const std::vector<std::int64_t>& result) {
        return OneCall(target, {{"self", {6, 4, 8}}}, result).append().integer("axis", -9);
    };
    CHECK(axis("aten::sort", {6, 4, 8}) == 2);
    CHECK(axis("aten::argsort", {6, 4, 8}) == 2);
    CHECK(OneCall("aten::topk", {{"self", {6, 4, 8}}}, {6, 4, 3}).integers("k", {3}).append().integer("axis", -9) == 2);
    CHECK(
        OneCall("aten::chunk", {{"self", {6, 4, 8}}}, {3, 4, 8}).integers("chunks", {2}).append().integer("axis", -9) ==
        0);
    CHECK(axis("aten::unbind", {4, 8}) == 0);
    CHECK(axis("aten::cat", {6, 4, 8}) == 0);
}

TEST_CASE("torch's numbers of element types lead back to themselves, all others to none") {
    for (std::int64_t number = -3; number < 60; ++number) {
        const DType type = dtype_of_scalar_type(number);
        CAPTURE(number);
        if (type != DType::unknown) CHECK(scalar_type_of(type) == number);
        if (number < 0 || number > 15) CHECK(type == DType::unknown);
    }
}

TEST_CASE("the first bytes of a format are not that format until they are all there") {
    using Formats = std::pair<std::string, FileFormat>;
    const Formats formats[] = {{"PK", FileFormat::zip},
                               {std::string("\x80\x02"), FileFormat::pickle},
                               {"\x89HDF\r\n", FileFormat::hdf5},
                               {"GGUF", FileFormat::gguf},
                               {"ftrt", FileFormat::engine},
                               {std::string("\xff\xfe{\0", 4), FileFormat::utf16},
                               {"\x1f\x8b", FileFormat::gzip},
                               {"\x7f"
                                "ELF",
                                FileFormat::elf}};
    CHECK(format_of("") == FileFormat::empty);
    for (const Formats& format : formats) {
        const std::string& magic = format.first;
        CAPTURE(magic);
        for (std::size_t length = 1; length < magic.size(); ++length)
            CHECK(format_of(magic.substr(0, length)) != format.second);
        CHECK(format_of(magic) == format.second);
        CHECK(format_of(magic + "more") == format.second);
    }
    for (int protocol = 0; protocol < 128; ++protocol)
        CHECK((format_of(std::string("\x80") + static_cast<char>(protocol)) == FileFormat::pickle) == (protocol <= 5));
}
