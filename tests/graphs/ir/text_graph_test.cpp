#include "ftax/text_graph.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>

#include "ftax/graph_builder.hpp"
#include "tests/failure.hpp"

using namespace ftax;

namespace {

constexpr std::string_view example = R"(# every construct of the format
graph "two words"
warning "opset 99 is unknown"
range batch 1 64
range "s 9" 3
input %x f32[batch,3,224,224]
input %mask bool[]
module "" Net
module layer1.0 torchvision.models.resnet.BasicBlock
module anonymous
weight %w f16[64,3,7,7]
constant %axes i64[2]
%1 f32[batch,64,112,112] = conv(%x, %w) {stride=[2,2] pad_begin=[3,3] groups=1} "aten::conv2d" @conv1
%2 f32[batch,12,(seq)//(2),64]{768*seq,64,768,1} = transpose(%1) {perm=[0,2,1,3]} : "swap axes"
%3 f32?, %/odd/name:0 i64[batch,4] = sort(%2, _, %axes) {largest=-1 scale=0.5 epsilon=1e-05 low=-inf one=1.0 by="to\"p\\" none=[]} "aten::topk" @head : topk_0
= to_host(%3) : wait
%"we\x0aird" u8[0] = custom()
output %3
output %"we\x0aird"
)";

test::Failure failure_of(std::string_view text) {
    return test::failure_of([&] { return parse_text_graph(text, "f.txt"); });
}

void check_range(const SymbolRange& range, const SymbolRange& expected) {
    CHECK(range.symbol == expected.symbol);
    CHECK(range.least == expected.least);
    CHECK(range.greatest == expected.greatest);
}

void check_equal(const Graph& a, const Graph& b) {
    CHECK(a.name == b.name);
    CHECK(a.warnings == b.warnings);
    REQUIRE(a.ranges.size() == b.ranges.size());
    for (std::size_t i = 0; i < a.ranges.size(); ++i) check_range(a.ranges[i], b.ranges[i]);
    CHECK(a.inputs == b.inputs);
    CHECK(a.outputs == b.outputs);
    REQUIRE(a.tensors.size() == b.tensors.size());
    for (std::size_t i = 0; i < a.tensors.size(); ++i) {
        const Tensor& s = a.tensors[i];
        const Tensor& t = b.tensors[i];
        CHECK(s.name == t.name);
        CHECK(s.dtype == t.dtype);
        CHECK(s.role == t.role);
        CHECK(s.known_shape == t.known_shape);
        CHECK(s.producer == t.producer);
        REQUIRE(s.shape.size() == t.shape.size());
        REQUIRE(s.strides.size() == t.strides.size());
        for (std::size_t d = 0; d < s.shape.size(); ++d) {
            CHECK(a.expressions.to_string(s.shape[d]) == b.expressions.to_string(t.shape[d]));
        }
        for (std::size_t d = 0; d < s.strides.size(); ++d) {
            CHECK(a.expressions.to_string(s.strides[d]) == b.expressions.to_string(t.strides[d]));
        }
    }
    REQUIRE(a.ops.size() == b.ops.size());
    for (std::size_t i = 0; i < a.ops.size(); ++i) {
        CHECK(a.ops[i].kind == b.ops[i].kind);
        CHECK(a.ops[i].name == b.ops[i].name);
        CHECK(a.ops[i].source == b.ops[i].source);
        CHECK(a.ops[i].module == b.ops[i].module);
        CHECK(a.ops[i].inputs == b.ops[i].inputs);
        CHECK(a.ops[i].outputs == b.ops[i].outputs);
        CHECK(a.ops[i].attributes == b.ops[i].attributes);
    }
    REQUIRE(a.module_calls.size() == b.module_calls.size());
    for (std::size_t i = 0; i < a.module_calls.size(); ++i) {
        CHECK(a.module_calls[i].path == b.module_calls[i].path);
        CHECK(a.module_calls[i].type == b.module_calls[i].type);
    }
}

}  // namespace

