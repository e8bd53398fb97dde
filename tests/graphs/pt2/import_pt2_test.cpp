#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "ftax/error.hpp"
#include "ftax/import.hpp"
#include "ftax/predict.hpp"
#include "ftax/text_graph.hpp"
#include "ftax/work.hpp"
#include "graphs/ir/symbol_names.hpp"
#include "tests/failure.hpp"
#include "tests/graphs/pt2/archives.hpp"

using namespace ftax;
using namespace ftax::test;

namespace {

const std::string symbolic_batch =
    R"json({"as_expr": {"expr_str": "Symbol('s77', positive=True, integer=True)", "hint": {"as_int": 2}}})json";
const std::string fixed_batch = R"({"as_int": 1})";

Graph load_members(const std::vector<std::pair<std::string, std::string>>& members, const ImportOptions& options = {}) {
    const TemporaryFile file("model.pt2", zip_bytes(members));
    return load_graph(file.path(), options);
}

Graph load_program(const std::string& program, const ImportOptions& options = {}) {
    return load_members({{"model/models/model.json", program}}, options);
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
    const std::size_t at = text.find(what);
    REQUIRE(at != std::string::npos);
    return text.replace(at, what.size(), with);
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a program is the same wherever the parts that are unpacked end") {
    constexpr std::size_t part = std::size_t{1} << 18;  // see archive.cpp
    const std::string program = replaced(small_program(symbolic_batch), R"("metadata": {)",
                                         R"("metadata": {"stack_trace": "File \"m.py\", {[\\", "torch_fn": "a:b", )");
    const std::string whole = to_text(load_program(program));
    CHECK(contains(whole, "@conv"));
    for (std::size_t left = 1; left < program.size(); left += 11) {
        CAPTURE(program.substr(0, left));
        REQUIRE(to_text(load_program(std::string(part - left, ' ') + program)) == whole);
    }
}

TEST_CASE("a .pt2 program becomes operators with shapes, strides, modules and weights") {
    const Graph graph = load_program(small_program(symbolic_batch));
    REQUIRE(graph.ops.size() == 2);
    const Op& conv = graph.ops[0];
    CHECK(conv.kind == OpKind::conv);
    CHECK(conv.source == "aten::conv2d");
    CHECK(conv.module == "conv");
    CHECK(conv.inputs.size() == 2);
    CHECK(graph.tensors[conv.inputs[1]].name == "conv.weight");
    CHECK(graph.tensors[conv.inputs[1]].role == TensorRole::weight);
    CHECK(conv.integers("stride")[0] == 2);
    CHECK(conv.integers("pad_end")[1] == 1);
    CHECK(graph.ops[1].text("function") == "relu");
    REQUIRE(graph.module_calls.size() == 2);
    CHECK(graph.module_calls[1].path == "conv");
    CHECK(graph.module_calls[1].type == "torch.nn.modules.conv.Conv2d");
    // torch numbers its symbols; the first dimension of an input is the batch.
    CHECK(graph.expressions.symbols() == std::vector<std::string>{"batch"});
    REQUIRE(graph.warnings.size() == 1);
    CHECK(contains(graph.warnings[0], "called batch"));
    // 2 FLOPs × 4·8·5·5 outputs × 27 weights each, one FLOP per element of the ReLU
    CHECK(total_work(graph, bind(graph, {{"batch", 4}})).flops == 2 * 800 * 27 + 800);
}

TEST_CASE("dimensions that torch numbers are called by what they are, or by input and place") {
    SymbolNames names;
    names.add_input("input_ids", {"s0", "1"}, true);
    names.add_input("attention_mask", {"s0", "s1"}, true);
    names.add_input("past_key_values_0_key", {"s0", "8", "s7", "64"}, false);
    names.add_input("past_key_values_0_value", {"s0", "8", "s7", "64"}, false);
    names.add_input("pixels", {"s0", "3", "s9", "s9"}, false);
    CHECK(names.rename("s0") == "batch");
    CHECK(names.rename("s1") == "attention_mask.1");
    CHECK(names.rename("s7 + 1") == "past + 1");
    CHECK(names.rename("s9*s9") == "pixels.2*pixels.2");
    CHECK(names.rename("s12") == "s12");  // not an input's symbol
    CHECK(names.warnings() ==
          std::vector<std::string>{
              "dimensions that the exporter numbered are called batch, attention_mask.1, past, pixels.2"});
    // Two rows of node numbers are no texts; one text may be.
    SymbolNames edges, text;
    edges.add_input("edges", {"2", "s5"}, true);
    CHECK(edges.rename("s5") == "edges.1");
    text.add_input("tokens", {"1", "s5"}, true);
    CHECK(text.rename("s5") == "seq");
}

TEST_CASE("a batch beyond the range that the program was exported for is warned of") {
    const std::string program = replaced(
        small_program(symbolic_batch), R"("range_constraints": {})",
        R"("range_constraints": {"s77": {"min_val": 2, "max_val": 64}, "s9": {"min_val": 0, "max_val": null}})");
    const Graph graph = load_program(program);
    REQUIRE(graph.ranges.size() == 1);  // nothing is known of s9
    CHECK(to_text(parse_text_graph(to_text(graph))) == to_text(graph));
    Predictor predictor(graph, device_profile("t4"), framework_profile("pytorch-eager"));
    CHECK(predictor.predict({{"batch", 1}}).warnings.empty());  // torch writes 2 for whatever it does not specialise
    CHECK(predictor.predict({{"batch", 64}}).warnings.empty());
    const auto warnings = predictor.predict({{"batch", 65}}).warnings;
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0] == "batch = 65 lies outside the 0 to 64 that the model allows");

    ImportOptions options;
    options.input_shapes = {{"x", {"n", "3", "10", "10"}, std::nullopt}};
    const Graph renamed = load_program(program, options);
    REQUIRE(renamed.ranges.size() == 1);
    CHECK(renamed.ranges[0].symbol == "n");
    options.input_shapes[0].dims[0] = "128";
    const Graph fixed = load_program(program, options);
    CHECK(fixed.ranges.empty());
    CHECK(fixed.warnings.back() == "batch = 128 lies outside the 0 to 64 that the model allows");
}

