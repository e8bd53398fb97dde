#pragma once

#include <algorithm>
#include <cmath>

#include "ftax/equations.hpp"
#include "ftax/parameter.hpp"
#include "predictors/kernels/device_rates.hpp"
#include "predictors/kernels/shapes.hpp"

/// Scaled dot-product attention.
namespace ftax::kernels {

template <class T>
struct AttentionParameters {
    T flash_efficiency{}, memory_efficient_efficiency{}, math_efficiency{}, start_keys{};
};

/// Calls visit(name, field, ParameterSpec) for each parameter.
/// Source of the initial values: Dao, "FlashAttention-2", arXiv 2307.08691, figures 4 to 6 (A100, forward, per cent of
/// the tensor-core peak: flash 2 about 60 to 70, the memory-efficient kernel of xFormers about 35, unfused about 30);
/// no file we fit on holds fused attention.
template <class T, class Visit>
void visit_parameters(AttentionParameters<T>& p, Visit&& visit) {
    using enum ParameterScope;
    visit("attention.flash_efficiency", p.flash_efficiency,
          ParameterSpec{0.65, 0.1, 1, 0.3, shared, "share of the math path's rate; arXiv 2307.08691"});
    visit("attention.memory_efficient_efficiency", p.memory_efficient_efficiency,
          ParameterSpec{0.35, 0.05, 1, 0.3, shared, "share of the math path's rate; arXiv 2307.08691"});
    visit("attention.math_efficiency", p.math_efficiency,
          ParameterSpec{0.7, 0.1, 1, 0.3, shared, "share of the math path's rate of the two batched products"});
    visit("attention.start_keys", p.start_keys,
          ParameterSpec{64, 4, 512, 0.5, shared, "keys whose time it takes to start and end a block"});
}

namespace attention {

/// Query rows of one thread block. Source: the kernels' default tiles (flash 2: 128 queries up to 128 per head;
/// memory-efficient: 64).
constexpr double query_tile(AttentionPath path) {
    return path == AttentionPath::flash ? 128 : 64;
}

/// Blocks that share an SM: shared memory holds two tiles of queries, keys and values.
inline constexpr double blocks_per_sm = 2;

/// Head sizes for which kernels exist: multiples of 32.
inline double padded_head(std::int64_t head_dim) {
    return static_cast<double>((head_dim + 31) / 32 * 32);
}

}  // namespace attention

/// Time of one fused attention: softmax(Q·Kᵀ)·V, from the start of the first to the end of the last kernel, in seconds.
/// The math path writes the scores, reads and writes them in the softmax and reads them again; fused paths keep them.
/// Source: FLOPs and traffic of arXiv 2205.14135, section 3; waves of query tiles over the SMs.
template <class T>
T attention_seconds(const AttentionShape& shape, const DeviceRates<T>& device, const AttentionParameters<T>& p) {
    const double heads = static_cast<double>(shape.batch) * static_cast<double>(shape.heads);
    const auto queries = static_cast<double>(shape.q_length);
    const auto keys = static_cast<double>(shape.kv_length);
    const auto head_dim = static_cast<double>(shape.head_dim);
    const double scores = heads * queries * keys;
    if (scores <= 0) return device.floor_s;

    const double tensors_bytes = heads * (2 * queries + 2 * keys) * head_dim * shape.element_bytes;
    if (shape.path == AttentionPath::math) {
        const T product_s = 4 * scores * head_dim / (device.flops_per_s * p.math_efficiency);
        const T traffic_s = (tensors_bytes + 4 * scores * shape.element_bytes) / device.bandwidth_bytes_per_s;
        return 3.0 * device.floor_s + product_s + traffic_s;
    }

    const double tile = attention::query_tile(shape.path);
    const double blocks = heads * std::ceil(queries / tile);
    const double slots = device.sms * attention::blocks_per_sm;
    const double waves = blocks < slots ? std::ceil(blocks / device.sms) / attention::blocks_per_sm : blocks / slots;
    const double keys_per_block = shape.causal ? (keys + tile) / 2 : keys;
    const T& share = shape.path == AttentionPath::flash ? p.flash_efficiency : p.memory_efficient_efficiency;
    const T slot_flops_per_s = device.flops_per_s * share / slots;
    const T arithmetic_s = waves * (4 * tile * attention::padded_head(shape.head_dim)) *
                           (keys_per_block + p.start_keys) / slot_flops_per_s;
    return device.floor_s + equations::smooth_maximum(arithmetic_s, T(tensors_bytes / device.bandwidth_bytes_per_s));
}

}  // namespace ftax::kernels
