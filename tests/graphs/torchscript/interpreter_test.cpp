#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "ftax/work.hpp"
#include "graphs/torchscript/program.hpp"
#include "tests/failure.hpp"

using namespace ftax;
using namespace ftax::script;

namespace {

/// Writes programs node by node. Value 0 is the model, value 1 the input x of forward.
class Writer {
  public:
    Writer() {
        program.objects.emplace_back();
        function("forward");
    }

    std::uint32_t function(const std::string& name) {
        const auto index = static_cast<std::uint32_t>(program.functions.size());
        program.functions.push_back({name, 2, {"self", "x"}, {Unknown{}, Unknown{}}, {{0, 1}, {}, {}}});
        program.objects[0].methods[name] = index;
        return index;
    }

    Block& body(std::uint32_t index = 0) { return program.functions[index].body; }
    std::uint32_t value(std::uint32_t function = 0) { return program.functions[function].value_count++; }

    std::uint32_t node(Block& block, const std::string& kind, std::vector<std::uint32_t> inputs,
                       std::vector<Block> blocks = {}, ValueType type = ValueType::tensor, std::uint32_t function = 0,
                       const std::string& name = {}) {
        const std::uint32_t output = value(function);
        Node node;
        node.kind = kind;
        node.name = name;
        node.inputs = std::move(inputs);
        node.outputs = {output};
        node.output_types = {type};
        node.arguments = {"self", "other"};
        node.blocks = std::move(blocks);
        block.nodes.push_back(std::move(node));
        return output;
    }

    std::uint32_t constant(Block& block, Value held, std::uint32_t function = 0) {
        const std::uint32_t output = node(block, "prim::Constant", {}, {}, ValueType::other, function);
        block.nodes.back().constant = std::move(held);
        return output;
    }
    std::uint32_t integer(Block& block, std::int64_t number, std::uint32_t function = 0) {
        return constant(block, program.expressions.constant(number), function);
    }

    Graph interpret(ImportOptions options = {}) const {
        if (options.input_shapes.empty()) options.input_shapes = {{"", {"batch", "8"}, DType::f32}};
        Graph graph;
        script::interpret(program, options, graph);
        return graph;
    }

    Program program;
};

/// A block of `count` ReLUs on value `x`, whose result it returns.
Block relus(Writer& writer, int count, std::uint32_t x) {
    Block block;
    for (int i = 0; i < count; ++i) x = writer.node(block, "aten::relu", {x});
    block.outputs = {x};
    return block;
}

/// An `If` whose condition is the truth of a tensor's element.
Writer data_dependent_if() {
    Writer w;
    const std::uint32_t condition = w.node(w.body(), "aten::Bool", {1}, {}, ValueType::other);
    std::vector<Block> branches;
    branches.push_back(relus(w, 2, 1));
    branches.push_back(relus(w, 5, 1));
    w.body().outputs = {w.node(w.body(), "prim::If", {condition}, std::move(branches))};
    return w;
}

/// A loop over one ReLU; without a trip count it depends on data.
Writer loop(std::optional<std::int64_t> trip_count) {
    Writer w;
    const std::uint32_t count = trip_count ? w.integer(w.body(), *trip_count) : w.constant(w.body(), Unknown{});
    const std::uint32_t go = w.constant(w.body(), true);
    const std::uint32_t i = w.value(), x = w.value();
    Block body = relus(w, 1, x);
    body.inputs = {i, x};
    body.outputs.insert(body.outputs.begin(), go);
    w.body().outputs = {w.node(w.body(), "prim::Loop", {count, go, 1}, {std::move(body)})};
    return w;
}

}  // namespace

