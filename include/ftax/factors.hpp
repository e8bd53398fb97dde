#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ftax {

/// What the kernel models may get wrong as a whole on one card: a factor on the device time of a class of kernels.
/// Those of the tensor cores stand apart from those of the CUDA cores: a card may be fast at one and slow at the other.
enum class Factor : std::uint8_t {
    card,  ///< all kernels alike: the sustained clock, the datasheet itself
    gemm,
    gemm_tensor,
    conv_spatial,  ///< dense convolutions with windows, where cuDNN has Winograd kernels
    conv_spatial_tensor,
    conv_pointwise,  ///< dense 1 × 1 convolutions
    conv_pointwise_tensor,
    conv_depthwise,       ///< windows up to 3 × 3
    conv_depthwise_wide,  ///< wider: 1.8 times 3 × 3 for 5 × 5 under PyTorch 1.8 (nas_fbnet.csv), 2.5 under 1.12
    conv_grouped,
    attention,
    pool,           ///< index arithmetic over windows
    normalization,  ///< layer, batch and group norm, softmax
    elementwise,    ///< everything else that is traffic
};
inline constexpr std::size_t factor_count = static_cast<std::size_t>(Factor::elementwise) + 1;

/// A set of classes of kernels.
using FactorSet = std::array<bool, factor_count>;

[[nodiscard]] std::string_view name_of(Factor factor) noexcept;
[[nodiscard]] std::optional<Factor> factor_from_name(std::string_view name) noexcept;
/// For people: "matrix products on tensor cores".
[[nodiscard]] std::string_view description_of(Factor factor) noexcept;

/// What is believed of the factors of one card: a normal distribution of their logarithms.
struct DeviceFactors {
    std::array<double, factor_count> log_mean{};
    std::array<std::array<double, factor_count>, factor_count> covariance{};

    /// By how much the times of a class of kernels are multiplied: its own factor and the card's.
    [[nodiscard]] double scale(Factor factor) const {
        const double log_scale = log_mean[static_cast<std::size_t>(factor)] + log_mean[0];
        return log_scale == 0 ? 1 : std::exp(log_scale);
    }
    /// Standard deviation of log(Σ times) where each class takes `seconds`; 0 for none. First order in the factors.
    [[nodiscard]] double log_stddev(const std::array<double, factor_count>& seconds) const;
};

}  // namespace ftax
