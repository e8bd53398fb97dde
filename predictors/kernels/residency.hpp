#pragma once

#include "predictors/kernels/conv.hpp"
#include "predictors/kernels/device_rates.hpp"
#include "predictors/kernels/gemm.hpp"
#include "predictors/kernels/shapes.hpp"

namespace ftax {

/// How a kernel fills the GPU while it runs; shares from 0 to 1.
struct Residency {
    double sms = 0;    ///< SMs that hold a thread block, averaged over the kernel's waves
    double warps = 0;  ///< resident warps against what the SMs can hold
};

/// Spreads equal thread blocks over the SMs, one per SM before any gets a second; those that do not fit wait for the
/// next wave. Source: how CUDA's block scheduler fills a GPU; the measures are DCGM's SM_ACTIVE and SM_OCCUPANCY.
[[nodiscard]] Residency residency(double blocks, double threads_per_block, double resident_per_sm,
                                  const kernels::DeviceRates<double>& rates);

[[nodiscard]] Residency residency(const kernels::GemmPlan<double>& plan, const kernels::DeviceRates<double>& rates);
[[nodiscard]] Residency residency(const kernels::ConvShape& shape, const kernels::ConvPlan<double>& plan,
                                  const kernels::DeviceRates<double>& rates);
[[nodiscard]] Residency residency(const kernels::MemoryShape& shape, const kernels::DeviceRates<double>& rates);
[[nodiscard]] Residency residency(const kernels::AttentionShape& shape, const kernels::DeviceRates<double>& rates);

}  // namespace ftax
