#pragma once

#include <utility>
#include <vector>

namespace ftax::bench {

/// Seconds between two kernels of a stream or of a graph, from kernels that spin for a known number of cycles one after
/// another: (cycles, seconds from one begin to the next) of several durations. The line through them has the clock as
/// its slope, which need not be known, and the gap at nothing. One instrument, the device's events: a profiler's own
/// durations are of another one. Least squares.
[[nodiscard]] inline double spin_gap_s(const std::vector<std::pair<double, double>>& periods) {
    double x = 0, y = 0, xx = 0, xy = 0;
    const auto n = static_cast<double>(periods.size());
    for (const auto& [cycles, seconds] : periods) {
        x += cycles / n, y += seconds / n;
        xx += cycles * cycles / n, xy += cycles * seconds / n;
    }
    return y - (xy - x * y) / (xx - x * x) * x;
}

}  // namespace ftax::bench
