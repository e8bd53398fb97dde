#pragma once

#include "ftax/graph.hpp"

namespace ftax {

/// Who wrote the GELU out: F.gelu(approximate="tanh") reaches older ONNX files as a product x·x·x, while a model that
/// spells the function out itself calls pow, operator by operator, which eager PyTorch does and optimisers undo.
enum class SpelledOut { keep, recognise };

/// Recognises what exporters take apart, so that one model becomes the same Graph whoever exported it: GELU (through
/// Erf or Tanh), SiLU, HardSwish, LayerNorm, RMSNorm, linear layers, global pooling, scaled dot-product attention.
/// Op::source of the result lists the operators it replaces ("Sigmoid+Mul").
void canonicalize(Graph& graph, SpelledOut spelled_out = SpelledOut::keep);

/// Recognises attention that a model spells out itself, which only engines with a kernel for it undo.
void recognise_attention(Graph& graph);

}  // namespace ftax
