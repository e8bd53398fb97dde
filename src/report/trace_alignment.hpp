#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/graph.hpp"

namespace ftax::report {

/// How well a trace's operator ("aten::relu_") fits an operator of the model: 2 by name, 1 by what it does, 0 not at
/// all.
[[nodiscard]] int resemblance(const Op& op, std::string_view traced);

/// For each traced operator the index of the model's operator that it is, or nullopt. The trace repeats the model's
/// sequence any number of times, from any point on; operators may be missing or extra on both sides. Finds the
/// alignment with the most matches (dynamic programming that wraps around); traced operators beyond what is reasonable
/// to align (64 M cells) are left out.
[[nodiscard]] std::vector<std::optional<std::size_t>> align_cyclically(const std::vector<const Op*>& model,
                                                                       const std::vector<std::string_view>& traced);

}  // namespace ftax::report
