#include "ftax/factors.hpp"

#include <algorithm>
#include <numeric>

namespace ftax {
namespace {

struct FactorRow {
    std::string_view name, description;
};
constexpr std::array factor_rows{
    FactorRow{"card", "the card as a whole"},
    FactorRow{"gemm", "matrix products on CUDA cores"},
    FactorRow{"gemm_tensor", "matrix products on tensor cores"},
    FactorRow{"conv_spatial", "convolutions on CUDA cores"},
    FactorRow{"conv_spatial_tensor", "convolutions on tensor cores"},
    FactorRow{"conv_pointwise", "1 × 1 convolutions on CUDA cores"},
    FactorRow{"conv_pointwise_tensor", "1 × 1 convolutions on tensor cores"},
    FactorRow{"conv_depthwise", "depthwise convolutions"},
    FactorRow{"conv_depthwise_wide", "wide depthwise convolutions"},
    FactorRow{"conv_grouped", "grouped convolutions"},
    FactorRow{"attention", "attention"},
    FactorRow{"pool", "pooling"},
    FactorRow{"normalization", "normalisation"},
    FactorRow{"elementwise", "elementwise kernels"},
};
static_assert(factor_rows.size() == factor_count);

}  // namespace

std::string_view name_of(Factor factor) noexcept {
    return factor_rows[static_cast<std::size_t>(factor)].name;
}

std::optional<Factor> factor_from_name(std::string_view name) noexcept {
    const auto* const found = std::ranges::find(factor_rows, name, &FactorRow::name);
    if (found == factor_rows.end()) return std::nullopt;
    return static_cast<Factor>(found - factor_rows.begin());
}

std::string_view description_of(Factor factor) noexcept {
    return factor_rows[static_cast<std::size_t>(factor)].description;
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
