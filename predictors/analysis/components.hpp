#pragma once

#include <array>
#include <string_view>

#include "ftax/factors.hpp"
#include "predictors/host/host_costs.hpp"

namespace ftax {

/// One of the independent things that an interval allows for.
struct Component {
    std::string_view name;  ///< for people; static
    double log_stddev = 0;  ///< what it adds to the logarithm of the latency
};

/// Finds the widest component of a latency which the host decides to `host_share` (0 to 1), spends `call_share` of its
/// host time in calls (the second scalar) and `class_s` of its device time by class of kernels.
[[nodiscard]] Component widest_component(const HostCosts& costs, double host_share, double call_share,
                                         const DeviceFactors& factors, const std::array<double, factor_count>& class_s,
                                         double extrapolation_stddev);

}  // namespace ftax