TEST_CASE("a TorchScript condition on shapes is decided and only the branch taken is dispatched") {
    Writer w;
    const std::uint32_t rank = w.node(w.body(), "aten::dim", {1}, {}, ValueType::other);
    const std::uint32_t two = w.integer(w.body(), 2);
    const std::uint32_t equal = w.node(w.body(), "aten::eq", {rank, two}, {}, ValueType::other);
    std::vector<Block> branches;
    branches.push_back(relus(w, 3, 1));
    branches.push_back(relus(w, 5, 1));
    w.body().outputs = {w.node(w.body(), "prim::If", {equal}, std::move(branches))};
    const Graph graph = w.interpret();
    CHECK(graph.ops.size() == 3);
    CHECK(graph.warnings.empty());
    CHECK(total_work(graph, bind(graph, {{"batch", 4}})).flops == 3 * 4 * 8);
    REQUIRE(graph.outputs.size() == 1);
    CHECK(graph.tensors[graph.outputs[0]].producer == 2);
}

TEST_CASE("BAD_INPUTS 26: a data-dependent TorchScript condition takes the larger branch and reports both sizes") {
    const Graph graph = data_dependent_if().interpret();
    // The host reads the condition, then the longer branch runs.
    REQUIRE(graph.ops.size() == 1 + 5);
    CHECK(graph.ops[0].kind == OpKind::to_host);
    REQUIRE(graph.warnings.size() == 1);
    CHECK(graph.warnings[0].find("5 operators") != std::string::npos);
    CHECK(graph.warnings[0].find("with 2") != std::string::npos);
    REQUIRE(graph.undecided.size() == 1);
    CHECK_FALSE(graph.undecided[0].then_taken);
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
        for (const TensorId output : graph.ops[i].outputs) CHECK(graph.tensors[output].producer == i);
    }
    ImportOptions options;
    options.branches[graph.undecided[0].name] = true;
    CHECK(data_dependent_if().interpret(options).ops.size() == 1 + 2);
}

TEST_CASE(
    "where a TorchScript condition is met again, the branch taken before is, or the other where that one raises") {
    // A loop of two passes over a tensor, with a condition on data in its body. One branch raises from some pass on.
    for (const bool then_raises : {false, true}) {
        for (const std::int64_t last : {0, 1, 2}) {  // the passes in which the branch does not raise
            CAPTURE(then_raises);
            CAPTURE(last);
            Writer w;
            const std::uint32_t count = w.integer(w.body(), 2), go = w.constant(w.body(), true);
            const std::uint32_t bound = w.integer(w.body(), last);
            const std::uint32_t i = w.value(), x = w.value();
            Block body;
            body.inputs = {i, x};
            const std::uint32_t condition = w.node(body, "aten::Bool", {x}, {}, ValueType::other);
            Block raising = relus(w, 5, x);
            const std::uint32_t fails = w.node(raising, "aten::ge", {i, bound}, {}, ValueType::other);
            Block raise;
            const std::uint32_t text = w.constant(raise, std::string("no"));
            w.node(raise, "prim::RaiseException", {text}, {}, ValueType::other);
            raise.outputs = {x};
            Block goes_on;
            goes_on.outputs = raising.outputs;
            std::vector<Block> guard;
            guard.push_back(std::move(raise));
            guard.push_back(std::move(goes_on));
            raising.outputs = {w.node(raising, "prim::If", {fails}, std::move(guard))};
            Block plain = relus(w, 2, x);
            std::vector<Block> branches;
            branches.push_back(then_raises ? raising : plain);
            branches.push_back(then_raises ? plain : raising);
            const std::uint32_t y = w.node(body, "prim::If", {condition}, std::move(branches));
            body.outputs = {go, y};
            w.body().outputs = {w.node(w.body(), "prim::Loop", {count, go, 1}, {std::move(body)})};
            const Graph graph = w.interpret();
            const long relu_count = std::count_if(graph.ops.begin(), graph.ops.end(),
                                                  [](const Op& op) { return op.kind == OpKind::pointwise; });
            CHECK(relu_count == 5 * last + 2 * (2 - last));
            REQUIRE(graph.outputs.size() == 1);
            CHECK(graph.tensors[graph.outputs[0]].producer == graph.ops.size() - 1);
        }
    }
}

