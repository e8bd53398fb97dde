#pragma once

#include <functional>

#include "ftax/graph.hpp"

namespace ftax {

/// Who wrote the GELU out: F.gelu(approximate="tanh") reaches older ONNX files as a product x·x·x, while a model that
/// spells the function out itself calls pow, operator by operator, which eager PyTorch does and optimisers undo.
enum class SpelledOut { keep, recognise };

/// Whether it was the exporter that took apart the operator of this kind that ended with `last`. RMSNorm and attention
/// are written alike by an exporter and by models that spell them out.
using TakenApart = std::function<bool(const Op& last, OpKind kind)>;

/// Recognises what exporters take apart, so that one model becomes the same Graph whoever exported it: GELU (through
/// Erf or Tanh), SiLU, HardSwish, LayerNorm, GroupNorm, linear layers, global pooling, scaled dot-product attention,
/// and RMSNorm where `taken_apart` says so or what is spelled out is recognised. Op::source of the result lists the
/// operators it replaces ("Sigmoid+Mul"). Throws Error{model} where an operator lacks an operand.
void canonicalize(
    Graph& graph, SpelledOut spelled_out = SpelledOut::keep,
    const TakenApart& taken_apart = [](const Op&, OpKind) { return false; });

/// Recognises attention that a model spells out itself, which only engines with a kernel for it undo.
void recognise_attention(Graph& graph);

}  // namespace ftax
