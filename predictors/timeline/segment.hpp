#pragma once

#include <algorithm>
#include <limits>

namespace ftax {

/// Effect of consecutive launches on the two clocks of the timeline, as a 2 × 2 matrix of the (max, +) algebra:
///     host'   = max(host + host_s,      device + host_from_device_s)
///     device' = max(host + from_host_s, device + from_device_s)
/// Valid while the launch queue is not full. Source: simulate() in timeline.cpp, unrolled.
struct Segment {
    static constexpr double never = -std::numeric_limits<double>::infinity();

    double host_s = 0;
    double host_from_device_s = never;  ///< `never` until the host waits for the device
    double from_host_s = never;  ///< the longest path from the host clock at the start to the device clock at the end
    double from_device_s = 0;    ///< the same from the device clock

    /// Builds the segment of one launch, whose kernels start `overlapped_s` before its host work ends.
    static Segment launch(double host_s, double device_s, int kernels, double launch_latency_s, double gap_s,
                          double overlapped_s = 0) {
        Segment segment{host_s, never, never, 0};
        if (kernels > 0) {
            const double busy_s = device_s + (kernels - 1) * gap_s;
            segment.from_host_s = host_s + launch_latency_s + std::max(busy_s - overlapped_s, 0.0);
            segment.from_device_s = gap_s + busy_s;
        }
        return segment;
    }

    /// Builds a synchronisation: the host waits for the device and pays for the call.
    static Segment wait(double host_s) { return {host_s, host_s, 0, 0}; }

    /// Interpolates between two segments whose launches differ only in duration; exact if the longest path is the same.
    static Segment between(const Segment& shorter, const Segment& longer, double share) {
        const auto mix = [share](double a, double b) { return a == never ? never : a + share * (b - a); };
        return {mix(shorter.host_s, longer.host_s), mix(shorter.host_from_device_s, longer.host_from_device_s),
                mix(shorter.from_host_s, longer.from_host_s), mix(shorter.from_device_s, longer.from_device_s)};
    }

    /// Composes this segment with the following one.
    [[nodiscard]] Segment then(const Segment& next) const {
        return {std::max(host_s + next.host_s, from_host_s + next.host_from_device_s),
                std::max(host_from_device_s + next.host_s, from_device_s + next.host_from_device_s),
                std::max(host_s + next.from_host_s, from_host_s + next.from_device_s),
                std::max(host_from_device_s + next.from_host_s, from_device_s + next.from_device_s)};
    }

    /// Returns the period of back-to-back runs in seconds: the eigenvalue of the matrix, i.e. the largest cycle mean of
    /// the two clocks. Without synchronisation inside, the slower clock determines it. Source: Baccelli, Cohen, Olsder
    /// and Quadrat, "Synchronization and Linearity", 1992, theorem 3.23.
    [[nodiscard]] double period_s() const {
        return std::max({host_s, from_device_s, (host_from_device_s + from_host_s) / 2});
    }

    /// Returns the latency of a run that starts with an idle device and ends with a synchronisation.
    [[nodiscard]] double latency_s() const { return std::max(host_s, from_host_s); }
};

}  // namespace ftax
