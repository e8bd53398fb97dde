#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/expression.hpp"
#include "ftax/import.hpp"

namespace ftax::scenario {

/// Parses "if_3=then" or "if_3=else": true for then. Throws Error{usage}.
[[nodiscard]] std::pair<std::string, bool> parse_branch(std::string_view text);

/// Parses a list of batch sizes: numbers, FIRST:LAST:xFACTOR and FIRST:LAST:+STEP, separated by commas
/// ("1,2,4:128:x2,200:400:+50"). Throws Error{usage} for what is no list or below 1, Error{limit} beyond int64 or
/// 10,000 values.
[[nodiscard]] std::vector<std::int64_t> parse_batches(std::string_view text, std::string_view option = "--batch");

/// Parses a list of whole numbers from 1 on: "1,2,4". Throws Error{usage} naming the option, Error{limit} beyond int64.
[[nodiscard]] std::vector<std::int64_t> parse_counts(std::string_view text, std::string_view option);

/// Parses texts like "seq=128".
/// Throws Error{usage} for another form, a value below 1 or a second value of one symbol, Error{limit} beyond int64.
[[nodiscard]] ShapeBindings parse_dimensions(const std::vector<std::string>& texts);

/// Parses "in:4x3x224x224"; dimensions may be symbols or sums, products and quotients of them ("batchx3x224x224"), the
/// input's name may hold colons. Throws Error{usage}.
[[nodiscard]] InputShape parse_input_shape(std::string_view text);

/// Parses "float:4x3x224x224", an input told by its place; types as torch or ftax call them. Throws Error{usage}.
[[nodiscard]] InputShape parse_input_type(std::string_view text);

/// Splits at commas; empty parts are kept.
[[nodiscard]] std::vector<std::string> split_list(std::string_view text);

}  // namespace ftax::scenario
