#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>

#include "ftax/graph.hpp"
#include "ftax/work.hpp"
#include "graphs/ir/operands.hpp"
#include "tests/calibration/bench/fake_device.hpp"

namespace ftax::bench::test {

/// What is not as the fit assumes.
struct Faults {
    double host_scale = 1;      ///< factor on every host time
    double host_jitter = 0;     ///< standard deviation of the logarithm of each sample of host time
    double dispatch_scale = 1;  ///< factor on asynchronous calls only: another process uses the CPU
    double busy_scale = 1;      ///< factor on host times for a third of the time, ten cases at a time
    /// Cases of device time, in their order, that a hot card runs at 0.6 of its clock.
    int throttled_from = 0, throttled_until = 0;
    bool tells_clock = true;
    std::string missing;  ///< an operator whose dispatch cannot be measured
};

/// A GPU and its host that share no formula with ftax: a roofline with a soft corner, costs by operator of its own, two
/// clocks of its own.
class IndependentGpu : public SampledDevice {
  public:
    explicit IndependentGpu(Faults faults) : faults_(std::move(faults)) {}

    [[nodiscard]] Environment environment() const override { return {{"device", "NVIDIA H100 80GB HBM3"}}; }
    [[nodiscard]] std::string prepare(const BenchCase& c) override {
        if (c.mode == Mode::host_dispatch && !faults_.missing.empty() && c.id.starts_with(faults_.missing))
            return "RuntimeError: CUDA error: invalid argument";
        host_ = c.mode != Mode::device_hot;
        device_cases_ += host_ ? 0 : 1;
        host_cases_ += host_ ? 1 : 0;
        const double scale = faults_.host_scale * (c.mode == Mode::host_dispatch ? faults_.dispatch_scale : 1) *
                             (host_cases_ / 10 % 3 == 0 ? faults_.busy_scale : 1);
        const BoundShapes bound = bind(*c.graph, c.bindings);
        double host_s = 6e-6 * scale, free_s = 0, device_s = 0;
        host_s += c.model.empty() ? 0 : 1.6e-6 * static_cast<double>(c.graph->module_calls.size()) * scale;
        double calls_s = host_s;
        for (const Op& op : c.graph->ops) {
            const double call_s = cost_s(op) * scale;
            calls_s += call_s;
            if (is_view(op)) continue;
            const double kernel_s = time_s(*c.graph, op, bound);
            device_s += kernel_s + gap_s;
            free_s = std::max(calls_s + 4.5e-6, free_s + gap_s) + kernel_s;
        }
        seconds_ = c.mode == Mode::host_dispatch ? calls_s
                   : c.mode == Mode::device_hot  ? device_s
                                                 : std::max(calls_s, free_s) + 7e-6;
        return "";
    }
    [[nodiscard]] Sample sample() override {
        const bool hot = !host_ && device_cases_ > faults_.throttled_from && device_cases_ <= faults_.throttled_until;
        const double clock = hot ? 0.6 : 0.97;
        Sample sample{seconds_ * (host_ ? 1 : 0.97 / clock) *
                      std::exp((host_ ? faults_.host_jitter + 0.01 : 0.01) * normal_(random_))};
        if (faults_.tells_clock) sample.clock_mhz = 1000 * (clock + 0.01);
        return sample;
    }

  private:
    static constexpr double gap_s = 0.9e-6;

    static double cost_s(const Op& op) {
        if (is_view(op)) return 1.9e-6;
        switch (op.kind) {
            case OpKind::conv:
                return op.integer("groups", 1) > 1 ? 14e-6 : 19e-6;
            case OpKind::linear:
                return 15e-6;
            case OpKind::matmul:
                return 17e-6;
            case OpKind::batch_norm:
                return 16e-6;
            case OpKind::layer_norm:
            case OpKind::softmax:
                return 8.5e-6;
            case OpKind::concat:
            case OpKind::pool:
            case OpKind::embedding:
                return 9e-6;
            default:
                return 5.5e-6;
        }
    }

    /// Of a kernel: 1 / t = a soft minimum of the two ceilings, which short kernels do not reach.
    static double time_s(const Graph& graph, const Op& op, const BoundShapes& bound) {
        const Work work = work_of(graph, op, bound);
        const auto flops = static_cast<double>(work.flops);
        const double bytes = static_cast<double>(work.read_bytes + work.write_bytes);
        const double rate = op.kind == OpKind::conv && op.integer("groups", 1) > 1 ? 6e12 : 47e12;
        const double arithmetic_s = (flops + 4e7) / rate - 4e7 / rate * std::exp(-flops / 4e7);
        const double memory_s = bytes / (bytes < 20e6 ? 5.2e12 : 2.75e12);
        return 2.1e-6 + std::pow(std::pow(arithmetic_s, 3) + std::pow(memory_s, 3), 1.0 / 3);
    }

    Faults faults_;
    std::mt19937 random_{23};
    std::normal_distribution<double> normal_;
    bool host_ = false;
    int device_cases_ = 0, host_cases_ = 0;
    double seconds_ = 0;
};

}  // namespace ftax::bench::test
