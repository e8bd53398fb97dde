#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ftax/device.hpp"
#include "ftax/graph.hpp"
#include "ftax/precision.hpp"

namespace ftax::bench {

/// One operator to measure, as operator files name it: "conv" with {"b": 1, "cin": 64, …}.
struct OperatorCase {
    std::string op;
    std::map<std::string, std::int64_t> shape;
};

/// The network that consists of this one operator.
/// Throws Error{usage} for an operator that cannot be measured or a dimension that is missing.
[[nodiscard]] Graph operator_graph(const OperatorCase& operator_case);

/// Prints the shape as operator files write it: "b=1 cin=64 …".
[[nodiscard]] std::string shape_text(const OperatorCase& operator_case);

[[nodiscard]] std::int64_t weight_bytes(const Graph& graph);

/// Copies of an operator's weights that calls rotate through: at least two, together twice the last cache in the
/// precision that is measured, so that a call finds them where a large network's pass does. 1 without weights.
[[nodiscard]] int weight_sets(const Graph& graph, Precision precision, const DeviceSpec& device);

/// Shapes for a CPU: log-spaced over the range used by networks, each at most `max_flops` and `max_bytes`.
[[nodiscard]] std::vector<OperatorCase> cpu_operators(bool quick);

/// Small shapes, one or two of every operator: only host time is measured. A chain tells the call from its operators.
[[nodiscard]] std::vector<OperatorCase> dispatch_operators();

/// Shapes for a GPU: log-spaced, with the edges of tiles (multiples of 64, one more, one less), and those of waves if
/// its number of multiprocessors is given.
[[nodiscard]] std::vector<OperatorCase> gpu_operators(int sms = 0);

}  // namespace ftax::bench
