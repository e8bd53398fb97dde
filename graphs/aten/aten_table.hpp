#pragma once

#include <string_view>

#include "graphs/aten/aten_attributes.hpp"

namespace ftax {

/// Maps ATen operators, in-place variants included, to a canonical one.
struct AtenRow {
    std::string_view name;  ///< without the `_` of the in-place variant; several in the table, separated by spaces
    OpKind kind;
    std::string_view function = {};  ///< attribute "function"; own_name stands for the operator's own
    aten_attributes::Reader attributes = aten_attributes::no_attributes;
    std::string_view operands = {};  ///< argument names in canonical order; empty: all tensors as they come

    static constexpr std::string_view own_name = "=";
};

/// The row of an operator, given as "aten::conv2d" or "aten::relu_"; nullptr where there is none.
[[nodiscard]] const AtenRow* find_aten_row(std::string_view target);

/// Whether an operator is of a library that the tables are about: of any other, a name that they have ("my::add")
/// may stand for something else.
[[nodiscard]] bool is_of_known_library(std::string_view target) noexcept;

}  // namespace ftax
