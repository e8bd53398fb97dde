#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace ftax {

struct TwoSides {
    double host_s = 0, device_s = 0;
};

/// Adjacent values between which the larger of host and device time changes.
struct Crossing {
    std::int64_t below = 0, above = 0;
    double at = 0;                    ///< interpolated zero of log(device / host)
    bool host_decides_above = false;  ///< otherwise below
};

/// Finds every value from `first` (at least 1) to `last` at which the larger of host and device time changes, in
/// ascending order. Samples powers of two, then bisects every step in which two non-decreasing curves may cross, down
/// to a sixteenth of its start; ignores pairs of crossings between which the times differ by less than 2 %.
[[nodiscard]] std::vector<Crossing> find_crossings(std::int64_t first, std::int64_t last,
                                                   const std::function<TwoSides(std::int64_t)>& sides);

}  // namespace ftax
