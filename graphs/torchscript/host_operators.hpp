#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "graphs/torchscript/program.hpp"

namespace ftax::script {

/// Evaluates operators that Python or the interpreter computes on the host: sizes, numbers, lists, conditions. Only the
/// types of tensor arguments are used. The result is Unknown if it depends on data. nullopt: no such operator, or one
/// that works on the elements of a tensor.
[[nodiscard]] std::optional<Value> evaluate_on_host(Graph& graph, std::string_view kind,
                                                    std::span<const Value> arguments);

/// Returns the value of a condition; nullopt if it depends on data.
[[nodiscard]] std::optional<bool> truth_of(const Graph& graph, const Value& value);

}  // namespace ftax::script
