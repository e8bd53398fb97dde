#pragma once

#include "graphs/ir/canonical/canonical.hpp"
#include "graphs/ir/rewriting/rewriter.hpp"

/// The patterns of canonicalize(), one function per family.
namespace ftax::canonical {

/// Returns true if only `last` has readers outside the group.
[[nodiscard]] bool is_closed(const Rewriter& r, const std::vector<OpId>& group, OpId last);

void activations(Rewriter& r, SpelledOut spelled_out);
void norms(Rewriter& r, SpelledOut spelled_out, const TakenApart& taken_apart);
void linear_layers(Rewriter& r);
void global_pools(Rewriter& r);
/// softmax(s·q × (s·k)ᵀ [+ mask]) × v with both factors scaled beforehand: the decomposition of
/// scaled_dot_product_attention by PyTorch's exporter. Attention decomposed by a model scales the product and is kept,
/// unless `taken_apart` returns true.
void attention(Rewriter& r, const TakenApart& taken_apart);
/// The same with any scaling, caps, masks and sinks, and with keys and values repeated for several heads.
void spelled_out_attention(Rewriter& r);

}  // namespace ftax::canonical
