#pragma once

#include <cstdint>

#include "ftax/framework.hpp"
#include "ftax/graph.hpp"
#include "predictors/kernels/shapes.hpp"

namespace ftax {

/// What an eager framework launches for an operator of each kind.
struct LaunchRule {
    OpKind kind;
    enum class Action : std::uint8_t { contract, move, view, wait, nothing } action;
    HostKind host_kind = HostKind::elementwise;
    kernels::MemoryClass memory_class = kernels::MemoryClass::pointwise;
};

[[nodiscard]] const LaunchRule& launch_rule(OpKind kind) noexcept;

/// Whether the operator is a batch norm of inference, which knows its statistics: a scale and a shift of each channel.
[[nodiscard]] bool scales_channels(const Op& op);

/// The class of an operator's kernel where no framework has one of its own: as the rule says, but for functions that
/// take longer than others of their kind.
[[nodiscard]] kernels::MemoryClass memory_class(const Op& op);

}  // namespace ftax
