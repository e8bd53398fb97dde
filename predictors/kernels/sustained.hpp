#pragma once

#include <algorithm>
#include <string>

#include "ftax/device.hpp"
#include "predictors/kernels/device_rates.hpp"
#include "predictors/kernels/power.hpp"
#include "predictors/profiles/parameters.hpp"

/// Sustained rates of a card relative to its datasheet: the few scalars of a device and the resulting rates.
namespace ftax::kernels {

struct SustainedParameters {
    double clock_fp32{};      ///< sustained / datasheet rate of the CUDA cores
    double clock_tensor{};    ///< sustained / datasheet rate of the tensor cores, all types
    double bandwidth{};       ///< sustained / datasheet memory bandwidth
    double kernel_floor_s{};  ///< shortest time of a kernel
};

[[nodiscard]] inline bool is_consumer(const DeviceSpec& device) {
    return device.name.find("GeForce") != std::string::npos || device.name.find("TITAN") != std::string::npos;
}

/// Returns the sustained clock relative to the stated boost clock; GeForce and Titan cards exceed it.
/// Source: an RTX 4090 sustains 2.70 GHz (boost 2.52), an RTX 2080 Ti 1.8 (1.55).
[[nodiscard]] inline double held_clock_ratio(const DeviceSpec& device) {
    return is_consumer(device) ? 1.11 : 1;
}

/// Returns the expected share of the datasheet memory bandwidth for an unmeasured card; ECC in GDDR reduces it.
/// Source: data/architectures; a T4 sustains 0.74 of it, a P4 0.76.
[[nodiscard]] inline double expected_bandwidth_share(const DeviceSpec& device) {
    constexpr double with_inline_ecc = 0.76;
    const double share = device.chip().dram_share;
    return device.inline_ecc_share ? std::min(share, with_inline_ecc) : share;
}

/// Returns the expected share of the datasheet CUDA-core rate for an unmeasured card: if lanes are shared, integer and
/// address arithmetic takes issue slots from products. Source: data/architectures.
[[nodiscard]] inline double expected_clock_share(const DeviceSpec& device) {
    return is_consumer(device) ? device.chip().f32_share_consumer : device.chip().f32_share;
}

/// Returns the expected share of the datasheet tensor-core rate. GeForce cards accumulate in f32 at half rate, so their
/// kernels get closer to the peak, at clocks above the stated boost.
[[nodiscard]] inline double expected_tensor_share(const DeviceSpec& device) {
    const auto rate = device.peak(MathPath::fp16_tensor);
    const auto narrow_rate = device.peak(MathPath::fp16_tensor_fp16_accumulate);
    const bool half_rate = rate && narrow_rate && *rate < *narrow_rate;
    return is_consumer(device) && half_rate ? 1.27 : 0.95;
}

/// Returns the sustained rate of int8 convolutions relative to clock.tensor. It is higher on chips whose SMs have half
/// of GA100's operations per clock, which shared memory can feed; for GeForce cards expected_tensor_share includes this
/// already. Source: an RTX 4090 and MLPerf's ResNet-50, docs/kernel-models/power.md, sustained clocks.
[[nodiscard]] inline double narrow_share(const DeviceSpec& device, MathPath path) {
    constexpr double fed_ops_per_cycle = 2048;
    if (path != MathPath::int8_tensor || !device.chip().asynchronous_copies || expected_tensor_share(device) > 1)
        return 1;
    const double per_cycle = device.peak(path).value_or(0) / device.sms / device.boost_clock_hz;
    return per_cycle <= 1.01 * fed_ops_per_cycle ? 1.2 : 1;
}

/// Returns the share of the chip's f16 tensor-core rate that a cut-down board has: L20, L40 and H20. GeForce cards
/// accumulate in f32 at half rate; what that is worth is in their fits.
[[nodiscard]] inline double tensor_rate_left(const DeviceSpec& device) {
    const double whole = device.chip().tensor_ops_per_cycle;
    const double rate = device.peak(MathPath::fp16_tensor).value_or(0) / (device.sms * device.boost_clock_hz);
    return is_consumer(device) || rate > 0.75 * whole ? 1 : rate / whole;
}

/// Initial values depend on the device.
inline void visit_parameters(SustainedParameters& p, const DeviceSpec& datasheet, const ParameterVisitor& visit) {
    using enum ParameterScope;
    visit("clock.fp32", p.clock_fp32,
          {expected_clock_share(datasheet), 0.3, 1.3, 0.08, device, "sustained / boost rate, CUDA cores"});
    visit("clock.tensor", p.clock_tensor,
          {expected_tensor_share(datasheet), 0.2, 1.5, 0.15, device, "sustained / boost rate, tensor cores"});
    visit("bandwidth", p.bandwidth,
          {expected_bandwidth_share(datasheet), 0.3, 1.05, 0.05, device, "sustained / datasheet bandwidth"});
    visit("kernel_floor_s", p.kernel_floor_s,
          {2e-6, 5e-7, 1e-5, 0.15, architecture,
           "start to end of an empty kernel; framework_tax.csv: about 2 µs per operator"});
}

/// Combines datasheet and sustained shares into the rates for the kernel models. A device without `path` computes at
/// its fp32 rate (f16 storage on Pascal). Source: fp16 rows of Pascal cards, framework_tax.csv.
inline DeviceRates device_rates(const DeviceSpec& device, MathPath path, const SustainedParameters& p) {
    const double fp32 = device.peak(MathPath::fp32).value_or(1e12);
    const bool cuda_cores = path == MathPath::fp64 || path == MathPath::fp32 || !device.peak(path);
    DeviceRates rates;
    rates.chip = &device.chip();
    rates.path = path;
    rates.sms = device.sms;
    rates.f32_lanes = fp32 / (2 * device.sms * device.boost_clock_hz);
    rates.l2_bytes = device.l2_bytes;
    rates.shared_memory_per_sm_bytes = device.shared_memory_per_sm_bytes;
    rates.max_threads_per_sm = device.max_threads_per_sm;
    rates.boost_clock_hz = held_clock_ratio(device) * device.boost_clock_hz;
    rates.peak_flops_per_s = held_clock_ratio(device) * device.peak(path).value_or(fp32);
    rates.dram_bytes_per_s = device.memory_bandwidth_bytes_per_s;
    rates.has_inline_ecc = device.inline_ecc_share.has_value();
    rates.l2_bytes_per_clock = device.l2_bytes_per_clock;
    rates.power_limit_w = device.power_limit_w;
    rates.arithmetic_power_w = arithmetic_power_w(device);
    rates.energy_per_flop_j = energy_per_flop_j(device, path);
    rates.fp32_energy_per_flop_j = device.chip().f32_energy_per_flop_j;
    rates.tensor_rate_left = tensor_rate_left(device);
    rates.flops_per_s =
        (cuda_cores ? p.clock_fp32 : p.clock_tensor) * narrow_share(device, path) * device.peak(path).value_or(fp32);
    // GeForce cards accumulate fp16 at the full rate, without a bonus beyond the clock.
    if (path == MathPath::fp16_tensor_fp16_accumulate && p.clock_tensor > 1.0) rates.flops_per_s /= p.clock_tensor;
    rates.fp32_flops_per_s = p.clock_fp32 * fp32;
    rates.bandwidth_bytes_per_s = p.bandwidth * device.memory_bandwidth_bytes_per_s;
    rates.traffic_power_share = traffic_power_share(rates);
    rates.floor_s = p.kernel_floor_s;
    return rates;
}

}  // namespace ftax::kernels
