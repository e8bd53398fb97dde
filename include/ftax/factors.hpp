#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ftax {

/// Systematic error of the kernel models on one card: a factor on the device time of each kernel class. Tensor-core and
/// CUDA-core classes are separate, since a card may be fast at one and slow at the other.
enum class Factor : std::uint8_t {
    card,  ///< all kernels: sustained clock, errors of the datasheet
    gemm,
    gemm_tensor,
    conv_spatial,  ///< dense convolutions with windows, for which cuDNN has Winograd kernels
    conv_spatial_tensor,
    conv_pointwise,  ///< dense 1 × 1 convolutions
    conv_pointwise_tensor,
    conv_depthwise,       ///< windows up to 3 × 3
    conv_depthwise_wide,  ///< larger windows: 5 × 5 takes 1.8 times 3 × 3 under PyTorch 1.8 (nas_fbnet.csv), 2.5
                          ///< under 1.12
    conv_grouped,
    attention,
    pool,           ///< index arithmetic over windows
    normalization,  ///< layer, batch and group norm, softmax
    elementwise,    ///< all other memory-bound kernels
};
inline constexpr std::size_t factor_count = static_cast<std::size_t>(Factor::elementwise) + 1;

/// A set of kernel classes.
using FactorSet = std::array<bool, factor_count>;

[[nodiscard]] std::string_view name_of(Factor factor) noexcept;
[[nodiscard]] std::optional<Factor> factor_from_name(std::string_view name) noexcept;
/// Human-readable name: "matrix products on tensor cores".
[[nodiscard]] std::string_view description_of(Factor factor) noexcept;

/// Belief about the factors of one card: a joint normal distribution of their logarithms.
struct DeviceFactors {
    std::array<double, factor_count> log_mean{};
    std::array<std::array<double, factor_count>, factor_count> covariance{};

    /// Returns the multiplier of a kernel class's times: its own factor times the card's.
    [[nodiscard]] double scale(Factor factor) const {
        const double log_scale = log_mean[static_cast<std::size_t>(factor)] + log_mean[0];
        return log_scale == 0 ? 1 : std::exp(log_scale);
    }
    /// Returns the standard deviation of log(Σ times) if each class takes `seconds`, to first order; 0 for no time.
    [[nodiscard]] double log_stddev(const std::array<double, factor_count>& seconds) const;
};

}  // namespace ftax