TEST_CASE("archive layouts of torch 2.4 and of torch 2.11 hold the same graph") {
    const std::string program = small_program(symbolic_batch);
    const std::string plain = small_program(R"({"as_expr": {"expr_str": "s77", "hint": {"as_int": 2}}})");
    const Graph newest = load_members({{"any name/models/model.json", program}, {"any name/archive_format", "pt2"}});
    Graph oldest = load_members({{"serialized_exported_program.json", plain}, {"serialized_state_dict.pt", "weights"}});
    CHECK(to_text(newest) == to_text(oldest));
}

TEST_CASE("module calls recorded beside the program replace those seen in it") {
    const Graph graph =
        load_members({{"m/models/model.json", small_program(fixed_batch)},
                      {"m/extra/module_calls.json", R"([["","Net"],["conv","Conv2d"],["act","Identity"]])"}});
    REQUIRE(graph.module_calls.size() == 3);
    CHECK(graph.module_calls[2].type == "Identity");
}

TEST_CASE("a shape given by the user binds or renames symbols and cannot change what the file fixes") {
    const auto with_shape = [](const std::string& batch, std::vector<std::string> dims) {
        ImportOptions options;
        options.input_shapes = {{"x", std::move(dims), std::nullopt}};
        return load_program(small_program(batch), options);
    };
    CHECK(with_shape(symbolic_batch, {"4", "3", "10", "10"}).expressions.symbols().empty());
    CHECK(with_shape(symbolic_batch, {"n", "3", "10", "10"}).expressions.symbols() == std::vector<std::string>{"n"});
    CHECK(failure_of([&] { with_shape(symbolic_batch, {"4", "3", "20", "10"}); }).code == ErrorCode::usage);
    CHECK(failure_of([&] { with_shape(symbolic_batch, {"4", "3"}); }).code == ErrorCode::usage);
}

