#pragma once

#include <algorithm>

namespace ftax {

/// Balances the power of a forward pass: the board lowers its clock until the energy of all kernels fits, and what
/// waits for memory leaves power to arithmetic. Waits for the host leave some, too, which is not counted: where the
/// host decides, the latency is its time either way.
struct PassPower {
    double seconds = 0;    ///< of kernels at boost clock, and of the gaps between them
    double energy_s = 0;   ///< see kernels::PoweredTime
    double missing_s = 0;  ///< by how much the energy of kernels exceeds their time, each by itself

    void add(const PassPower& other, double scale = 1) {
        seconds += scale * other.seconds;
        energy_s += scale * other.energy_s;
        missing_s += scale * other.missing_s;
    }

    /// Share of what it is missing by which each kernel is slowed down, from 0 to 1.
    [[nodiscard]] double slowdown() const { return energy_s > seconds ? (energy_s - seconds) / missing_s : 0; }
};

/// Returns by how much the energy of a kernel exceeds its time.
inline double missing_seconds(double seconds, double energy_s) {
    return std::max(0.0, energy_s - seconds);
}

}  // namespace ftax
