#include "graphs/input_shapes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ftax/error.hpp"
#include "graphs/vary_batch.hpp"
#include "src/core/symbol_range.hpp"

namespace ftax {
namespace {

/// `position` is that of a shape without a name among its kind.
const Tensor& find_input(const Graph& graph, const InputShape& shape, std::size_t position) {
    if (shape.input.empty() && position < graph.inputs.size()) return graph.tensors[graph.inputs[position]];
    std::vector<std::string> known;
    for (const TensorId id : graph.inputs) {
        if (graph.tensors[id].name == shape.input) return graph.tensors[id];
        known.push_back(graph.tensors[id].name);
    }
    throw Error(ErrorCode::usage, fmt::format("no input '{}'; the model has: {}", shape.input, fmt::join(known, ", ")));
}

/// The symbol when the dimension is nothing else; empty for numbers and compound expressions.
std::string bare_symbol(const ExpressionPool& pool, Expression dim) {
    const auto symbols = pool.symbols_of(dim);
    return symbols.size() == 1 && pool.to_string(dim) == symbols[0] ? symbols[0] : std::string{};
}

/// A file exported for one batch size takes another one when the user gives its inputs another leading dimension;
/// inputs that the user leaves out follow where theirs is the same.
void vary_fixed_batch(Graph& graph, const std::vector<InputShape>& shapes) {
    std::vector<const Tensor*> given;
    std::vector<TensorId> varied;
    std::optional<Expression> held, wanted;
    for (std::size_t i = 0, position = 0; i < shapes.size(); ++i) {
        const Tensor& input = find_input(graph, shapes[i], position);
        position += shapes[i].input.empty();
        if (input.shape.empty() || shapes[i].dims.empty()) continue;
        given.push_back(&input);
        const Expression leading = input.shape[0], asked = graph.expressions.parse(shapes[i].dims[0]);
        const auto size = graph.expressions.constant_value(leading);
        if (!size || *size < 1 || asked == leading) continue;
        if (held && (leading != *held || asked != *wanted)) {
            throw Error(ErrorCode::usage,
                        fmt::format("input {}: {} in place of {} and {} in place of {}: one batch can vary", input.name,
                                    shapes[i].dims[0], *size, graph.expressions.to_string(*wanted),
                                    graph.expressions.to_string(*held)));
        }
        held = leading;
        wanted = asked;
        varied.push_back(static_cast<TensorId>(&input - graph.tensors.data()));
    }
    if (!held) return;
    for (const TensorId id : graph.inputs) {
        const Tensor& input = graph.tensors[id];
        const bool named = std::find(given.begin(), given.end(), &input) != given.end();
        if (!named && !input.shape.empty() && input.shape[0] == *held) varied.push_back(id);
    }
    vary_batch(graph, *wanted, varied);
}

/// Ranges of symbols that the user renamed go by the new name; a number in place of a symbol is held against its range.
void replace_in_ranges(Graph& graph, const ExpressionPool& pool,
                       const std::map<std::string, Expression, std::less<>>& replace) {
    std::vector<SymbolRange> kept;
    for (SymbolRange& range : graph.ranges) {
        const auto found = replace.find(range.symbol);
        if (found != replace.end()) {
            const auto number = pool.constant_value(found->second);
            std::string warning = number ? range_warning(range, *number) : std::string{};
            if (!warning.empty()) graph.warnings.push_back(std::move(warning));
            range.symbol = bare_symbol(pool, found->second);
        }
        if (!range.symbol.empty()) kept.push_back(std::move(range));
    }
    graph.ranges = std::move(kept);
}

}  // namespace

void apply_input_shapes(Graph& graph, const std::vector<InputShape>& shapes) {
    if (shapes.empty()) return;
    vary_fixed_batch(graph, shapes);
    ExpressionPool pool;
    std::map<std::string, Expression, std::less<>> replace;
    std::size_t position = 0;
    for (const InputShape& shape : shapes) {
        const Tensor& input = find_input(graph, shape, position);
        position += shape.input.empty();
        if (!shape.value.empty()) {
            throw Error(ErrorCode::usage,
                        fmt::format("input {} is a tensor: give its shape, not the value {}", input.name, shape.value));
        }
        if (shape.dims.size() != input.shape.size()) {
            throw Error(ErrorCode::usage, fmt::format("input {} has {} dimensions, not {}", shape.input,
                                                      input.shape.size(), shape.dims.size()));
        }
        for (std::size_t i = 0; i < shape.dims.size(); ++i) {
            const Expression wanted = pool.parse(shape.dims[i]);
            const std::string held = graph.expressions.to_string(input.shape[i]);
            const std::string symbol = bare_symbol(graph.expressions, input.shape[i]);
            if (symbol.empty() && pool.to_string(wanted) != held) {
                throw Error(
                    ErrorCode::usage,
                    fmt::format(
                        "dimension {} of input {} is fixed to {} in this file; export it with a dynamic dimension", i,
                        shape.input, held));
            }
            if (!symbol.empty() && !(replace.try_emplace(symbol, wanted).first->second == wanted)) {
                throw Error(ErrorCode::usage, fmt::format("the shapes give {} two values", symbol));
            }
        }
    }
    for (Tensor& tensor : graph.tensors) {
        for (Expression& dim : tensor.shape) dim = pool.import(graph.expressions, dim, replace);
        for (Expression& stride : tensor.strides) stride = pool.import(graph.expressions, stride, replace);
    }
    replace_in_ranges(graph, pool, replace);
    graph.expressions = std::move(pool);
}

}  // namespace ftax
