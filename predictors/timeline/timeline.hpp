#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ftax/predict.hpp"

namespace ftax {

struct TimedLaunch {
    double host_s = 0;
    double device_s = 0;        ///< sum of its kernels
    std::int32_t kernels = 0;   ///< 0: host work only
    bool synchronizes = false;  ///< the host waits for the device
    /// Part of host_s that overlaps its first kernels, for calls that launch kernels at every step of a sequence.
    double overlapped_host_s = 0;
};

struct TimelineOptions {
    double launch_latency_s = 0;
    double kernel_gap_s = 0;
    /// Launches the driver accepts before the host blocks. Source: CUDA's launch queue, 1,024 entries.
    std::int32_t queue_depth = 1024;
    bool blocking = false;  ///< the device is the host itself (CPU): every operation is synchronous
};

/// Simulates a forward pass on two clocks, host and device, from its first operation to a final synchronisation.
/// Returns the latency in seconds and fills `spans` (one per launch). Never less than max(Σ host, Σ device).
double simulate(std::span<const TimedLaunch> launches, const TimelineOptions& options, std::vector<Span>& spans);

/// Returns the period of back-to-back forward passes in seconds. The host runs ahead of the device, so the slower of
/// the two determines the period, unless a pass itself waits for the device.
double period(std::span<const TimedLaunch> launches, const TimelineOptions& options);

}  // namespace ftax
