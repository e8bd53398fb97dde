#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

/// What the spaces of once-for-all have in common: architectures written as {"d":[2,3],"r":224}, and rounded widths.
namespace ftax::nas::once_for_all {

inline constexpr int smallest_side = 32;
inline constexpr int largest_side = 1024;

/// Appends the options that "key" lists, each as its place among `allowed`.
/// Throws Error{usage} naming the space, the key and what was expected.
void read_options(std::string_view space, std::string_view text, std::string_view key, std::size_t count,
                  std::span<const std::string_view> allowed, std::vector<int>& choices);

/// Reads "r", the side of the image in pixels, and appends it less the smallest. Throws Error{usage}.
void read_side(std::string_view space, std::string_view text, std::vector<int>& choices);

/// Returns the choices of the image sides that once-for-all searches. Source: Cai et al., ICLR 2020, arXiv 1908.09791,
/// section 4.1: 128 to 224 pixels with a stride of 4.
[[nodiscard]] std::vector<int> searched_sides();

/// Rounds channels to a multiple of 8 without losing more than 10 %. Source: MobileNet reference code.
[[nodiscard]] std::int64_t round_channels(double channels);

/// Side of an image after a window of stride 2 that pads half its width.
[[nodiscard]] constexpr std::int16_t halve(std::int16_t side) {
    return static_cast<std::int16_t>((side + 1) / 2);
}

}  // namespace ftax::nas::once_for_all
