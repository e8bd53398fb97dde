#pragma once

#include "src/core/canonical/canonical.hpp"
#include "src/core/rewriting/rewriter.hpp"

/// The patterns of canonicalize(), one function per family.
namespace ftax::canonical {

/// Whether no operator of the group but `last` feeds anything outside it.
[[nodiscard]] bool is_closed(const Rewriter& r, const std::vector<OpId>& group, OpId last);

void activations(Rewriter& r, SpelledOut spelled_out);
void norms(Rewriter& r, SpelledOut spelled_out, const TakenApart& taken_apart);
void linear_layers(Rewriter& r);
void global_pools(Rewriter& r);
/// softmax(s·q × (s·k)ᵀ [+ mask]) × v with both factors scaled beforehand: how PyTorch's exporter writes
/// scaled_dot_product_attention. Attention that a model spells out itself scales the product and stays as it is, unless
/// `taken_apart` knows better.
void attention(Rewriter& r, const TakenApart& taken_apart);
/// The same however it is scaled, capped and masked, with sinks and with keys and values copied for several heads.
void spelled_out_attention(Rewriter& r);

}  // namespace ftax::canonical
