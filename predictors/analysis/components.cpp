#include "predictors/analysis/components.hpp"

#include <cmath>
#include <numeric>

namespace ftax {

Component widest_component(const HostCosts& costs, double host_share, double call_share, const DeviceFactors& factors,
                           const std::array<double, factor_count>& class_s, double extrapolation_stddev) {
    Component widest;
    const auto add = [&](std::string_view name, double log_stddev) {
        if (log_stddev > widest.log_stddev) widest = {name, log_stddev};
    };
    const double device_share = 1 - host_share;
    add("the speed of the host's CPU", host_share * (1 - call_share) * costs.scale_relative_stddev);
    add("the host's calls of its library", host_share * call_share * costs.call_relative_stddev);
    add("the model's host time", host_share * costs.model_relative_stddev);
    add("the model's device time", device_share * costs.device_relative_stddev);
    add("runs longer than any measured", device_share * extrapolation_stddev);
    add("the card as a whole", device_share * std::sqrt(factors.covariance[0][0]));
    const double device_s = std::accumulate(class_s.begin(), class_s.end(), 0.0);
    for (std::size_t f = 1; f < factor_count; ++f) {
        if (class_s[f] == 0) continue;
        add(description_of(static_cast<Factor>(f)),
            device_share * class_s[f] / device_s * std::sqrt(factors.covariance[f][f]));
    }
    return widest;
}

}  // namespace ftax
