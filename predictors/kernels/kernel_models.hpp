#pragma once

#include <array>
#include <string_view>

#include "ftax/device.hpp"
#include "ftax/predict.hpp"
#include "predictors/kernels/attention.hpp"
#include "predictors/kernels/conv.hpp"
#include "predictors/kernels/gemm.hpp"
#include "predictors/kernels/memory_bound.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/kernels/sustained.hpp"

namespace ftax {

/// All parameters of the device side. `double` predicts, `ceres::Jet` fits.
template <class T>
struct KernelParameters {
    kernels::SustainedParameters<T> sustained;
    kernels::GemmParameters<T> gemm;
    kernels::ConvParameters<T> conv;
    kernels::MemoryParameters<T> memory;
    kernels::AttentionParameters<T> attention;
};

/// Calls visit(name, field, ParameterSpec) for each parameter; some initial values depend on the device.
template <class T, class Visit>
void visit_parameters(KernelParameters<T>& p, const DeviceSpec& device, Visit&& visit) {
    visit_parameters(p.sustained, device, visit);
    visit_parameters(p.gemm, visit);
    visit_parameters(p.conv, visit);
    visit_parameters(p.memory, visit);
    visit_parameters(p.attention, visit);
}

/// The kernel models of one device with their parameters: the one place where a shape becomes a time.
template <class T>
struct KernelModels {
    KernelParameters<T> parameters;
    std::array<kernels::DeviceRates<T>, math_path_count> rates;

    KernelModels(const DeviceSpec& device, const KernelParameters<T>& values) : parameters(values) {
        for (int i = 0; i < math_path_count; ++i) {
            rates[i] = kernels::device_rates(device, static_cast<MathPath>(i), parameters.sustained);
        }
    }

    [[nodiscard]] const kernels::DeviceRates<T>& at(MathPath path) const { return rates[static_cast<int>(path)]; }

    [[nodiscard]] kernels::KernelTime<T> time(const kernels::GemmShape& shape, MathPath path) const {
        return kernels::plan_gemm(shape, at(path), parameters.gemm);
    }
    [[nodiscard]] kernels::KernelTime<T> time(const kernels::ConvShape& shape, MathPath path) const {
        return kernels::plan_conv(shape, at(path), parameters.conv);
    }
    [[nodiscard]] kernels::KernelTime<T> time(const kernels::MemoryShape& shape, MathPath) const {
        const T seconds = kernels::memory_seconds(shape, at(MathPath::fp32), parameters.memory);
        return {seconds, kernels::power_limited_seconds(seconds, T(0.0))};
    }
    [[nodiscard]] kernels::KernelTime<T> time(const kernels::AttentionShape& shape, MathPath path) const {
        const T seconds = kernels::attention_seconds(shape, at(path), parameters.attention);
        const T full_rate_s = kernels::attention::flops(shape) / at(path).flops_per_s;
        const T arithmetic_s = full_rate_s * power_ratio(at(path), T(1.0));
        return {seconds, kernels::power_limited_seconds(seconds, arithmetic_s)};
    }
};

/// Resolves the parameters of a device profile; what it does not set keeps its initial value.
/// Throws Error{profile} for a name no model has or a value outside the bounds its model declares.
[[nodiscard]] KernelParameters<double> kernel_parameters(const DeviceProfile& profile);

}  // namespace ftax