TEST_CASE("an einsum becomes the product, sum and permutation that PyTorch makes of it") {
    const auto sizes = [](const std::vector<int>& dims) {
        std::string text;
        for (const int dim : dims)
            text += std::string(text.empty() ? "" : ", ") + R"({"as_int": )" + std::to_string(dim) + "}";
        return R"({"dtype": 7, "sizes": [)" + text + "]}";
    };
    const auto program = [&](const std::string& equation, const std::vector<std::vector<int>>& operands,
                             const std::vector<int>& result) {
        std::string inputs, values, tensors;
        for (std::size_t i = 0; i < operands.size(); ++i) {
            const std::string name = "\"x" + std::to_string(i) + '"';
            inputs += std::string(i ? ", " : "") + R"({"user_input": {"arg": {"as_tensor": {"name": )" + name + "}}}}";
            tensors += std::string(i ? ", " : "") + R"({"name": )" + name + "}";
            values += name + ": " + sizes(operands[i]) + ", ";
        }
        return load_program(R"({"schema_version": {"major": 8}, "graph_module": {"signature": {"input_specs": [)" +
                            inputs + R"(]}, "graph": {"inputs": [], "outputs": [{"as_tensor": {"name": "s"}}],
            "sym_int_values": {}, "tensor_values": {)" +
                            values + R"("s": )" + sizes(result) + R"(},
            "nodes": [{"target": "torch.ops.aten.einsum.default", "metadata": {}, "inputs": [
                {"name": "equation", "arg": {"as_string": ")" +
                            equation + R"("}}, {"name": "tensors", "arg": {"as_tensors": [)" + tensors + R"(]}}],
                "outputs": [{"as_tensor": {"name": "s"}}]}]}}})");
    };
    const auto macs = [](const Graph& graph) {
        std::int64_t flops = 0;
        for (const Op& op : graph.ops) {
            CHECK(op.kind != OpKind::custom);
            if (op.kind == OpKind::matmul) flops += work_of(graph, op, bind(graph, {})).flops;
        }
        return flops / 2;
    };
    // b and n are shared, i and j own, d summed
    CHECK(macs(program("bind,jnd->bnij", {{2, 5, 3, 4}, {6, 3, 4}}, {2, 3, 5, 6})) == 2 * 3 * 5 * 6 * 4);
    CHECK(macs(program("...ij,...kj->...ik", {{2, 3, 5, 4}, {2, 3, 6, 4}}, {2, 3, 5, 6})) == 2 * 3 * 5 * 6 * 4);

    // latents of SD3 and SANA back to an image: no arithmetic
    const Graph permuted = program("nhwpqc->nchpwq", {{2, 16, 16, 2, 2, 4}}, {2, 4, 16, 2, 16, 2});
    REQUIRE(permuted.ops.size() == 1);
    CHECK(permuted.ops[0].kind == OpKind::transpose);
    CHECK(std::ranges::equal(permuted.ops[0].integers("perm"), std::vector{0, 5, 1, 3, 2, 4}));

    const Graph summed = program("abc->ca", {{2, 3, 4}}, {4, 2});
    REQUIRE(summed.ops.size() == 2);
    CHECK(summed.ops[0].kind == OpKind::reduce);
    CHECK(std::ranges::equal(summed.ops[0].integers("axes"), std::vector{1}));
    CHECK(summed.ops[1].kind == OpKind::transpose);

    CHECK(program("aa->a", {{3, 3}}, {3}).ops.at(0).kind == OpKind::custom);  // a diagonal
}

TEST_CASE("BAD_INPUTS 20: a dimension is an expression, and its hint is never taken for the value") {
    const Graph graph = load_program(small_program(
        R"json({"as_expr": {"expr_str": "Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(1))",
                             "hint": {"as_int": 5}}})json"));
    CHECK(graph.expressions.to_string(graph.tensors[graph.inputs[0]].shape[0]) == "2*s0+1");
    CHECK(failure_of([&] { static_cast<void>(bind(graph, {})); }).code == ErrorCode::usage);
}

TEST_CASE("BAD_INPUTS 34: members are never extracted, regardless of their names") {
    const Graph graph = load_members(
        {{"../../escape.txt", "x"}, {"/absolute", "x"}, {"m/models/model.json", small_program(fixed_batch)}});
    CHECK(graph.ops.size() == 2);
    CHECK_FALSE(std::filesystem::exists(std::filesystem::temp_directory_path() / "../../escape.txt"));
}

