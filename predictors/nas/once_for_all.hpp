#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ftax/nas.hpp"

/// What the spaces of once-for-all have in common: architectures written as {"d":[2,3],"r":224}, and rounded widths.
namespace ftax::nas::once_for_all {

inline constexpr int smallest_side = 32;
inline constexpr int largest_side = 1024;

/// Choices that the text lists under one key, and how it writes their options.
struct List {
    std::string_view key;
    std::size_t count;
    std::array<std::string_view, 3> options;
};

/// A space with such lists, whose last choice is the side of the image (minus the smallest).
class ListSpace : public Space {
  public:
    ListSpace(std::string_view name, std::array<List, 3> lists) : name_(name), lists_(lists) {}

    std::string_view name() const override { return name_; }
    std::vector<int> options() const override;
    std::vector<int> usual_options(std::size_t site) const override;
    /// {"KEY":[options],…,"r":side}
    void parse(std::string_view text, std::vector<int>& choices) const override;
    std::vector<TensorId> inputs(GraphBuilder& net, std::span<const int> choices) const override;

  protected:
    static int side_of(std::span<const int> choices) { return choices.back() + smallest_side; }

  private:
    void read(const List& list, std::string_view text, std::vector<int>& choices) const;

    std::string_view name_;
    std::array<List, 3> lists_;
};

/// Rounds channels to a multiple of 8 without losing more than 10 %. Source: MobileNet reference code.
[[nodiscard]] std::int64_t round_channels(double channels);

/// Side of an image after a window of stride 2 that pads half its width.
[[nodiscard]] constexpr std::int16_t halve(std::int16_t side) {
    return static_cast<std::int16_t>((side + 1) / 2);
}

}  // namespace ftax::nas::once_for_all
