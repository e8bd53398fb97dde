#pragma once

#include <variant>

#include "predictors/kernels/cpu.hpp"
#include "predictors/kernels/kernel_models.hpp"
#include "predictors/kernels/shapes.hpp"

namespace ftax {

using DeviceModel = std::variant<KernelModels, kernels::CpuModel>;

/// Resolves the parameters of a profile.
/// Throws Error{profile} for a value outside its bounds, an unknown name, or an uncalibrated CPU.
[[nodiscard]] DeviceModel device_model(const DeviceProfile& profile);

/// Plans a kernel; on a CPU only the time is set.
[[nodiscard]] kernels::KernelPlan plan(const DeviceModel& model, const KernelShape& shape, MathPath path);

/// Returns details of a kernel's time (kernel_models.hpp); on a CPU only time and bound.
[[nodiscard]] KernelDetail kernel_detail(const DeviceModel& model, const KernelShape& shape, MathPath path);

}  // namespace ftax
