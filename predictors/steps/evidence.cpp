#include "predictors/steps/evidence.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

namespace ftax {

std::string_view name_of(Evidence evidence) noexcept {
    constexpr std::string_view names[] = {"unrated", "measured", "near", "far", "guess"};
    return names[static_cast<std::size_t>(evidence)];
}

Distance distance_from(std::span<const MeasuredSet> sets, const MeasuredSet& run,
                       const std::array<double, factor_count>& class_s) {
    constexpr EvidenceSpread spread;
    const double device_s = std::accumulate(class_s.begin(), class_s.end(), 0.0);
    Distance nearest{.log_stddev = spread.framework};
    for (const MeasuredSet& set : sets) {
        Distance d{&set, set.version != run.version, set.precision != run.precision,
                   set.architecture != run.architecture};
        for (std::size_t f = 0; f < factor_count; ++f) {
            d.kernels[f] = class_s[f] > 0 && !set.kernels[f];
            if (d.kernels[f]) d.kernels_share += class_s[f] / device_s;
        }
        d.log_stddev = std::hypot(std::hypot(d.version * spread.version, d.precision * spread.precision),
                                  d.architecture * spread.architecture, d.kernels_share * spread.kernels);
        if (nearest.set == nullptr || d.log_stddev < nearest.log_stddev) nearest = d;
    }
    return nearest;
}

Evidence grade(const Distance& distance, bool same_card) {
    constexpr double minor_share = 0.1;
    if (distance.set == nullptr) return Evidence::guess;
    if (distance.precision || distance.kernels_share > minor_share) return Evidence::far;
    return distance.version || distance.architecture || !same_card ? Evidence::near : Evidence::measured;
}

std::string describe(const Distance& distance, const MeasuredSet& run, std::string_view framework) {
    if (distance.set == nullptr) return fmt::format("no measured rows of {}", framework);
    std::string lacking;
    const auto lack = [&](std::string_view what) {
        lacking += fmt::format("{} {}", lacking.empty() ? ", without" : ",", what);
    };
    for (std::size_t f = 0; f < factor_count; ++f)
        if (distance.kernels[f]) lack(description_of(static_cast<Factor>(f)));
    if (distance.version) lack(fmt::format("version {}.{}", run.version / 100, run.version % 100));
    if (distance.precision) lack(name_of(run.precision));
    if (distance.architecture) lack(fmt::format("{} cards", name_of(run.architecture)));
    return fmt::format("rows of {} in {}{}", framework, distance.set->rows, lacking);
}

}  // namespace ftax
