#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <random>
#include <sstream>
#include <string>

#include "ftax/error.hpp"
#include "ftax/text_graph.hpp"
#include "graphs/torchscript/program.hpp"
#include "src/scenario/scenario.hpp"
#include "tests/recorded/recorded.hpp"

// Operators that TorchScript's interpreter computes itself, on values of every type; programs with each node changed.

using namespace ftax;
using namespace ftax::script;
using namespace ftax::test;

namespace {

Value list_of(std::vector<Value> items) {
    return Sequence{std::make_shared<std::vector<Value>>(std::move(items)), nullptr};
}

TensorId add_tensor(Graph& graph, std::vector<std::string> shape, DType dtype, bool known = true) {
    ftax::Tensor tensor{.name = "t", .dtype = dtype, .known_shape = known};
    for (const std::string& dim : shape) tensor.shape.push_back(graph.expressions.parse(dim));
    graph.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(graph.tensors.size() - 1);
}

constexpr std::size_t value_kinds = 30;

/// A value of each type; lists are new ones, since operators change them.
Value value_of(Graph& graph, std::size_t kind) {
    const auto integer = [&](const char* text) -> Value { return graph.expressions.parse(text); };
    constexpr std::array integers{"0", "1", "2", "-1", "3", "7", "-5", "batch", "2*batch + 1"};
    constexpr std::array doubles{0.0, 2.5, -0.75, 1000.0};
    if (kind < integers.size()) return integer(integers[kind]);
    kind -= integers.size();
    if (kind < doubles.size()) return doubles[kind];
    switch (kind - doubles.size()) {
        case 0:
            return true;
        case 1:
            return false;
        case 2:
            return {};
        case 3:
            return Unknown{};
        case 4:
            return std::string("abc");
        case 5:
            return std::string();
        case 6:
            return list_of({});
        case 7:
            return list_of({integer("3"), integer("1"), integer("2")});
        case 8:
            return list_of({integer("3"), integer("1"), integer("2"), integer("5"), integer("1")});
        case 9:
            return list_of({2.5, integer("batch"), Unknown{}});
        case 10:
            return list_of({true, false});
        case 11:
            return list_of({std::string("abc"), std::string("b")});
        case 12:
            return list_of({TensorValue{add_tensor(graph, {"2"}, DType::f32)}, Value{}});
        case 13: {
            Sequence dictionary;
            dictionary.keys =
                std::make_shared<std::vector<Value>>(std::vector<Value>{std::string("abc"), integer("2")});
            dictionary.items = std::make_shared<std::vector<Value>>(std::vector<Value>{integer("7"), 2.5});
            return dictionary;
        }
        case 14:
            return TensorValue{add_tensor(graph, {"batch", "3", "8"}, DType::f16)};
        case 15:
            return TensorValue{add_tensor(graph, {}, DType::i64)};
        default:
            return TensorValue{add_tensor(graph, {}, DType::f32, false)};
    }
}

std::string text_of(const Graph& graph, const Value& value, int depth = 0) {
    if (value.is_none()) return "None";
    if (value.as<Unknown>()) return "?";
    if (const auto* held = value.as<bool>()) return *held ? "True" : "False";
    if (const auto* held = value.as<Expression>()) return graph.expressions.to_string(*held);
    if (const auto* held = value.as<double>())
        return std::isnan(*held) ? "nan" : fmt::format("f{:.6g}", *held == 0 ? 0.0 : *held);
    if (const auto* held = value.as<std::string>()) return "'" + *held + "'";
    if (value.as<TensorValue>()) return "tensor";
    const auto* held = value.as<Sequence>();
    if (!held || depth > 3) return "object";
    std::string text = held->keys ? "{" : "[";
    for (std::size_t i = 0; i < held->items->size(); ++i) {
        if (held->keys) text += text_of(graph, (*held->keys)[i], depth + 1) + ":";
        text += text_of(graph, (*held->items)[i], depth + 1) + ",";
    }
    return text;
}

/// Adds the result of an operator, and what it has made of its arguments.
void add_call(Digest& digest, const std::string& kind, std::span<const std::size_t> kinds) {
    Graph graph;
    std::vector<Value> arguments;
    for (const std::size_t k : kinds) arguments.push_back(value_of(graph, k));
    try {
        const auto result = evaluate_on_host(graph, kind, arguments);
        digest.add(result ? text_of(graph, *result) : "no rule");
    } catch (const Error& error) {
        digest.add(error.what());
    }
    for (const Value& argument : arguments) digest.add(text_of(graph, argument));
}

}  // namespace

