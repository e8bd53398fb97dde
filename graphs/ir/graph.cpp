#include "ftax/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "graphs/base/checked_math.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/ir/operands.hpp"
#include "graphs/ir/symbol_range.hpp"

namespace ftax {
namespace {

/// The value of an attribute; nullptr where there is none of that type.
template <class T>
const T* find_value(const Op& op, std::string_view name) {
    const auto found = std::ranges::find(op.attributes, name, &Attribute::name);
    return found == op.attributes.end() ? nullptr : std::get_if<T>(&found->value);
}

/// Throws Error{model} naming the operator whose sizes the binding makes unequal.
void check_sizes(const Graph& graph, const BoundShapes& bound) {
    for (const SizeCheck& check : graph.size_checks) {
        const std::int64_t is = bound[check.is], must_be = bound[check.must_be];
        if (is == must_be || (check.or_one && is == 1)) continue;
        const auto print = [&](Expression e, std::int64_t value) {
            return graph.expressions.constant_value(e) ? std::to_string(value)
                                                       : fmt::format("{} = {}", graph.expressions.to_string(e), value);
        };
        throw_error(ErrorCode::model,
                    "{}: {}: {} and {} must be equal; the model holds a size of its export, export it with "
                    "dynamic dimensions",
                    graph.name, check.op, print(check.is, is), print(check.must_be, must_be));
    }
}

std::vector<std::string_view> unknown_names(const Graph& graph, const ShapeBindings& bindings) {
    const std::vector<std::string>& symbols = graph.expressions.symbols();
    std::vector<std::string_view> unknown;
    for (const auto& [name, value] : bindings)
        if (std::ranges::find(symbols, name) == symbols.end()) unknown.push_back(name);
    return unknown;
}

/// Few expressions are negative, and few of these are dimensions.
void check_signs(const Graph& graph, const BoundShapes& bound) {
    for (const Tensor& tensor : graph.tensors) {
        for (const Expression dim : tensor.shape) {
            if (bound[dim] >= 0) continue;
            const bool fixed = graph.expressions.constant_value(dim).has_value();
            throw_error(ErrorCode::model, "{}: tensor {} has a negative dimension: {}{}", graph.name, tensor.name,
                        fixed ? "" : graph.expressions.to_string(dim) + " = ", bound[dim]);
        }
    }
}

}  // namespace

std::int64_t Op::integer(std::string_view attribute, std::int64_t fallback) const {
    const auto* number = find_value<std::int64_t>(*this, attribute);
    return number ? *number : fallback;
}

std::span<const std::int64_t> Op::integers(std::string_view attribute) const {
    const auto* list = find_value<std::vector<std::int64_t>>(*this, attribute);
    return list ? std::span(*list) : std::span<const std::int64_t>{};
}

std::string_view Op::text(std::string_view attribute) const {
    const auto* text = find_value<std::string>(*this, attribute);
    return text ? std::string_view(*text) : std::string_view{};
}

void require_symbols(const Graph& graph, const ShapeBindings& bindings) {
    const std::vector<std::string_view> unknown = unknown_names(graph, bindings);
    if (unknown.empty()) return;
    const std::vector<std::string>& symbols = graph.expressions.symbols();
    throw_error(ErrorCode::usage, "{}: unknown dynamic dimension {} ({})", graph.name, fmt::join(unknown, ", "),
                symbols.empty() ? "the model has none" : fmt::format("known: {}", fmt::join(symbols, ", ")));
}

ShapeBindings by_symbol(const Graph& graph, const ShapeBindings& bindings) {
    ShapeBindings result;
    for (const auto& [name, value] : bindings) {
        const std::string symbol = value_or(graph.other_names, name, name);
        const auto [known, added] = result.emplace(symbol, value);
        if (!added && known->second != value)
            throw_error(ErrorCode::usage, "{}: the dimension {} has two names and two values: {} and {}", graph.name,
                        symbol, known->second, value);
    }
    return result;
}

void bind(const Graph& graph, const ShapeBindings& bindings, BoundShapes& bound) {
    const bool renamed =
        std::ranges::any_of(bindings, [&](const auto& b) { return graph.other_names.contains(b.first); });
    if (renamed) return ftax::bind(graph, by_symbol(graph, bindings), bound);
    const std::vector<std::string>& symbols = graph.expressions.symbols();
    std::vector<std::int64_t> symbol_values(symbols.size());
    std::string unbound;
    for (std::size_t i = 0; i < symbols.size(); ++i) {
        const auto found = bindings.find(symbols[i]);
        if (found == bindings.end()) {
            unbound +=
                fmt::format("{}{} ({})", unbound.empty() ? "" : ", ", symbols[i],
                            symbols[i] == "batch" ? std::string("--batch N") : fmt::format("--dim {}=N", symbols[i]));
            continue;
        }
        const std::int64_t least = symbols[i] == cached_tokens ? 0 : 1;
        if (found->second < least)
            throw_error(ErrorCode::usage, "symbol {} must be at least {}, not {}", symbols[i], least, found->second);
        symbol_values[i] = found->second;
    }
    if (!unbound.empty()) {
        const std::vector<std::string_view> unknown = unknown_names(graph, bindings);
        throw_error(ErrorCode::usage, "{}: give a value to the dynamic dimension {}{}{}{}", graph.name, unbound,
                    unbound.find(cached_tokens) == std::string::npos ? "" : "; `ftax generate` sets both",
                    unknown.empty() ? "" : "; unknown: ", fmt::join(unknown, ", "));
    }
    require_symbols(graph, bindings);
    graph.expressions.evaluate(symbol_values, bound.values);
    if (std::ranges::any_of(bound.values, [](auto size) { return size < 0; })) check_signs(graph, bound);
    check_sizes(graph, bound);
}

BoundShapes bind(const Graph& graph, const ShapeBindings& bindings) {
    BoundShapes bound;
    bind(graph, bindings, bound);
    return bound;
}

std::int64_t element_count(const Tensor& tensor, const BoundShapes& bound) {
    std::int64_t count = 1;
    for (const Expression dim : tensor.shape) count = checked_multiply(count, bound[dim]);
    return count;
}

std::int64_t byte_count(const Tensor& tensor, const BoundShapes& bound) {
    return ceil_quotient(checked_multiply(element_count(tensor, bound), bits_of(tensor.dtype)), 8);
}

TensorType bound_type(const Tensor& tensor, const BoundShapes& bound) {
    TensorType type{tensor.dtype, {}};
    for (const Expression dim : tensor.shape) type.shape.push_back(bound[dim]);
    return type;
}

bool sort_topologically(Graph& graph) {
    const auto producer_of = [&](TensorId input) { return input == no_tensor ? no_op : graph.tensors[input].producer; };
    const auto follows_producers = [&](const Op& op) {
        return std::ranges::all_of(op.inputs, [&](TensorId input) {
            return producer_of(input) == no_op || &graph.ops[producer_of(input)] < &op;
        });
    };
    if (std::ranges::all_of(graph.ops, follows_producers)) return false;
    const std::size_t count = graph.ops.size();
    std::vector<std::uint32_t> missing(count, 0);
    std::vector<std::vector<OpId>> readers(count);
    for (OpId id = 0; id < count; ++id) {
        for (const TensorId input : graph.ops[id].inputs) {
            if (producer_of(input) == no_op) continue;
            readers[producer_of(input)].push_back(id);
            ++missing[id];
        }
    }
    // A stable order: among operators that are ready, the one that came first in the file goes first.
    std::priority_queue<OpId, std::vector<OpId>, std::greater<>> ready;
    for (OpId id = 0; id < count; ++id)
        if (missing[id] == 0) ready.push(id);
    std::vector<OpId> order;
    while (!ready.empty()) {
        const OpId id = order.emplace_back(ready.top());
        ready.pop();
        for (const OpId reader : readers[id])
            if (--missing[reader] == 0) ready.push(reader);
    }
    if (order.size() < count) {
        // Walk backwards along unfinished producers until an operator repeats: that walk contains a cycle.
        OpId at = static_cast<OpId>(std::ranges::find_if(missing, [](auto m) { return m > 0; }) - missing.begin());
        const auto waits = [&](TensorId id) { return producer_of(id) != no_op && missing[producer_of(id)] > 0; };
        std::vector<OpId> walk;
        while (std::ranges::find(walk, at) == walk.end()) {
            walk.push_back(at);
            at = producer_of(*std::ranges::find_if(graph.ops[at].inputs, waits));
        }
        std::string cycle = graph.ops[at].name;
        for (auto step = std::ranges::find(walk, at) + 1; step != walk.end(); ++step)
            cycle.insert(0, graph.ops[*step].name + " → ");
        throw_error(ErrorCode::model, "{}: the graph has a cycle: {} → {}", graph.name, graph.ops[at].name, cycle);
    }
    graph.ops = mapped(order, [&](OpId id) { return std::move(graph.ops[id]); });
    assign_producers(graph);
    return true;
}

}  // namespace ftax
