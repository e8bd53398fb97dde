#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/graph.hpp"
#include "ftax/types.hpp"

namespace ftax {

/// Element types by torch's numbers. Source: c10/core/ScalarType.h.
inline constexpr std::array scalar_types = [] {
    using enum DType;
    return std::array{u8,      i8,  i16,  i32,     i64,     f16,     f32,     f64,
                      unknown, c64, c128, boolean, unknown, unknown, unknown, bf16};
}();

constexpr DType dtype_of_scalar_type(std::int64_t number) noexcept {
    return number >= 0 && number < std::ssize(scalar_types) ? scalar_types[static_cast<std::size_t>(number)]
                                                            : DType::unknown;
}

/// The number of an element type; past the last for one that torch has under no number of these.
constexpr std::int64_t scalar_type_of(DType type) noexcept {
    return std::ranges::find(scalar_types, type) - scalar_types.begin();
}

/// One argument of an ATen call as a PyTorch file states it: a tensor, several tensors, or numbers. Arguments that keep
/// their default are absent. Shapes are known from the tensors, so symbolic numbers may be omitted.
struct AtenArgument {
    std::string name;
    std::vector<TensorId> tensors;       ///< no_tensor where an optional tensor is None
    std::vector<std::int64_t> integers;  ///< empty when one of them is symbolic
    std::vector<Expression> sizes;       ///< the same as expressions, if provided by the importer
    std::optional<double> number;
    std::string text;
};

/// One call of an ATen operator, independent of the file format.
struct AtenCall {
    std::string target;  ///< "aten::conv2d"; the overload is left out
    std::string name;
    std::string module;
    std::vector<AtenArgument> arguments;
    std::vector<TensorId> outputs;

    [[nodiscard]] const AtenArgument* find(std::string_view argument) const;
    [[nodiscard]] TensorId tensor(std::string_view argument) const;  ///< no_tensor when absent
    [[nodiscard]] std::int64_t integer(std::string_view argument, std::int64_t fallback) const;
    [[nodiscard]] std::span<const std::int64_t> integers(std::string_view argument) const;
    /// The axes that an argument lists, counted from the front.
    [[nodiscard]] std::vector<std::int64_t> axes(std::string_view argument, std::size_t rank) const;

    /// `axis` counted from the front; a number counts as one dimension. Fails outside [-rank, rank).
    [[nodiscard]] std::int64_t axis(std::int64_t axis, std::size_t rank) const;
    /// Throws Error{model} that names the call.
    [[noreturn]] void fail(std::string_view what) const;
};

/// Element type and shape that an ATen call gives one of its outputs.
struct AtenOutput {
    DType dtype = DType::f32;
    std::vector<Expression> shape;
    bool known_shape = true;
};

/// Infers what a call of an ATen operator returns, from the types of the tensors it reads and its other arguments;
/// AtenCall::outputs is not looked at. In-place variants follow the plain ones. nullopt for an operator without a rule.
/// Throws Error{model} naming the call when its operands do not fit.
/// Source: the operators' documentation and the meta functions of torch 2.11 (torch/_meta_registrations.py).
[[nodiscard]] std::optional<std::vector<AtenOutput>> infer_aten(Graph& graph, const AtenCall& call);

/// Appends the canonical operators of one ATen call to `graph`; outputs must be tensors of the graph already. An
/// operator without a row in the table becomes OpKind::custom. Throws Error{model} if an argument is missing or wrong.
void append_aten(Graph& graph, const AtenCall& call);

/// Whether the table has a row for an operator, given as "aten::conv2d".
[[nodiscard]] bool is_known_aten(std::string_view target) noexcept;

/// Throws Error{limit} naming `node` where it would be one operator more than `most` (ImportOptions::max_nodes).
void check_room(const Graph& graph, std::uint64_t most, std::string_view node);

}  // namespace ftax
