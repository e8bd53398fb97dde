#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "graphs/torchscript/program.hpp"

namespace ftax::script {

/// Evaluates operators that Python or the interpreter computes on the host: sizes, numbers, lists, conditions. Tensors
/// among the arguments are asked for their type only. The result is Unknown where it depends on data.
/// nullopt: no such operator, or one that works on the elements of a tensor.
[[nodiscard]] std::optional<Value> evaluate_on_host(Graph& graph, std::string_view kind,
                                                    std::span<const Value> arguments);

/// Truth of a condition; nullopt when it depends on data.
[[nodiscard]] std::optional<bool> truth_of(const Graph& graph, const Value& value);

}  // namespace ftax::script
