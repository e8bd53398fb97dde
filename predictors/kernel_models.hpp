#pragma once

#include "ftax/device.hpp"
#include "ftax/predict.hpp"
#include "predictors/kernels/attention.hpp"
#include "predictors/kernels/conv.hpp"
#include "predictors/kernels/memory_bound.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/kernels/sustained.hpp"

namespace ftax {

struct KernelCost {
    double seconds = 0;
    Bound bound = Bound::latency_floor;
};

/// The kernel models of one device: the parameters of its profile resolved into typed form, once.
class KernelModels {
  public:
    /// Throws Error{profile} for a parameter outside the bounds its model declares.
    explicit KernelModels(const DeviceProfile& profile);

    [[nodiscard]] KernelCost cost(const kernels::GemmShape& shape, MathPath path) const;
    [[nodiscard]] KernelCost cost(const kernels::ConvShape& shape, MathPath path) const;
    [[nodiscard]] KernelCost cost(const kernels::MemoryShape& shape) const;
    [[nodiscard]] KernelCost cost(const kernels::AttentionShape& shape, MathPath path) const;

  private:
    [[nodiscard]] const kernels::DeviceRates<double>& rates(MathPath path) const {
        return rates_[static_cast<int>(path)];
    }

    DeviceSpec device_;
    std::array<kernels::DeviceRates<double>, math_path_count> rates_;
    kernels::ConvParameters<double> conv_;
    kernels::MemoryParameters<double> memory_;
    kernels::AttentionParameters<double> attention_;
};

}  // namespace ftax
