#pragma once

#include <functional>

#include "ftax/graph.hpp"

namespace ftax {

/// Origin of a decomposed GELU: F.gelu(approximate="tanh") becomes a product x·x·x in older ONNX files, while models
/// that decompose the function themselves call pow; eager PyTorch runs the latter by operator, optimisers fuse it.
enum class SpelledOut { keep, recognise };

/// Returns true if the exporter decomposed the operator that ended with `last`. Decompositions of RMSNorm and attention
/// by exporters and by models look the same.
using TakenApart = std::function<bool(const Op& last, OpKind kind)>;

/// Recognises operators decomposed by exporters, so that a model gives the same Graph from any exporter: GELU (through
/// Erf or Tanh), SiLU, HardSwish, LayerNorm, GroupNorm, linear layers, global pooling, scaled dot-product attention,
/// and RMSNorm if `taken_apart` returns true or decompositions by models are recognised as well. Op::source of the
/// result lists the replaced operators ("Sigmoid+Mul"). Throws Error{model} if an operator lacks an operand.
void canonicalize(
    Graph& graph, SpelledOut spelled_out = SpelledOut::keep,
    const TakenApart& taken_apart = [](const Op&, OpKind) { return false; });

/// Recognises attention decomposed by the model itself, which only engines with a fused kernel merge.
void recognise_attention(Graph& graph);

}  // namespace ftax
