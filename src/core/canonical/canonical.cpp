#include "src/core/canonical/canonical.hpp"

#include "src/core/canonical/patterns.hpp"
#include "src/core/operands.hpp"
#include "src/core/rewriting/rewriter.hpp"

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