TEST_CASE("BAD_INPUTS 26: TorchScript loops run as often as a constant or --trip says, else once with a warning") {
    CHECK(loop(4).interpret().ops.size() == 4);
    CHECK(loop(0).interpret().ops.empty());
    const Graph once = loop(std::nullopt).interpret();
    CHECK(once.ops.size() == 1);
    REQUIRE(once.warnings.size() == 1);
    CHECK(once.warnings[0].find("--trip loop0=N") != std::string::npos);
    ImportOptions options;
    options.trip_counts["loop0"] = 7;
    CHECK(loop(std::nullopt).interpret(options).ops.size() == 7);
}

namespace {

/// `for i in range(passes): x = relu(x); if (data): break`, as the compiler writes it: a loop without a bound whose
/// condition is (i + 1 < passes) and a truth value that an If returns.
Writer breaking_loop(std::int64_t passes) {
    Writer w;
    const std::uint32_t endless = w.integer(w.body(), std::numeric_limits<std::int64_t>::max());
    const std::uint32_t yes = w.constant(w.body(), true), no = w.constant(w.body(), false);
    const std::uint32_t zero = w.integer(w.body(), 0), one = w.integer(w.body(), 1);
    const std::uint32_t last = w.integer(w.body(), passes);
    const std::uint32_t index = w.value(), x = w.value(), count = w.value();
    Block body = relus(w, 1, x);
    const std::uint32_t y = body.outputs[0];
    body.inputs = {index, x, count};
    const std::uint32_t data = w.node(body, "aten::Bool", {y}, {}, ValueType::boolean);
    Block stop, go_on;
    stop.outputs = {no}, go_on.outputs = {yes};
    const std::uint32_t flag = w.node(body, "prim::If", {data}, {stop, go_on}, ValueType::boolean);
    const std::uint32_t next = w.node(body, "aten::add", {count, one}, {}, ValueType::integer);
    const std::uint32_t below = w.node(body, "aten::lt", {next, last}, {}, ValueType::boolean);
    const std::uint32_t both = w.node(body, "aten::__and__", {below, flag}, {}, ValueType::boolean);
    body.outputs = {both, y, next};
    const std::uint32_t result = w.node(w.body(), "prim::Loop", {endless, yes, 1, zero}, {std::move(body)});
    w.body().nodes.back().outputs.push_back(w.value());
    w.body().nodes.back().output_types.push_back(ValueType::integer);
    w.body().outputs = {result};
    return w;
}

std::size_t relu_count(const Graph& graph) {
    return static_cast<std::size_t>(
        std::count_if(graph.ops.begin(), graph.ops.end(), [](const Op& op) { return op.source == "aten::relu"; }));
}

}  // namespace

TEST_CASE("a TorchScript loop with a break counts the passes up to its bound, or those of --trip") {
    const Graph graph = breaking_loop(5).interpret();
    CHECK(relu_count(graph) == 5);
    CHECK(graph.undecided.size() == 1);
    CHECK(std::any_of(graph.warnings.begin(), graph.warnings.end(),
                      [](const std::string& warning) { return warning.find("--trip loop0=N") != std::string::npos; }));
    ImportOptions options;
    options.trip_counts["loop0"] = 3;
    CHECK(relu_count(breaking_loop(5).interpret(options)) == 3);
    ImportOptions stops;
    stops.branches[graph.undecided[0].name] = true;
    CHECK(relu_count(breaking_loop(5).interpret(stops)) == 1);
}