TEST_CASE("operators that the host computes have the results that are recorded, for values of every type") {
    check_recorded("host_operators.tsv", 2, [](std::span<const std::string> row) {
        std::mt19937 random(5);
        Digest one, two, more;
        for (std::size_t a = 0; a < value_kinds; ++a) {
            if (row[1] == "1") add_call(one, row[0], std::array{a});
            for (std::size_t b = 0; b < value_kinds; ++b) add_call(two, row[0], std::array{a, b});
        }
        for (int i = 0; i < 800; ++i) {
            std::vector<std::size_t> kinds(3 + random() % 2);
            for (std::size_t& kind : kinds) kind = random() % value_kinds;
            if (random() % 2 == 0) kinds[0] = 19 + random() % 8;  // a list or a dictionary
            for (std::size_t k = 1; k < kinds.size(); ++k)
                if (random() % 2 == 0) kinds[k] = random() % 9;
            add_call(more, row[0], kinds);
        }
        return std::vector<std::string>{one.text(6), two.text(6), more.text(6)};
    });
}

#ifdef FTAX_WITH_TORCH
namespace {

/// Changes one node of a program; false where a change does not apply. LibTorch gives the operators of the host as many
/// arguments as they have.
bool change(Node& node, ExpressionPool& pool, int how) {
    switch (how) {
        case 0:
            node.kind = "aten::mystery";
            return node.kind.starts_with("aten::");
        case 1:
            if (node.inputs.empty() || node.output_types.empty() || node.output_types[0] != ValueType::tensor)
                return false;
            node.inputs.pop_back();
            return true;
        case 2:
            if (node.inputs.size() < 2) return false;
            std::swap(node.inputs[0], node.inputs[1]);
            return true;
        case 3:
            if (node.arguments.empty()) return false;
            node.arguments.pop_back();
            return true;
        case 4:
            if (node.blocks.empty()) return false;
            std::swap(node.blocks.front(), node.blocks.back());
            node.blocks.pop_back();
            return true;
        case 5:
            if (node.output_types.empty()) return false;
            node.output_types.front() =
                node.output_types.front() == ValueType::tensor ? ValueType::tensors : ValueType::tensor;
            return true;
        case 6:
            node.list_items = node.list_items == 0 ? 2 : 0;
            return true;
        default:
            if (const auto* number = node.constant.as<Expression>()) {
                node.constant = how == 7 ? Value(pool.add(*number, pool.constant(1))) : Value(pool.parse("batch"));
            } else if (const auto* truth = node.constant.as<bool>()) {
                node.constant = how == 7 ? Value(!*truth) : Value(Unknown{});
            } else if (node.kind == "prim::Constant") {
                node.constant = how == 7 ? Value(pool.constant(2)) : Value();
            } else {
                return false;
            }
            return true;
    }
}

void nodes_of(Block& block, std::vector<Node*>& nodes) {
    for (Node& node : block.nodes) {
        nodes.push_back(&node);
        for (Block& inner : node.blocks) nodes_of(inner, nodes);
    }
}

std::vector<Node*> nodes_of(Program& program) {
    std::vector<Node*> nodes;
    for (Function& function : program.functions) nodes_of(function.body, nodes);
    return nodes;
}

void add_run(Digest& digest, const Program& program, const ImportOptions& options) {
    Graph graph;
    try {
        interpret(program, options, graph);
        digest.add(to_text(graph));
        for (const std::string& warning : graph.warnings) digest.add(warning);
        for (const UndecidedBranch& branch : graph.undecided)
            digest.add(branch.name).add(branch.then_taken ? 1.0 : 0.0);
        for (const ModuleCall& call : graph.module_calls) digest.add(call.path).add(call.type);
    } catch (const Error& error) {
        digest.add(error.what());
    } catch (const std::out_of_range&) {  // an argument that LibTorch always gives
        digest.add("too few arguments");
    }
}

}  // namespace

TEST_CASE("TorchScript programs, with each node changed, dispatch the operators that are recorded") {
    check_recorded("scripts.tsv", 2, [](std::span<const std::string> row) {
        ImportOptions options;
        options.max_nodes = 3000;
        std::istringstream inputs(row[1]);
        for (std::string input; std::getline(inputs, input, ',');)
            options.input_shapes.push_back(scenario::parse_input_type(input));
        Program program = load_program(std::string(FTAX_SOURCE_DIR) + "/" + row[0]);
        Digest whole;
        add_run(whole, program, options);
        std::vector<std::string> cells{whole.text(6)};
        const std::size_t count = nodes_of(program).size(), step = count / 150 + 1;
        for (int how = 0; how <= 8; ++how) {
            Digest changed;
            for (std::size_t n = 0; n < count; n += step) {
                Program copy = program;
                if (change(*nodes_of(copy)[n], copy.expressions, how)) add_run(changed, copy, options);
            }
            cells.push_back(changed.text(6));
        }
        return cells;
    });
}
#endif
