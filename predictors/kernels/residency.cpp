#include "predictors/kernels/residency.hpp"

#include <algorithm>
#include <cmath>

namespace ftax {
namespace {

/// Source: PyTorch aten/src/ATen/native/cuda/thread_constants.h: four warps, four elements a thread.
constexpr double pointwise_threads = 128;
constexpr double elements_per_thread = 4;
/// Rows of up to 1,024 elements get a warp each. Source: PyTorch PersistentSoftmax.cuh, softmax_warp_forward.
constexpr double softmax_rows_per_block = 4;
/// Queries of one block, and how many blocks shared memory leaves room for. Source: FlashAttention, kBlockM = 128.
constexpr double attention_rows = 128;
constexpr double attention_resident = 2;

double blocks_of_rows(const kernels::MemoryShape& shape) {
    using enum kernels::MemoryClass;
    const auto rows = static_cast<double>(shape.rows);
    if (shape.cls == softmax) return rows / softmax_rows_per_block;
    if (shape.cls == layer_norm || shape.cls == group_norm) return rows;
    return static_cast<double>(shape.elements) / (pointwise_threads * elements_per_thread);
}

}  // namespace

Residency residency(double blocks, double threads_per_block, double resident_per_sm,
                    const kernels::DeviceRates<double>& rates) {
    const double per_sm = std::ceil(blocks) / rates.sms;
    const double waves = std::ceil(per_sm / resident_per_sm);
    if (waves < 1) return {};
    const double last = per_sm - (waves - 1) * resident_per_sm;  // blocks per SM in the last wave
    return {.sms = (waves - 1 + std::min(1.0, last)) / waves,
            .warps = std::min(1.0, per_sm / waves * threads_per_block / rates.max_threads_per_sm)};
}

Residency residency(const kernels::GemmPlan<double>& plan, const kernels::DeviceRates<double>& rates) {
    const double resident = plan.tile->resident;
    const double threads = 128 / plan.tile->idle_schedulers;
    return residency(plan.waves * resident * rates.sms, threads, resident, rates);
}

Residency residency(const kernels::ConvShape& shape, const kernels::ConvPlan<double>& plan,
                    const kernels::DeviceRates<double>& rates) {
    if (plan.tile.threads == 0) {  // grouped and depthwise kernels: a thread per output
        const double outputs = static_cast<double>(shape.batch) * static_cast<double>(shape.out_channels) *
                               static_cast<double>(shape.out_depth) * static_cast<double>(shape.out_height) *
                               static_cast<double>(shape.out_width);
        return residency(outputs / pointwise_threads, pointwise_threads, rates.max_threads_per_sm / pointwise_threads,
                         rates);
    }
    const double resident =
        plan.algorithm == kernels::ConvAlgorithm::winograd_fused ? 1 : kernels::resident_blocks(plan.tile.threads);
    return residency(plan.waves * resident * rates.sms, plan.tile.threads, resident, rates);
}

Residency residency(const kernels::MemoryShape& shape, const kernels::DeviceRates<double>& rates) {
    return residency(blocks_of_rows(shape), pointwise_threads, rates.max_threads_per_sm / pointwise_threads, rates);
}

Residency residency(const kernels::AttentionShape& shape, const kernels::DeviceRates<double>& rates) {
    const double blocks = static_cast<double>(shape.batch) * static_cast<double>(shape.heads) *
                          std::ceil(static_cast<double>(shape.q_length) / attention_rows);
    return residency(blocks, pointwise_threads, attention_resident, rates);
}

}  // namespace ftax
