#pragma once

#include <cstdint>
#include <vector>

#include "ftax/graph.hpp"

namespace ftax::autocast {

enum class Policy : std::uint8_t {
    lower,        ///< operands are cast to f16, the result is f16: contractions
    full,         ///< operands are cast to f32, the result is f32
    full_result,  ///< reads any type, accumulates and writes f32
    widest,       ///< takes the widest type of its operands
};

/// Source: PyTorch, "Autocast Op Reference"; aten/src/ATen/autocast_mode.h (lists lower_precision_fp, fp32 and
/// fp32_set_opt_dtype).
/// timm's own norm layers keep f16, as in its benchmarks (`--fast-norm`; timm, layers/fast_norm.py).
[[nodiscard]] std::vector<Policy> policies(const Graph& graph);

/// Sets the type of each floating-point tensor in `storage` (one entry per tensor, initially f32) under autocast, given
/// the `policies` of the graph's operators.
void assign_storage(const Graph& graph, const std::vector<Policy>& policies, std::vector<DType>& storage);

}  // namespace ftax::autocast
