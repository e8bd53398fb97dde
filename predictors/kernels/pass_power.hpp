#pragma once

#include <algorithm>

namespace ftax {

/// Power balance of a forward pass: the board lowers its clock until the energy of all kernels fits; memory-bound
/// kernels leave power for arithmetic. Idle time while waiting for the host is not counted: in host-bound runs the
/// latency is the host time anyway.
struct PassPower {
    double seconds = 0;          ///< kernels at boost clock, and the gaps between them
    double power_limited_s = 0;  ///< see kernels::KernelTime
    double throttling_s = 0;     ///< sum of throttling_seconds() over the kernels

    void add(const PassPower& other, double scale = 1) {
        seconds += scale * other.seconds;
        power_limited_s += scale * other.power_limited_s;
        throttling_s += scale * other.throttling_s;
    }

    /// Returns the share of its own throttling time by which each kernel is slowed, from 0 to 1.
    [[nodiscard]] double slowdown() const {
        return power_limited_s > seconds ? (power_limited_s - seconds) / throttling_s : 0;
    }
};

inline double throttling_seconds(double seconds, double power_limited_s) {
    return std::max(0.0, power_limited_s - seconds);
}

}  // namespace ftax
