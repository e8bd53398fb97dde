#pragma once

#include <string_view>

#include "graphs/aten/aten_attributes.hpp"
#include "graphs/aten/aten_shape_rules.hpp"

namespace ftax {

/// Maps ATen operators, in-place variants included, to a canonical one, or to several.
struct AtenRow {
    std::string_view name;              ///< without the in-place suffix `_`; a table row may list several
    OpKind kind;                        ///< custom: none; also used for forms that append() does not support
    aten_shapes::Rule shape = nullptr;  ///< shape of its result
    aten_attributes::Reader attributes = aten_attributes::no_attributes;
    std::string_view operands{};  ///< argument names in canonical order; empty: all tensors as they come
    bool (*append)(Graph& graph, const AtenCall& call) = nullptr;  ///< for operators that map to several canonical ones
    std::string_view function{};  ///< attribute "function"; empty if the kind is sufficient
};

/// Returns the row of an operator, given as "aten::conv2d" or "aten::relu_"; nullptr if there is none.
[[nodiscard]] const AtenRow* find_aten_row(std::string_view target);

/// Returns true if an operator belongs to a library of the tables: names of other libraries ("my::add") may have a
/// different meaning.
[[nodiscard]] bool is_of_known_library(std::string_view target) noexcept;

}  // namespace ftax
