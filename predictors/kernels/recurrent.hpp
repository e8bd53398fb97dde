#pragma once

#include <algorithm>

#include "predictors/kernels/device_rates.hpp"
#include "predictors/kernels/kernel_plan.hpp"
#include "predictors/kernels/power.hpp"
#include "predictors/kernels/shapes.hpp"

/// A recurrent layer in one persistent kernel, which keeps the recurrent weights on chip (cuDNN's
/// CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H). Source: cudnn-rnn-bench-62143/forward (github.com/xwang233/code-snippet,
/// PyTorch 1.11), docs/kernel-models/recurrent.md.
namespace ftax::kernels {
namespace recurrent {

/// Largest weights that stay in the registers of one SM, in bytes; each value takes four bytes regardless of its type.
inline constexpr double register_bytes = 256 << 10;
inline constexpr double value_bytes = 4;
/// Latency of a step in cycles (from 1.5 GHz); sequences that double the time of a step; largest measured batch.
inline constexpr double step_cycles = 525, block_sequences = 16, most_sequences = 62;
/// Sequences per block on tensor cores: rows of the MMA instruction (RNN_blockPersist_fp_LSTM_HMMA). In f32 a block has
/// one sequence and fills an SM: nsys of RNN_blockPersist_fp_GRU on an A100, 16 blocks of 384 threads at batch 16.
inline constexpr double tensor_rows = 16;
/// If the weights do not fit, one SM reads them at every step (bytes per clock), once per `stream_sequences`.
inline constexpr double stream_bytes_per_clock = 37, stream_sequences = 8;

}  // namespace recurrent

/// Plans the steps of one layer and direction; the products with the layer's input are a separate kernel. Beyond the
/// largest measured batch, blocks of sequences are distributed over the SMs in waves.
inline KernelPlan plan(const RecurrentShape& s, const DeviceRates& device) {
    const auto batch = real(s.batch), steps = real(s.steps);
    const double weights = real(s.gates) * real(s.hidden) * real(s.hidden);
    const double bytes = recurrent::value_bytes * weights;
    const bool tensor = device.path == MathPath::fp16_tensor;
    const double shared = std::min(batch, recurrent::most_sequences), of_an_sm = batch / device.sms;
    KernelPlan plan;
    plan.algorithm = "recurrence";
    plan.blocks = std::max(1.0, batch / (tensor ? recurrent::tensor_rows : 1));
    plan.waves = plan.blocks / device.sms;
    plan.floor_s = device.floor_s;
    if (bytes <= recurrent::register_bytes) {
        const double elementwise = 1 + real(s.gates) / 4;
        const double flop_s = device.sms / device.fp32_flops_per_s;
        const double shared_s = std::max(1.0, shared / recurrent::block_sequences) * flop_s;
        const double spread_s = of_an_sm * (tensor ? device.sms / device.flops_per_s : flop_s);
        const double product_s = 2 * weights * (shared_s < spread_s ? spread_s : shared_s);
        plan.compute_s = steps * elementwise *
                         (std::max(1.0, plan.waves) * recurrent::step_cycles / device.boost_clock_hz + product_s);
        const double gates = steps * batch * real(s.gates + 1) * real(s.hidden);
        plan.memory_s = gates * s.element_bytes / device.bandwidth_bytes_per_s;
    } else {
        plan.memory_s = steps * std::max({1.0, shared / recurrent::stream_sequences, of_an_sm}) * bytes /
                        (recurrent::stream_bytes_per_clock * device.boost_clock_hz);
    }
    plan.seconds = plan.floor_s + (plan.compute_s < plan.memory_s ? plan.memory_s : plan.compute_s);
    plan.power_limited_s = power_limited_seconds(plan.seconds, 0.0, device);
    return plan;
}

}  // namespace ftax::kernels
