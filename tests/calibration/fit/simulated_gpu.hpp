#pragma once

#include <cmath>
#include <random>
#include <utility>

#include "ftax/predict.hpp"
#include "predictors/host/host_costs.hpp"
#include "tests/calibration/bench/fake_device.hpp"

namespace ftax::bench::test {

/// A GPU and its host, simulated from hidden profiles with noise on every sample.
class SimulatedGpu : public SampledDevice {
  public:
    SimulatedGpu(DeviceProfile device, FrameworkProfile framework, double noise)
        : device_(std::move(device)),
          framework_(std::move(framework)),
          noise_(0, noise),
          gap_s_(host_costs(framework_, Precision::fp32).kernel_gap_s) {}

    [[nodiscard]] Environment environment() const override { return {{"device", device_.device.name}}; }
    [[nodiscard]] std::string prepare(const BenchCase& bench_case) override {
        Predictor predictor(*bench_case.graph, device_, framework_, {.libraries = {.cudnn = 9}, .synchronized = true});
        const Prediction p = predictor.predict(bench_case.bindings);
        seconds_ = bench_case.mode == Mode::host_dispatch ? p.host_s
                   : bench_case.mode == Mode::end_to_end  ? p.latency_s
                                                          : p.device_s + p.kernels * gap_s_;
        return "";
    }
    [[nodiscard]] Sample sample() override { return {seconds_ * std::exp(noise_(random_)), 950}; }

  private:
    DeviceProfile device_;
    FrameworkProfile framework_;
    std::mt19937 random_{11};
    std::normal_distribution<double> noise_;
    double gap_s_;  ///< calls back to back have one after each kernel
    double seconds_ = 0;
};

}  // namespace ftax::bench::test