TEST_CASE("BAD_INPUTS 35: a damaged archive is an invalid model") {
    const std::string good = zip_bytes({{"m/models/model.json", small_program(fixed_batch)}});
    const auto code_of = [](const std::string& bytes) {
        const TemporaryFile file("damaged.pt2", bytes);
        return failure_of([&] { static_cast<void>(load_graph(file.path())); }).code;
    };
    for (const std::size_t length : {std::size_t{2}, std::size_t{30}, good.size() / 2, good.size() - 1}) {
        CHECK(code_of(good.substr(0, length)) == ErrorCode::model);
    }
    std::string wrong_checksum = good;
    const std::size_t directory = good.rfind("PK\x01\x02");
    wrong_checksum[directory + 16] ^= 1;
    CHECK(code_of(wrong_checksum) == ErrorCode::model);
    std::string encrypted = good;
    encrypted[6] |= 1, encrypted[directory + 8] |= 1;
    CHECK(code_of(encrypted) == ErrorCode::model);
    std::string larger = good;  // claims a size the data does not have
    larger[directory + 24] ^= 0x40;
    CHECK(code_of(larger) == ErrorCode::model);
}

TEST_CASE("BAD_INPUTS 35: two members of one name are refused as ambiguous") {
    std::string bytes = zip_bytes({{"m/models/model.json", small_program(fixed_batch)}, {"m/models/model.jsoX", "{}"}});
    for (std::size_t at = bytes.find(".jsoX"); at != std::string::npos; at = bytes.find(".jsoX")) bytes[at + 4] = 'n';
    const TemporaryFile file("twice.pt2", bytes);
    const Failure failure = failure_of([&] { static_cast<void>(load_graph(file.path())); });
    CHECK(failure.code == ErrorCode::model);
}

TEST_CASE("BAD_INPUTS 36: bombs in ZIP and JSON end at a limit") {
    ImportOptions small;
    small.max_bytes = 1 << 16;
    const std::string padded = small_program(fixed_batch) + std::string(1 << 20, ' ');
    CHECK(failure_of([&] { load_program(padded, small); }).code == ErrorCode::limit);
    const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
    CHECK(failure_of([&] { load_program(deep); }).code == ErrorCode::limit);
    ImportOptions few;
    few.max_nodes = 1;
    CHECK(failure_of([&] { load_program(small_program(fixed_batch), few); }).code == ErrorCode::limit);
}

TEST_CASE("BAD_INPUTS 36: invalid JSON is an invalid model") {
    for (const char* text :
         {"", "{", "NaN", "[1e400]", "{\"a\": \"\\ud800\"}", "{}", "[]", "\"x\"", "{\"graph_module\": 1}"}) {
        CAPTURE(text);
        CHECK(failure_of([&] { load_program(text); }).code == ErrorCode::model);
    }
}

TEST_CASE("a .pt2 is cut into nodes wherever its blocks end, whatever its strings hold") {
    const std::string program = small_program(fixed_batch), metadata = R"("metadata": {)";
    const std::string plain = to_text(load_program(program));
    std::string trace = R"( }]\"\\)";
    for (int doubled = 0; doubled < 16; ++doubled) trace += trace;  // more than two blocks
    CHECK(to_text(load_program(replaced(program, metadata, metadata + R"("stack_trace": ")" + trace + "\","))) ==
          plain);
    CHECK(to_text(load_program(replaced(program, metadata, metadata + R"("torch_fn": null,)"))) == plain);
    std::string named = program;
    for (std::size_t at = 0; (at = named.find(R"("relu")", at)) != std::string::npos;)
        named.replace(at, 6, R"("from_node")");
    CHECK(load_program(named).ops[1].name == "from_node");
}

