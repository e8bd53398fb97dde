#pragma once

#include <string_view>

#include "graphs/aten/aten_attributes.hpp"
#include "graphs/aten/aten_shape_rules.hpp"

namespace ftax {

/// Maps ATen operators, in-place variants included, to a canonical one, or to several.
struct AtenRow {
    std::string_view name;              ///< without the `_` of the in-place variant; a row of the table lists several
    OpKind kind;                        ///< custom: none; what an operator is whose form append() does not know
    aten_shapes::Rule shape = nullptr;  ///< of what it returns
    aten_attributes::Reader attributes = aten_attributes::no_attributes;
    std::string_view operands{};  ///< argument names in canonical order; empty: all tensors as they come
    bool (*append)(Graph& graph, const AtenCall& call) = nullptr;  ///< of one that is several canonical ones
    std::string_view function{};  ///< attribute "function"; empty where the kind says all
};

/// The row of an operator, given as "aten::conv2d" or "aten::relu_"; nullptr where there is none.
[[nodiscard]] const AtenRow* find_aten_row(std::string_view target);

/// Whether an operator is of a library that the tables are about: of any other, a name that they have ("my::add")
/// may stand for something else.
[[nodiscard]] bool is_of_known_library(std::string_view target) noexcept;

}  // namespace ftax
