#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibration/bench/bench_device.hpp"

namespace ftax::bench {

/// What can be asked of a GPU while something runs on it; nullopt where the driver does not say.
struct GpuMonitor {
    std::string name, driver;
    std::optional<bool> mig;
    std::function<std::optional<double>()> clock_ratio;   ///< clock over the largest one, now
    std::function<std::string()> slowdown;                ///< as Nvml::slowdown() says
    std::function<std::optional<int>()> other_processes;  ///< number of other compute processes
};
/// Asks NVML about the first GPU; nothing is known where its library is not.
[[nodiscard]] GpuMonitor nvml_monitor();

/// Runs cases on another device and marks each sample with the clock it ran at, what held that down, and whether
/// somebody else came to the GPU.
class WatchedDevice : public BenchDevice {
  public:
    WatchedDevice(std::unique_ptr<BenchDevice> device, GpuMonitor monitor)
        : device_(std::move(device)), monitor_(std::move(monitor)) {}

    [[nodiscard]] Environment environment() const override;
    /// MIG, processes that were there before (those of this measurement among them), clocks that cannot be read.
    [[nodiscard]] std::vector<std::string> warnings() const override;
    [[nodiscard]] std::optional<Failure> prepare(const BenchCase& bench_case) override;
    [[nodiscard]] std::string source() const override { return device_->source(); }
    [[nodiscard]] std::variant<Sample, Failure> sample() override;
    bool restart() override;

  private:
    std::unique_ptr<BenchDevice> device_;
    GpuMonitor monitor_;
    std::optional<int> usual_processes_;  ///< a worker of ours is among them: only more than these disturb
};

}  // namespace ftax::bench