TEST_CASE("nodes of one form in a .pt2 keep the texts that each has, escaped or not, also those that are numbers") {
    const std::string tensor = R"({"dtype": 7, "sizes": [{"as_int": 8}], "strides": [{"as_int": 1}]})";
    const std::vector<std::pair<std::string, std::string>> names{// as they are read and as they are written
                                                                 {"x", "x"},
                                                                 {"1", "1"},
                                                                 {"0", "0"},
                                                                 {"relu", R"(re\u006cu)"},
                                                                 {"Infinity", "Infinity"},
                                                                 {"7, \"é", R"(7, \"é)"}};
    std::string nodes, tensors;
    for (std::size_t i = 0; i < names.size(); ++i) {
        const std::string& name = names[i].second;
        tensors += (i == 0 ? "\"" : ", \"") + name + "\": " + tensor;
        if (i == 0) continue;
        nodes += std::string(i == 1 ? "" : ", ") +
                 R"({"target": "torch.ops.aten.clamp.default", "inputs": [{"name": "self", )" +
                 R"("arg": {"as_tensor": {"name": ")" + names[i - 1].second + R"("}}}, {"name": "min", "arg": )" +
                 R"({"as_float": -Infinity}}], "outputs": [{"as_tensor": {"name": ")" + name +
                 R"("}}], "metadata" : )" + R"({"nn_module_stack": "k,layer)" + std::to_string(i) +
                 R"(,M"}, "name": ")" + name + R"("})";
    }
    const Graph graph = load_program(
        R"({"graph_module": {"graph": {"inputs": [], "nodes": [)" + nodes + R"(], "tensor_values": {)" + tensors +
        R"(}, "sym_int_values": {}, "outputs": []}, "signature": {"input_specs": [{"user_input": {"arg": {"as_tensor": )" +
        R"({"name": "x"}}}}]}}, "range_constraints": {}, "schema_version": {"major": 8, "minor": 2}})");
    REQUIRE(graph.ops.size() == names.size() - 1);
    for (std::size_t i = 1; i < names.size(); ++i) {
        const Op& op = graph.ops[i - 1];
        CHECK(op.name == names[i].first);
        CHECK(op.module == "layer" + std::to_string(i));
        CHECK(graph.tensors[op.inputs[0]].name == names[i - 1].first);
        CHECK(graph.tensors[op.outputs[0]].name == names[i].first);
    }
}

TEST_CASE("BAD_INPUTS 36: a .pt2 cannot name a piece of itself, and errors name the one that is wrong") {
    const std::string program = small_program(fixed_batch), nodes = R"("nodes": [)", values = R"("tensor_values": {)";
    const auto failing = [&](const std::string& what, const std::string& with) {
        return failure_of([&] { load_program(replaced(program, what, with)); });
    };
    for (const char* node : {"0,", "[2],", "[[2]],", "-1,", "null,", "true,"}) {
        CAPTURE(node);
        CHECK(failing(nodes, nodes + node).code == ErrorCode::model);
    }
    CHECK(failing(nodes, R"("nodes": 0, "others": [)").code == ErrorCode::model);
    for (const char* value : {"0", "[2]", "[99]", "[-1]", "null"}) {
        CAPTURE(value);
        CHECK(failing(R"("relu": {"dtype")", R"("relu": )" + std::string(value) + R"(, "other": {"dtype")").code ==
              ErrorCode::model);
    }
    const Failure failure = failing(R"("name": "bias")", R"("name" "bias")");
    CHECK(failure.code == ErrorCode::model);
    CHECK(failure.says("model.json[9]:4:38: inputs[2].name: not valid JSON"));
    ImportOptions few;
    few.max_nodes = 4;
    CHECK(failure_of([&] {
              load_program(replaced(program, R"("torch_version")", R"("a": [1, 2, 3, 4, 5], "torch_version")"), few);
          }).says("model.json: a list of more than 4 values (--max-nodes)"));
}

TEST_CASE("BAD_INPUTS 37: pickles are never decoded, with or without a program next to them") {
    const std::string mark = TemporaryFile("pickle-ran").path();
    std::filesystem::remove(mark);
    const std::string pickle = "cposix\nsystem\n(S'touch " + mark + "'\ntR.";
    const Graph graph = load_members({{"m/data/constants/c.pkl", pickle},
                                      {"m/data/sample_inputs/model.pt", pickle},
                                      {"m/models/model.json", small_program(fixed_batch)}});
    CHECK(graph.ops.size() == 2);
    CHECK(failure_of([&] { load_members({{"archive/data.pkl", pickle}}); }).code == ErrorCode::model);
    const TemporaryFile bare("bare.pt", pickle);
    CHECK(failure_of([&] { static_cast<void>(load_graph(bare.path())); }).code == ErrorCode::model);
    CHECK_FALSE(std::filesystem::exists(mark));
}