TEST_CASE("a numeric TorchScript parameter requires a value, and the error explains it") {
    const auto repeated = [] {
        Writer w;
        Function& forward = w.program.functions[0];
        forward.parameters = {"self", "x", "n"},
        forward.types = {ValueType::other, ValueType::tensor, ValueType::integer};
        forward.defaults = {Unknown{}, Unknown{}, Unknown{}};
        forward.body.inputs.push_back(w.value());
        const std::uint32_t n = forward.body.inputs[2], go = w.constant(w.body(), true);
        const std::uint32_t i = w.value(), x = w.value();
        Block body = relus(w, 1, x);
        body.inputs = {i, x};
        body.outputs.insert(body.outputs.begin(), go);
        w.body().outputs = {w.node(w.body(), "prim::Loop", {n, go, 1}, {std::move(body)})};
        return w;
    };
    ImportOptions options;
    options.input_shapes = {{"", {"batch", "8"}, DType::f32}, {"", {}, DType::i64, "5"}};
    CHECK(repeated().interpret(options).ops.size() == 5);
    // Shapes by name leave the others in order; a truth value is true, false, 1 or 0.
    options.input_shapes = {{"x", {"batch", "8"}, DType::f32}, {"", {}, DType::i64, "5"}};
    CHECK(test::failure_of([&] { return repeated().interpret(options); }));
    options.input_shapes = {{"n", {}, DType::i64, "5"}, {"", {"batch", "8"}, DType::f32}};
    CHECK(repeated().interpret(options).ops.size() == 5);
    options.input_shapes = {{"", {"batch", "8"}, DType::f32}, {"", {"5"}, DType::i64}};
    const test::Failure shape = test::failure_of([&] { return repeated().interpret(options); });
    CHECK(shape.code == ErrorCode::usage);
    CHECK(shape.says("long=5"));
    options.input_shapes.pop_back();
    CHECK(test::failure_of([&] { return repeated().interpret(options); }).says("n (a number)"));
}

TEST_CASE("a truth value given for a TorchScript parameter is true, false, 1 or 0 and takes its branch") {
    const auto operators = [](const std::string& text) {
        Writer w;
        Function& forward = w.program.functions[0];
        forward.parameters = {"self", "x", "deep"};
        forward.types = {ValueType::other, ValueType::tensor, ValueType::boolean};
        forward.defaults = {Unknown{}, Unknown{}, Unknown{}};
        forward.body.inputs.push_back(w.value());
        w.body().outputs = {w.node(w.body(), "prim::If", {forward.body.inputs[2]}, {relus(w, 3, 1), relus(w, 1, 1)})};
        ImportOptions options;
        options.input_shapes = {{"", {"4"}, DType::f32}, {"", {}, DType::boolean, text}};
        return w.interpret(options).ops.size();
    };
    for (const char* yes : {"true", "1"}) CHECK(operators(yes) == 3);
    for (const char* no : {"false", "0"}) CHECK(operators(no) == 1);
    CHECK(test::failure_of([&] { return operators("2"); }).code == ErrorCode::usage);
}

TEST_CASE("BAD_INPUTS 27: TorchScript functions that call each other for ever are named") {
    Writer w;
    const std::uint32_t other = w.function("other");
    w.body().outputs = {w.node(w.body(), "prim::CallMethod", {0, 1}, {}, ValueType::tensor, 0, "other")};
    Block& back = w.body(other);
    back.outputs = {w.node(back, "prim::CallMethod", {0, 1}, {}, ValueType::tensor, other, "forward")};
    const test::Failure failure = test::failure_of([&] { return w.interpret(); });
    CHECK(failure.code == ErrorCode::model);
    CHECK(failure.says("forward → other → forward"));
}

TEST_CASE("BAD_INPUTS 28: TorchScript calls that double 40 times end at the node limit") {
    Writer w;
    const int levels = 40;
    for (int i = 0; i < levels; ++i) w.function("f" + std::to_string(i));
    w.body().outputs = {w.node(w.body(), "prim::CallMethod", {0, 1}, {}, ValueType::tensor, 0, "f0")};
    for (std::uint32_t i = 0; i < levels; ++i) {
        Block& body = w.body(i + 1);
        const std::string next = "f" + std::to_string(i + 1);
        if (i + 1 == levels) {
            body.outputs = {w.node(body, "aten::relu", {1}, {}, ValueType::tensor, i + 1)};
            continue;
        }
        const std::uint32_t once = w.node(body, "prim::CallMethod", {0, 1}, {}, ValueType::tensor, i + 1, next);
        body.outputs = {w.node(body, "prim::CallMethod", {0, once}, {}, ValueType::tensor, i + 1, next)};
    }
    ImportOptions options;
    options.max_nodes = 1000;
    CHECK(test::failure_of([&] { return w.interpret(options); }).code == ErrorCode::limit);
}