TEST_CASE("a text graph says what its statements say") {
    const Graph graph = parse_text_graph(example);
    CHECK(graph.name == "two words");
    CHECK(graph.inputs == std::vector<TensorId>{0, 1});
    REQUIRE(graph.ranges.size() == 2);
    check_range(graph.ranges[0], {"batch", 1, 64});
    check_range(graph.ranges[1], {"s 9", 3, std::numeric_limits<std::int64_t>::max()});
    REQUIRE(graph.ops.size() == 5);
    CHECK(graph.ops[0].integers("stride")[1] == 2);
    CHECK(graph.ops[0].integer("groups", 0) == 1);
    CHECK(graph.ops[0].module == "conv1");
    CHECK(graph.ops[0].name == "1");
    CHECK(graph.ops[1].name == "swap axes");
    const Op& sort = graph.ops[2];
    CHECK(sort.inputs[1] == no_tensor);
    CHECK(sort.outputs.size() == 2);
    CHECK(sort.text("by") == "to\"p\\");
    CHECK(std::get<double>(sort.attributes[4].value) == 1.0);
    CHECK_FALSE(graph.tensors[sort.outputs[0]].known_shape);
    CHECK(graph.tensors[graph.outputs[1]].name == "we\nird");
    BoundShapes bound = bind(graph, {{"batch", 2}, {"seq", 128}});
    CHECK(bound[graph.tensors[graph.ops[1].outputs[0]].strides[0]] == 768 * 128);
    CHECK(byte_count(graph.tensors[graph.ops[1].outputs[0]], bound) == 2 * 12 * 64 * 64 * 4);
}

TEST_CASE("text to graph to text is the identity") {
    const Graph graph = parse_text_graph(example);
    const std::string text = to_text(graph);
    const Graph again = parse_text_graph(text);
    check_equal(graph, again);
    CHECK(to_text(again) == text);
}

TEST_CASE("a built graph survives its text form") {
    GraphBuilder net("tiny net");
    const TensorId x = net.input("x", {"batch", "3", "height", "32"});
    const TensorId y = net.relu(net.batch_norm(net.conv(x, 16, {.kernel = 3, .pad = 1}, true)));
    const Graph graph = net.finish({net.linear(net.flatten(net.global_average_pool(y), 1), 10)});
    check_equal(graph, parse_text_graph(to_text(graph)));
}

TEST_CASE("BAD_INPUTS 6: hostile names are escaped in the text and come back unchanged") {
    Graph graph;
    graph.name = "\x1b[31mred <script>\n";
    for (const char* name : {"a b", "", "a b", "%x", "_", ":", "\xff\xfe", "=1+1", "\"\\"}) {
        Tensor tensor;
        tensor.name = name;
        tensor.role = TensorRole::weight;
        graph.tensors.push_back(tensor);
    }
    const std::string text = to_text(graph);
    for (const char c : text) CHECK((c == '\n' || (c >= ' ' && c <= '~')));
    const Graph again = parse_text_graph(text);
    CHECK(again.name == graph.name);
    REQUIRE(again.tensors.size() == graph.tensors.size());
    for (const std::size_t i : {0u, 3u, 4u, 5u, 6u, 7u, 8u}) CHECK(again.tensors[i].name == graph.tensors[i].name);
    CHECK(again.tensors[1].name != again.tensors[2].name);  // empty and repeated names become distinct
}

TEST_CASE("errors of a text graph name line and column") {
    const auto check = [](std::string_view text, std::string_view message) {
        const test::Failure failure = failure_of(text);
        CHECK(failure.code == ErrorCode::model);
        CHECK(failure.message == message);
    };
    check("graph g\nnonsense\n", "f.txt:2:1: unknown statement nonsense");
    check("import torch\n",
          "f.txt:1:1: not a text graph of ftax (docs/formats.md); a model in Python is exported first "
          "(docs/exporting.md)");
    check("# settings\nPASSWORD=hunter2\n",
          "f.txt:2:1: not a text graph of ftax (docs/formats.md); a model in Python is exported first "
          "(docs/exporting.md)");
    check("input %x f32[2\n", "f.txt:1:15: expected ']'");
    check("input %x f99[2]\n", "f.txt:1:10: unknown element type f99");
    check("input %x f32[2,-3]\n", "f.txt:1:16: negative dimension");
    check("input %x f32[2+]\n", "f.txt:1:14: shape expression '2+': expected a number or a name at character 3");
    check("input %x f32[2]{1,1}\n", "f.txt:1:21: as many strides as dimensions are needed");
    check("input x f32[2]\n", "f.txt:1:7: expected a tensor (%name)");
    check("input %x f32[2] more\n", "f.txt:1:17: unexpected text at the end of a statement");
    check("\n  %1 f32[2] = frobnicate()\n", "f.txt:2:15: unknown operator frobnicate");
    check("%1 f32[2] = conv() {a=[1,2.5]}\n", "f.txt:1:26: expected an integer");
    check("range batch 1.5\n", "f.txt:1:13: expected an integer");
    check("%1 f32[2] = conv() {a=b}\n", "f.txt:1:23: expected a number, a quoted text or a list of integers");
    check("%1 f32[2] = conv() \"abc\n", "f.txt:1:20: quoted text without an end");
    check("%1 f32[2] = conv() \"\\q\"\n", "f.txt:1:22: unknown escape; known are \\\" \\\\ \\xHH");
    check("%1 f32[2] = conv(\n", "f.txt:1:18: expected a tensor (%name)");
}