TEST_CASE("BAD_INPUTS 39: newer schemas and compiled models say what to do") {
    const std::string newer = replaced(small_program(fixed_batch), "\"major\": 8", "\"major\": 9");
    const Failure schema = failure_of([&] { load_program(newer); });
    CHECK(schema.code == ErrorCode::model);
    CHECK(contains(schema.message, "re-export"));
    const Failure compiled = failure_of([&] {
        load_members({{"m/data/aotinductor/model/x.so",
                       "\x7f"
                       "ELF"}});
    });
    CHECK(compiled.code == ErrorCode::model);
    CHECK(contains(compiled.message, "re-export"));
}

TEST_CASE("BAD_INPUTS 40: weights without a graph say what to do") {
    const Failure state = failure_of([&] {
        load_members({{"archive/data.pkl", "\x80\x02}."}, {"archive/data/0", "w"}});
    });
    CHECK(state.code == ErrorCode::model);
    CHECK(contains(state.message, "torch.export"));
    const TemporaryFile pickle("weights.pt", std::string("\x80\x02}q\0.", 6));
    const Failure legacy = failure_of([&] { static_cast<void>(load_graph(pickle.path())); });
    CHECK(legacy.code == ErrorCode::model);
    CHECK(contains(legacy.message, "torch.export"));
}

TEST_CASE("BAD_INPUTS 21, 22: wrong attributes and missing inputs name the node") {
    const std::string good = small_program(fixed_batch);
    struct Case {
        std::string what, with, node;
    };
    for (const Case& bad : std::vector<Case>{
             {"[2, 2]", "[0, 2]", "aten::conv2d"},
             {"[2, 2]", "[1, 1, 1]", "aten::conv2d"},
             {"[1, 1]", "[-1, 1]", "aten::conv2d"},
             {R"({"name": "weight", "arg": {"as_tensor": {"name": "p_conv_weight"}}},)", "", "aten::conv2d"},
             {R"("arg": {"as_tensor": {"name": "conv2d"}})", R"("arg": {"as_tensor": {"name": "nowhere"}})",
              "aten.relu"},
             {R"("arg": {"as_tensor": {"name": "conv2d"}})", R"("arg": {})", "aten.relu"},
             {R"("arg": {"as_tensor": {"name": "conv2d"}})", R"("arg": {"as_tensor": {}})", "aten.relu"},
             {R"({"as_int": 8}, {"as_int": 5})", R"({"as_int": -8}, {"as_int": 5})", "aten.conv2d"},
             {R"({"as_int": 8}, {"as_int": 5})", R"({"as_int": 8.5}, {"as_int": 5})", "tensor 'conv2d': '8.5'"},
             {R"({"as_int": 8}, {"as_int": 5})", R"({"as_int": 99999999999999999999}, {"as_int": 5})",
              "not a 64-bit integer"}}) {
        CAPTURE(bad.with);
        const Failure failure = failure_of([&] { load_program(replaced(good, bad.what, bad.with)); });
        CHECK(failure.code == ErrorCode::model);
        CHECK_MESSAGE(contains(failure.message, bad.node), failure.message);
    }
}

TEST_CASE("BAD_INPUTS 25: an unknown operator stays in the graph as custom, or is an error when asked for") {
    const std::string unknown =
        replaced(small_program(fixed_batch), "torch.ops.aten.relu.default", "torch.ops.mine.magic.default");
    const Graph graph = load_program(unknown);
    CHECK(graph.ops[1].kind == OpKind::custom);
    CHECK(graph.ops[1].source == "mine::magic");
    // A name that ATen has as well says nothing about another library's operator.
    const Graph namesake = load_program(
        replaced(small_program(fixed_batch), "torch.ops.aten.relu.default", "torch.ops.mine.conv2d.default"));
    CHECK(namesake.ops[1].kind == OpKind::custom);
    ImportOptions strict;
    strict.unsupported_is_error = true;
    CHECK(failure_of([&] { load_program(unknown, strict); }).code == ErrorCode::model);
}

