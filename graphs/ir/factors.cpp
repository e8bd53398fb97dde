#include "ftax/factors.hpp"

#include <algorithm>
#include <numeric>

#include "graphs/base/data_rows.hpp"

namespace ftax {
namespace {

const std::vector<std::string_view>& factor_names() {
    static const std::vector<std::string_view> names = data_column("data/factors.tsv", 0);
    return names;
}

}  // namespace

std::string_view name_of(Factor factor) noexcept {
    return factor_names()[static_cast<std::size_t>(factor)];
}

std::optional<Factor> factor_from_name(std::string_view name) noexcept {
    return enumerator_named<Factor>(factor_names(), name);
}

std::string_view description_of(Factor factor) noexcept {
    static const std::vector<std::string_view> descriptions = data_column("data/factors.tsv", 1);
    return descriptions[static_cast<std::size_t>(factor)];
}

double DeviceFactors::log_stddev(const std::array<double, factor_count>& seconds) const {
    const double total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
    if (!(total > 0)) return 0;
    std::array<double, factor_count> slope{};
    for (std::size_t i = 1; i < factor_count; ++i) slope[i] = seconds[i] / total;
    slope[0] = 1;
    double variance = 0;
    for (std::size_t i = 0; i < factor_count; ++i)
        for (std::size_t j = 0; j < factor_count; ++j) variance += slope[i] * slope[j] * covariance[i][j];
    return std::sqrt(std::max(variance, 0.0));
}

}  // namespace ftax
