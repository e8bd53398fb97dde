#include "predictors/steps/evidence.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <tuple>

namespace ftax {

std::string_view name_of(Evidence evidence) noexcept {
    constexpr std::string_view names[] = {"unrated", "measured", "near", "far", "guess"};
    return names[static_cast<std::size_t>(evidence)];
}

double Distance::log_stddev(const EvidenceSpread& spread) const {
    return set == nullptr ? spread.framework : std::hypot(card * spread.card, kernels_share * spread.kernels);
}

Distance distance_from(std::span<const MeasuredSet> sets, const MeasuredSet& run,
                       const std::array<double, factor_count>& class_s) {
    constexpr double least_named_share = 0.05;  // as in the sets
    const double device_s = std::accumulate(class_s.begin(), class_s.end(), 0.0);
    std::array<double, factor_count> share{};
    for (std::size_t f = 0; f < factor_count; ++f) share[f] = class_s[f] > 0 ? class_s[f] / device_s : 0;
    Distance nearest;
    std::tuple<double, int, double> least;
    for (const MeasuredSet& set : sets) {
        Distance d{&set, set.version != run.version, set.precision != run.precision, set.card != run.card,
                   set.architecture != run.architecture};
        for (std::size_t f = 0; f < factor_count; ++f) d.kernels_share += set.kernels[f] ? 0 : share[f];
        if (nearest.set != nullptr && d.card >= nearest.card && d.kernels_share > nearest.kernels_share) continue;
        const std::tuple order(d.log_stddev(), d.version + d.precision + d.architecture, d.kernels_share);
        if (nearest.set != nullptr && order >= least) continue;
        nearest = d, least = order;
    }
    for (std::size_t f = 0; nearest.set != nullptr && f < factor_count; ++f)
        nearest.kernels[f] = !nearest.set->kernels[f] && share[f] > 0 && class_s[f] >= least_named_share * device_s;
    return nearest;
}

Evidence grade(const Distance& distance, double host_log_stddev) {
    constexpr double minor_share = 0.1, known_host = 0.2;
    if (distance.set == nullptr) return Evidence::guess;
    if (distance.kernels_share > minor_share) return Evidence::far;
    const bool same = !distance.version && !distance.precision && !distance.card;
    return same && host_log_stddev < known_host ? Evidence::measured : Evidence::near;
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
    if (distance.card) lack(distance.architecture ? fmt::format("{} cards", name_of(run.architecture)) : run.card);
    return fmt::format("rows of {} in {}{}", framework, distance.set->rows, lacking);
}

}  // namespace ftax