namespace {

const std::string four_images = R"({"as_int": 4})";

/// The small program, whose ReLU is now the body of a higher-order operator of the given inputs.
std::string higher_order(const std::string& target, const std::string& inputs) {
    return replaced(
        replaced(small_program(four_images), "torch.ops.aten.relu.default", "torch.ops.higher_order." + target),
        R"([{"name": "self", "arg": {"as_tensor": {"name": "conv2d"}}}])", inputs);
}

/// A graph of `count` ReLUs on a tensor of the given sizes, as an argument.
std::string relu_graph(int count, const std::string& sizes) {
    std::string values, nodes;
    for (int i = 0; i <= count; ++i) {
        const std::string name = "r" + std::to_string(i);
        values += (i > 0 ? ", " : "") + ("\"" + name + R"(": {"dtype": 7, "sizes": )") + sizes + "}";
        if (i == 0) continue;
        nodes += (i > 1 ? ", " : "") +
                 (R"({"target": "torch.ops.aten.relu.default", "metadata": {}, "inputs": [{"name": "self", "arg": )"
                  R"({"as_tensor": {"name": "r)" +
                  std::to_string(i - 1) + R"("}}}], "outputs": [{"as_tensor": {"name": ")" + name + R"("}}]})");
    }
    return R"({"name": "", "arg": {"as_graph": {"name": "g", "graph": {"inputs": [{"as_tensor": {"name": "r0"}}], )"
           R"("outputs": [{"as_tensor": {"name": "r)" +
           std::to_string(count) + R"("}}], "sym_int_values": {}, "tensor_values": {)" + values + R"(}, "nodes": [)" +
           nodes + "]}}}}";
}

std::size_t relus_in(const Graph& graph) {
    return static_cast<std::size_t>(
        std::count_if(graph.ops.begin(), graph.ops.end(), [](const Op& op) { return op.source == "aten::relu"; }));
}

const std::string image_sizes = "[" + four_images + R"(, {"as_int": 8}, {"as_int": 5}, {"as_int": 5}])";
const std::string operand = R"({"name": "", "arg": {"as_tensors": [{"name": "conv2d"}]}})";

}  // namespace

TEST_CASE("map of an exported program runs its body once per slice, or as often as --trip says") {
    const std::string none = R"({"name": "", "arg": {"as_tensors": []}})";
    const std::string slice = R"([{"as_int": 8}, {"as_int": 5}, {"as_int": 5}])";
    const std::string text = higher_order("map_impl", "[" + relu_graph(1, slice) + ", " + operand + ", " + none + "]");
    const Graph graph = load_program(text);
    CHECK(relus_in(graph) == 4);
    CHECK(graph.ops.back().source == "aten::stack");
    ImportOptions options;
    options.trip_counts["relu"] = 2;
    CHECK(relus_in(load_program(text, options)) == 2);
}

TEST_CASE("cond of an exported program is followed into one branch, and --branch chooses the other") {
    const std::string condition = R"({"name": "", "arg": {"as_tensor": {"name": "conv2d"}}})";
    const std::string text = higher_order("cond", "[" + condition + ", " + relu_graph(1, image_sizes) + ", " +
                                                      relu_graph(3, image_sizes) + ", " + operand + "]");
    const Graph graph = load_program(text);
    CHECK(relus_in(graph) == 3);
    REQUIRE(graph.undecided.size() == 1);
    ImportOptions options;
    options.branches[graph.undecided[0].name] = true;
    CHECK(relus_in(load_program(text, options)) == 1);
    for (const bool holds : {true, false}) {  // a condition that the exporter knew
        const std::string known =
            std::string(R"({"name": "", "arg": {"as_bool": )") + (holds ? "true" : "false") + "}}";
        const Graph decided = load_program(higher_order("cond", "[" + known + ", " + relu_graph(1, image_sizes) + ", " +
                                                                    relu_graph(3, image_sizes) + ", " + operand + "]"));
        CHECK(relus_in(decided) == (holds ? 1 : 3));
        CHECK(decided.undecided.empty());
    }
}
