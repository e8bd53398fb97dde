#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ftax {

[[nodiscard]] std::string lower_case(std::string_view name);

/// Returns true if a list of names, separated by spaces, has this one.
[[nodiscard]] bool has_word(std::string_view names, std::string_view name);

/// Reduces a name to lower-case letters and digits: "NVIDIA_A100-PCIE-40GB" → "nvidiaa100pcie40gb".
[[nodiscard]] std::string normalized_name(std::string_view name);

/// Finds at most `count` candidates for a misspelt name, nearest first: those that contain it or that it contains,
/// and those within a third of its length in edit distance. Ignores case and punctuation.
[[nodiscard]] std::vector<std::string> near_names(std::string_view name, std::span<const std::string> candidates,
                                                  std::size_t count = 3);

}  // namespace ftax
