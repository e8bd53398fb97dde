#include "predictors/frameworks/frameworks.hpp"
#include "predictors/lowering/rewrites.hpp"

namespace ftax {

// torch.nn.TransformerEncoderLayer's fast path: one call per layer launches its kernels from C++, residual additions
// are fused into layer norms, and nested tensors omit padding.
// Source: PyTorch 1.12, aten/src/ATen/native/transformers/transformer.cpp, transformer_encoder_layer_forward.
constexpr Pass passes[] = {rewrites::fuse_skip_layer_norm};

const FrameworkModel bettertransformer{
    .name = "bettertransformer",
    .description = "BetterTransformer: fused encoder layers, padded tokens skipped (--padding)",
    .traits = {.views_cost_host = false, .module_calls = false, .skips_padding = true, .batched_matmul_copies = false},
    .rewrites = passes,
    .priors = cpp_dispatch_costs,
};

}  // namespace ftax
