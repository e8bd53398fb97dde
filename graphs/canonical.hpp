#pragma once

#include "ftax/graph.hpp"

namespace ftax {

/// Recognises what exporters take apart, so that one model becomes the same Graph whoever exported it: GELU (through
/// Erf or Tanh), SiLU, HardSwish, LayerNorm, RMSNorm, linear layers, global pooling, scaled dot-product attention.
/// Op::source of the result lists the operators it replaces ("Sigmoid+Mul").
void canonicalize(Graph& graph);

/// Gives views (transpose, slice, split, expand, and reshape where strides allow it) the strides that eager PyTorch
/// would; tensors that own their memory stay contiguous. Strides that a file brought are kept.
void propagate_strides(Graph& graph);

}  // namespace ftax
