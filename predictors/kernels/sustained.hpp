#pragma once

#include <string>

#include "ftax/device.hpp"
#include "ftax/parameter.hpp"
#include "predictors/kernels/device_rates.hpp"

/// What a card sustains of what its datasheet promises: the few scalars of a device, and the rates that follow.
namespace ftax::kernels {

template <class T>
struct SustainedParameters {
    T clock_fp32{};      ///< sustained / datasheet rate of the CUDA cores
    T clock_tensor{};    ///< the same of the tensor cores, all element types
    T bandwidth{};       ///< sustained / datasheet memory bandwidth
    T kernel_floor_s{};  ///< shortest time of a kernel
};

/// Expects this share of the datasheet's memory bandwidth of a card nobody measured.
/// Source: fits of large pointwise rows of neusight_ops.csv (P4 0.76, P100 0.75, T4 0.74 with ECC inside GDDR; V100
/// 0.91, A100 0.88); GDDR without ECC as HBM: BabelStream results of RTX 2080 Ti and 3090, 0.9 to 0.93.
[[nodiscard]] inline double expected_bandwidth_share(const DeviceSpec& device) {
    if (device.architecture == Architecture::maxwell || device.architecture == Architecture::pascal) return 0.755;
    return device.inline_ecc_share ? 0.76 : 0.9;
}

/// Expects this share of the datasheet's CUDA-core rate of a card nobody measured. From compute capability 8.6 on half
/// of the f32 lanes share their issue slots with integer and address arithmetic, which matrix products cannot do without.
/// Source: NVIDIA GA102 whitepaper, "2x FP32 throughput"; fit of RTX A6000 rows of framework_tax.csv (0.60 to 0.63).
[[nodiscard]] inline double expected_clock_share(const DeviceSpec& device) {
    const bool shared_lanes = (device.compute_capability_major == 8 && device.compute_capability_minor >= 6) ||
                              device.compute_capability_major >= 12;
    return shared_lanes ? 0.65 : 1;
}

/// Expects this share of the datasheet's tensor-core rate. GeForce cards clock well above their stated boost, and their
/// stated rate with f32 accumulation is half of what the cores do.
/// Source: fits of convolutions of framework_tax.csv and timm_infer.csv (RTX 2080 Ti, 3090, 4090: 1.2 to 1.35; RTX A6000
/// 1.05; Quadro RTX 8000, V100, A100 0.8 to 0.95).
[[nodiscard]] inline double expected_tensor_share(const DeviceSpec& device) {
    return device.name.find("GeForce") != std::string::npos ? 1.2 : 0.95;
}

/// Calls visit(name, field, ParameterSpec) for each parameter; the initial values depend on the device.
template <class T, class Visit>
void visit_parameters(SustainedParameters<T>& p, const DeviceSpec& datasheet, Visit&& visit) {
    using enum ParameterScope;
    visit("clock.fp32", p.clock_fp32,
          ParameterSpec{expected_clock_share(datasheet), 0.3, 1.3, 0.08, device, "sustained / boost rate, CUDA cores"});
    visit("clock.tensor", p.clock_tensor,
          ParameterSpec{expected_tensor_share(datasheet), 0.2, 1.5, 0.15, device, "sustained / boost rate, tensor cores"});
    visit(
        "bandwidth", p.bandwidth,
        ParameterSpec{expected_bandwidth_share(datasheet), 0.3, 1.05, 0.05, device, "sustained / datasheet bandwidth"});
    visit("kernel_floor_s", p.kernel_floor_s,
          ParameterSpec{2e-6, 5e-7, 1e-5, 0.3, architecture,
                        "start to end of an empty kernel; KERNEL_NOTES: 2 µs per operator"});
}

/// Combines datasheet and sustained shares into the rates the kernel models take.
/// A device without `path` computes at its fp32 rate (half storage on Pascal). Source: DESIGN.md §4.
template <class T>
DeviceRates<T> device_rates(const DeviceSpec& device, MathPath path, const SustainedParameters<T>& p) {
    const double fp32 = device.peak(MathPath::fp32).value_or(1e12);
    const bool cuda_cores = path == MathPath::fp64 || path == MathPath::fp32 || !device.peak(path);
    DeviceRates<T> rates;
    rates.architecture = device.architecture;
    rates.path = path;
    rates.sms = device.sms;
    rates.l2_bytes = device.l2_bytes;
    rates.shared_memory_per_sm_bytes = device.shared_memory_per_sm_bytes;
    rates.max_threads_per_sm = device.max_threads_per_sm;
    rates.boost_clock_hz = device.boost_clock_hz;
    rates.power_limit_w = device.power_limit_w;
    rates.flops_per_s = (cuda_cores ? p.clock_fp32 : p.clock_tensor) * device.peak(path).value_or(fp32);
    rates.fp32_flops_per_s = p.clock_fp32 * fp32;
    rates.bandwidth_bytes_per_s = p.bandwidth * device.memory_bandwidth_bytes_per_s;
    rates.floor_s = p.kernel_floor_s;
    return rates;
}

}  // namespace ftax::kernels