TEST_CASE("a TorchScript loop on the host alone ends at the step limit") {
    Writer w = loop(1'000'000'000'000);
    Block& body = w.program.functions[0].body.nodes.back().blocks[0];
    body.nodes.clear();
    body.outputs[1] = body.inputs[1];
    body.nodes.push_back(w.body().nodes.front());  // a constant on the host
    ImportOptions options;
    options.max_nodes = 1000;
    CHECK(test::failure_of([&] { return w.interpret(options); }).code == ErrorCode::limit);
}

TEST_CASE("BAD_INPUTS 28: TorchScript loops without a body, lists of lists and text that doubles end at a limit") {
    Writer nothing = loop(1'000'000'000'000);
    Block& body = nothing.body().nodes.back().blocks[0];
    body.nodes.clear();
    body.outputs[1] = body.inputs[1];
    CHECK(test::failure_of([&] { return nothing.interpret(); }).code == ErrorCode::limit);

    Writer nested;  // 2^60 outputs
    std::uint32_t list = 1;
    for (int i = 0; i < 60; ++i)
        list = nested.node(nested.body(), "prim::ListConstruct", {list, list}, {}, ValueType::other);
    nested.body().outputs = {list};
    CHECK(test::failure_of([&] { return nested.interpret(); }).code == ErrorCode::limit);

    Writer joined;  // 2^40 characters, compared with another text, decide nothing
    std::uint32_t text = joined.constant(joined.body(), std::string("ab"));
    for (int i = 0; i < 40; ++i) text = joined.node(joined.body(), "aten::add", {text, text}, {}, ValueType::other);
    const std::uint32_t other = joined.constant(joined.body(), std::string("c"));
    const std::uint32_t equal = joined.node(joined.body(), "aten::eq", {text, other}, {}, ValueType::other);
    std::vector<Block> branches;
    branches.push_back(relus(joined, 2, 1));
    branches.push_back(relus(joined, 3, 1));
    joined.body().outputs = {joined.node(joined.body(), "prim::If", {equal}, std::move(branches))};
    CHECK(joined.interpret().ops.size() == 3);

    Writer repeated;  // nothing, very often
    const std::uint32_t none = repeated.node(repeated.body(), "prim::ListConstruct", {}, {}, ValueType::other);
    const std::uint32_t often = repeated.integer(repeated.body(), 1'000'000'000'000'000);
    const std::uint32_t many = repeated.node(repeated.body(), "aten::mul", {none, often}, {}, ValueType::other);
    const std::uint32_t length = repeated.node(repeated.body(), "aten::len", {many}, {}, ValueType::other);
    std::vector<Block> alternatives;
    alternatives.push_back(relus(repeated, 1, 1));
    alternatives.push_back(relus(repeated, 4, 1));
    repeated.body().outputs = {repeated.node(repeated.body(), "prim::If", {length}, std::move(alternatives))};
    CHECK(repeated.interpret().ops.size() == 4);
}

TEST_CASE("a TorchScript program that raises for these shapes, or accesses missing values, is an invalid model") {
    Writer raising;
    const std::uint32_t reason = raising.constant(raising.body(), std::string("odd sizes only"));
    raising.node(raising.body(), "prim::RaiseException", {reason}, {}, ValueType::other);
    const test::Failure raised = test::failure_of([&] { return raising.interpret(); });
    CHECK(raised.code == ErrorCode::model);
    CHECK(raised.message.find("odd sizes only") != std::string::npos);
    Writer attribute;
    attribute.body().outputs = {
        attribute.node(attribute.body(), "prim::GetAttr", {0}, {}, ValueType::other, 0, "gone")};
    CHECK(test::failure_of([&] { return attribute.interpret(); }).code == ErrorCode::model);
    Writer item;
    const std::uint32_t list = item.node(item.body(), "prim::ListConstruct", {}, {}, ValueType::other);
    const std::uint32_t index = item.integer(item.body(), 3);
    item.body().outputs = {item.node(item.body(), "aten::__getitem__", {list, index}, {}, ValueType::other)};
    const test::Failure outside = test::failure_of([&] { return item.interpret(); });
    CHECK(outside.code == ErrorCode::model);
    CHECK(outside.message.find("forward (aten::__getitem__)") != std::string::npos);
}

TEST_CASE("a TorchScript input without a shape is asked for by name, and one shape too many is refused") {
    const Writer w = loop(1);
    Graph graph;
    const test::Failure failure = test::failure_of([&] { script::interpret(w.program, {}, graph); });
    CHECK(failure.code == ErrorCode::usage);
    CHECK(failure.says("x, e.g. --input"));
    ImportOptions two;
    two.input_shapes = {{"", {"4"}, DType::f32}, {"", {"4"}, DType::f32}};
    CHECK(test::failure_of([&] { script::interpret(w.program, two, graph); }).code == ErrorCode::usage);
}

TEST_CASE("traced arithmetic on sizes stays on the host and symbolic") {
    Writer w;
    Block& body = w.body();
    const std::uint32_t zero = w.integer(body, 0), two = w.integer(body, 2);
    const std::uint32_t size = w.node(body, "aten::size", {1, zero}, {}, ValueType::other);
    const std::uint32_t number = w.node(body, "prim::NumToTensor", {size});
    const std::uint32_t doubled = w.node(body, "aten::mul", {number, two});
    const std::uint32_t whole = w.node(body, "aten::Int", {doubled}, {}, ValueType::other);
    const std::uint32_t four = w.integer(body, 4);
    const std::uint32_t shape = w.node(body, "prim::ListConstruct", {whole, four}, {}, ValueType::other);
    const std::uint32_t view = w.node(body, "aten::view", {1, shape});
    body.nodes.back().arguments = {"self", "size"};
    body.outputs = {view};
    const Graph graph = w.interpret();
    REQUIRE(graph.ops.size() == 1);
    CHECK(graph.ops[0].kind == OpKind::reshape);
    const ftax::Tensor& output = graph.tensors[graph.outputs[0]];
    CHECK(graph.expressions.to_string(output.shape[0]) == "2*batch");
}

TEST_CASE("sums and conditions over lists of numbers are decided on the host") {
    Writer w;
    Block& body = w.body();
    const std::uint32_t three = w.integer(body, 3), zero = w.integer(body, 0), yes = w.constant(body, true);
    const std::uint32_t numbers = w.node(body, "prim::ListConstruct", {three, three}, {}, ValueType::other);
    const std::uint32_t sum = w.node(body, "aten::sum", {numbers}, {}, ValueType::other);
    const std::uint32_t positive = w.node(body, "aten::gt", {sum, zero}, {}, ValueType::other);
    const std::uint32_t flags = w.node(body, "prim::ListConstruct", {positive, yes}, {}, ValueType::other);
    const std::uint32_t all = w.node(body, "aten::all", {flags}, {}, ValueType::other);
    std::vector<Block> branches;
    branches.push_back(relus(w, 6, 1));
    branches.push_back(relus(w, 1, 1));
    body.outputs = {w.node(body, "prim::If", {all}, std::move(branches))};
    const Graph graph = w.interpret();
    CHECK(graph.ops.size() == 6);
    CHECK(graph.warnings.empty());
}
