#pragma once

#include <optional>
#include <vector>

#include "graphs/aten/aten_call.hpp"

namespace ftax {

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

}  // namespace ftax
