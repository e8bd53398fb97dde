#pragma once

#include <variant>

#include "predictors/kernels/cpu.hpp"
#include "predictors/kernels/kernel_detail.hpp"
#include "predictors/kernels/shapes.hpp"

namespace ftax {

/// The kernel models of a device, whatever it is.
using DeviceModel = std::variant<KernelModels, kernels::CpuModel>;

/// Resolves the parameters of a profile.
/// Throws Error{profile} for a value outside its bounds, a name that no model has, or a CPU that was never calibrated.
[[nodiscard]] DeviceModel device_model(const DeviceProfile& profile);

/// Plans a kernel; of a CPU's loops only times are known.
[[nodiscard]] kernels::KernelPlan plan(const DeviceModel& model, const KernelShape& shape, MathPath path);

/// Says how a kernel is timed (kernel_detail.hpp); of a CPU's only time and bound.
[[nodiscard]] KernelDetail kernel_detail(const DeviceModel& model, const KernelShape& shape, MathPath path);

}  // namespace ftax
