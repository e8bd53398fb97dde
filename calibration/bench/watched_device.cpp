#include "calibration/bench/watched_device.hpp"

#include <algorithm>

#include "calibration/bench/nvml.hpp"

namespace ftax::bench {

GpuMonitor nvml_monitor() {
    const auto nvml = std::make_shared<Nvml>();
    return {.name = nvml->name(),
            .driver = nvml->driver(),
            .mig = nvml->mig(),
            .clock_ratio = [nvml]() -> std::optional<double> {
                const auto now = nvml->clock_hz();
                const auto largest = nvml->largest_clock_hz();
                if (!now || !largest || *largest <= 0) return std::nullopt;
                return *now / *largest;
            },
            .slowdown = [nvml] { return nvml->slowdown(); },
            .other_processes = [nvml] { return nvml->other_processes(); }};
}

Environment WatchedDevice::environment() const {
    Environment environment = device_->environment();
    const bool is_named =
        std::any_of(environment.begin(), environment.end(), [](const auto& e) { return e.first == "device"; });
    if (!is_named && !monitor_.name.empty()) environment.emplace_back("device", monitor_.name);  // LibTorch names none
    if (!monitor_.driver.empty()) environment.emplace_back("driver", monitor_.driver);
    if (monitor_.mig) environment.emplace_back("mig", *monitor_.mig ? "on" : "off");
    return environment;
}

std::vector<std::string> WatchedDevice::warnings() const {
    std::vector<std::string> warnings = device_->warnings();
    if (monitor_.mig.value_or(false)) {
        warnings.push_back(
            "MIG is on: this is a slice of the GPU, which its datasheet does not describe (nvidia-smi -mig 0 ends it)");
    }
    if (!monitor_.clock_ratio())
        warnings.push_back("NVML does not report the SM clock: throttled samples cannot be detected");
    if (monitor_.other_processes().value_or(0) > 1) warnings.push_back("another process uses this GPU");
    return warnings;
}

std::optional<Failure> WatchedDevice::prepare(const BenchCase& bench_case) {
    auto failure = device_->prepare(bench_case);
    if (!usual_processes_) usual_processes_ = monitor_.other_processes();
    return failure;
}

std::variant<Sample, Failure> WatchedDevice::sample() {
    auto outcome = device_->sample();
    if (auto* sample = std::get_if<Sample>(&outcome)) {
        sample->clock_ratio = monitor_.clock_ratio();
        sample->slowdown = monitor_.slowdown();
        sample->disturbed = monitor_.other_processes().value_or(0) > usual_processes_.value_or(0);
    }
    return outcome;
}

bool WatchedDevice::restart() {
    usual_processes_.reset();
    return device_->restart();
}

}  // namespace ftax::bench
