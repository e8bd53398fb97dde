#include "ftax/factors.hpp"

#include <algorithm>
#include <numeric>

namespace ftax {
namespace {

constexpr std::array<std::string_view, factor_count> names{"card",
                                                           "gemm",
                                                           "gemm_tensor",
                                                           "conv_spatial",
                                                           "conv_spatial_tensor",
                                                           "conv_pointwise",
                                                           "conv_pointwise_tensor",
                                                           "conv_depthwise",
                                                           "conv_depthwise_wide",
                                                           "conv_grouped",
                                                           "attention",
                                                           "pool",
                                                           "normalization",
                                                           "elementwise"};

constexpr std::array<std::string_view, factor_count> descriptions{"the card as a whole",
                                                                  "matrix products on CUDA cores",
                                                                  "matrix products on tensor cores",
                                                                  "convolutions on CUDA cores",
                                                                  "convolutions on tensor cores",
                                                                  "1 × 1 convolutions on CUDA cores",
                                                                  "1 × 1 convolutions on tensor cores",
                                                                  "depthwise convolutions",
                                                                  "wide depthwise convolutions",
                                                                  "grouped convolutions",
                                                                  "attention",
                                                                  "pooling",
                                                                  "normalisation",
                                                                  "elementwise kernels"};

}  // namespace

std::string_view name_of(Factor factor) noexcept {
    return names[static_cast<std::size_t>(factor)];
}

std::optional<Factor> factor_from_name(std::string_view name) noexcept {
    const auto* const found = std::ranges::find(names, name);
    if (found == names.end()) return std::nullopt;
    return static_cast<Factor>(found - names.begin());
}

std::string_view description_of(Factor factor) noexcept {
    return descriptions[static_cast<std::size_t>(factor)];
}

double DeviceFactors::log_stddev(const std::array<double, factor_count>& seconds) const {
    const double total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
    if (!(total > 0)) return 0;
    std::array<double, factor_count> slope{};
    for (std::size_t i = 1; i < factor_count; ++i) slope[i] = seconds[i] / total;
    slope[0] = 1;
    double variance = 0;
    for (std::size_t i = 0; i < factor_count; ++i) {
        for (std::size_t j = 0; j < factor_count; ++j) variance += slope[i] * slope[j] * covariance[i][j];
    }
    return std::sqrt(std::max(variance, 0.0));
}

}  // namespace ftax
