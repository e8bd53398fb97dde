#include "graphs/ir/canonical/canonical.hpp"

#include "graphs/ir/canonical/patterns.hpp"
#include "graphs/ir/operands.hpp"
#include "graphs/ir/rewriting/rewriter.hpp"

namespace ftax {

void canonicalize(Graph& graph, SpelledOut spelled_out, const TakenApart& taken_apart) {
    check_operands(graph);
    Rewriter rewriter(graph);
    canonical::norms(rewriter, spelled_out, taken_apart);
    canonical::activations(rewriter, spelled_out);
    canonical::linear_layers(rewriter);
    canonical::global_pools(rewriter);
    canonical::attention(rewriter, taken_apart);
    rewriter.finish();
}

void recognise_attention(Graph& graph) {
    Rewriter rewriter(graph);
    canonical::spelled_out_attention(rewriter);
    rewriter.finish();
}

}  // namespace ftax
