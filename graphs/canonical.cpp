#include "graphs/canonical.hpp"

#include "graphs/canonical_patterns.hpp"
#include "graphs/rewriter.hpp"

namespace ftax {

void canonicalize(Graph& graph) {
    Rewriter rewriter(graph);
    canonical::norms(rewriter);
    canonical::activations(rewriter);
    canonical::linear_layers(rewriter);
    canonical::global_pools(rewriter);
    canonical::attention(rewriter);
    rewriter.finish();
}

}  // namespace ftax
