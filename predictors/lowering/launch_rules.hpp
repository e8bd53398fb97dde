#pragma once

#include <cstdint>

#include "ftax/framework.hpp"
#include "ftax/graph.hpp"
#include "predictors/kernels/shapes.hpp"

namespace ftax {

/// How an operator is launched (data/operator_kinds.tsv).
struct LaunchRule {
    enum class Action : std::uint8_t { contract, move, view, wait, nothing } action = Action::nothing;
    HostKind host_kind = HostKind::elementwise;
    kernels::MemoryClass memory_class = kernels::MemoryClass::pointwise;
};

[[nodiscard]] const LaunchRule& launch_rule(OpKind kind);

/// Returns true for inference batch norms with known statistics: a scale and a shift of each channel.
[[nodiscard]] bool scales_channels(const Op& op);

/// Returns the default class of an operator's kernel: that of its rule, except for more expensive functions.
[[nodiscard]] kernels::MemoryClass memory_class(const Op& op);

}  // namespace ftax