TEST_CASE("an operator of a text graph has the inputs and outputs that its kind cannot do without") {
    const std::string inputs = "input %x f32[batch,3,8,8]\n";
    const auto check = [&](const std::string& operation, const std::string& expected) {
        const test::Failure failure = failure_of(inputs + operation + "\n");
        CHECK(failure.code == ErrorCode::model);
        CHECK(failure.message == expected);
    };
    check("%y f32[batch,3] = conv()", "f.txt:2:19: conv needs 2 inputs; input 1 is absent");
    check("%y f32[batch,3] = conv(%x)", "f.txt:2:19: conv needs 2 inputs; input 2 is absent");
    check("%y f32[batch,3] = matmul(_, %x)", "f.txt:2:19: matmul needs 2 inputs; input 1 is absent");
    check("%y f32[batch,3] = softmax()", "f.txt:2:19: softmax needs 1 input; input 1 is absent");
    check("= softmax(%x)", "f.txt:2:3: softmax has no output");
    CHECK_FALSE(failure_of(inputs + "%y f32[8] = fill()\n"));
    CHECK_FALSE(failure_of(inputs + "= custom()\n= to_host(%x)\n"));
}

TEST_CASE("a sum of symbols reads back as the same text, regardless of the first symbol (found by fuzzing)") {
    for (const char* dim : {"batch+seq", "seq+batch", "a*c+b*c", "min(b,a)", "2*b*b+a*b+c"}) {
        CAPTURE(dim);
        const std::string text = to_text(parse_text_graph(fmt::format("graph g\ninput %x f32[{}]\n", dim)));
        CHECK(to_text(parse_text_graph(text)) == text);
    }
}

TEST_CASE("BAD_INPUTS 12: a tensor defined twice or nowhere") {
    CHECK(failure_of("input %x f32[]\ninput %x f32[]\n").message == "f.txt:2:7: tensor \"x\" is defined twice");
    CHECK(failure_of("%y f32[] = pointwise(%x)\n").message == "f.txt:1:22: tensor \"x\" is not defined");
    CHECK(failure_of("%y f32[] = fill()\n%z f32[] = fill() : y\n").code == ErrorCode::model);
}

TEST_CASE("BAD_INPUTS 10, 11: a cycle is an error that prints it; unsorted operators are sorted with a warning") {
    const test::Failure cycle = failure_of("%a f32[] = pointwise(%b)\n%b f32[] = pointwise(%a)\n");
    CHECK(cycle.code == ErrorCode::model);
    CHECK(cycle.message.find("a → b → a") != std::string::npos);
    const Graph sorted = parse_text_graph("%b f32[] = pointwise(%a)\n%a f32[] = fill()\noutput %b\n");
    CHECK(sorted.ops[0].name == "a");
    CHECK(sorted.warnings.size() == 1);
}

TEST_CASE("BAD_INPUTS 16, 23: numbers and ranks beyond their limits") {
    CHECK(failure_of("input %x f32[99999999999999999999]\n").code == ErrorCode::limit);
    CHECK(failure_of("%1 f32[2] = conv() {a=99999999999999999999}\n").code == ErrorCode::limit);
    std::string ones = "1";
    for (int i = 1; i < 32; ++i) ones += ",1";
    CHECK_FALSE(failure_of(fmt::format("input %x f32[{}]\n", ones)));
    CHECK(failure_of(fmt::format("input %x f32[{},1]\n", ones)).code == ErrorCode::limit);
}

TEST_CASE("every truncation of a text graph is read or refused, never worse") {
    for (std::size_t length = 0; length < example.size(); ++length) {
        const test::Failure failure = failure_of(example.substr(0, length));
        CHECK((!failure || failure.code == ErrorCode::model));
    }
}

TEST_CASE("a text without a statement is refused") {
    for (const char* text : {"", " \n\n  ", "# nothing\n"}) CHECK_THROWS_AS(parse_text_graph(text, "empty.txt"), Error);
}

TEST_CASE("an open dimension names its flag, and only a cache may be empty") {
    const Graph graph = parse_text_graph("graph g\ninput %x f32[batch,seq]\ninput %k f32[batch,past]\n", "g");
    const auto message = [&](const ShapeBindings& bindings) {
        return test::failure_of([&] { return bind(graph, bindings); }).message;
    };
    for (const char* open : {"batch (--batch N)", "seq (--dim seq=N)", "past (--dim past=N)"})
        CHECK_MESSAGE(message({}).find(open) != std::string::npos, open);
    CHECK(message({{"batch", 0}, {"seq", 1}, {"past", 1}}).find("batch must be at least 1") != std::string::npos);
    CHECK_NOTHROW(static_cast<void>(bind(graph, {{"batch", 1}, {"seq", 1}, {"past", 0}})));
}
