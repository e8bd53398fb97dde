#pragma once

#include <cstdint>
#include <vector>

#include "ftax/graph.hpp"

/// What torch.autocast(float16) does to a graph of f32 operators.
namespace ftax::autocast {

enum class Policy : std::uint8_t {
    lower,        ///< operands are cast to f16, the result is f16: contractions
    full,         ///< operands are cast to f32, the result is f32
    full_result,  ///< reads what it is given, accumulates and writes f32
    widest,       ///< takes the widest type of its operands
};

/// Source: PyTorch, "Autocast Op Reference"; aten/src/ATen/autocast_mode.h (lists lower_precision_fp, fp32 and
/// fp32_set_opt_dtype).
/// timm's own norm layers keep f16, as its benchmarks run them (`--fast-norm`): group norms of timm_infer.csv take a
/// third of the time that casts to f32 and back would. Source: timm, layers/fast_norm.py.
[[nodiscard]] std::vector<Policy> policies(const Graph& graph);

/// Gives each floating-point tensor of `storage` (one entry per tensor of the graph, f32 to begin with) the type it has
/// under autocast, `policies` being those of the graph's operators.
void assign_storage(const Graph& graph, const std::vector<Policy>& policies, std::vector<DType>& storage);

}  // namespace ftax::autocast
