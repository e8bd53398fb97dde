#pragma once

#include <algorithm>

namespace ftax {

/// Balances the power of a forward pass: the board lowers its clock until the energy of all kernels fits, and what
/// waits for memory leaves power to arithmetic. Waits for the host also leave some, which is not counted: where the
/// host decides, the latency is its time either way.
struct PassPower {
    double seconds = 0;          ///< of kernels at boost clock, and of the gaps between them
    double power_limited_s = 0;  ///< see kernels::KernelTime
    double throttling_s = 0;     ///< by how much the energy of kernels exceeds their time, each by itself

    void add(const PassPower& other, double scale = 1) {
        seconds += scale * other.seconds;
        power_limited_s += scale * other.power_limited_s;
        throttling_s += scale * other.throttling_s;
    }

    /// Share of what it is missing by which each kernel is slowed down, from 0 to 1.
    [[nodiscard]] double slowdown() const {
        return power_limited_s > seconds ? (power_limited_s - seconds) / throttling_s : 0;
    }
};

/// Returns by how much the energy of a kernel exceeds its time.
inline double throttling_seconds(double seconds, double power_limited_s) {
    return std::max(0.0, power_limited_s - seconds);
}

}  // namespace ftax
