#pragma once

#include "ftax/graph.hpp"

namespace ftax {

/// Recognises what exporters take apart, so that one model becomes the same Graph whoever exported it: GELU (through
/// Erf or Tanh), SiLU, HardSwish, LayerNorm, RMSNorm, linear layers, global pooling, scaled dot-product attention.
/// Op::source of the result lists the operators it replaces ("Sigmoid+Mul").
void canonicalize(Graph& graph);

}  // namespace ftax
