#pragma once

#include <array>

#include "predictors/frameworks/framework_model.hpp"
#include "predictors/lowering/rewrites.hpp"

namespace ftax {

/// How engines of TensorRT run a graph, whoever calls them.
inline constexpr LoweringTraits engine_traits{
    .views_cost_host = false,
    .views_move_data = true,
    .module_calls = false,
    .separate_conv_bias = false,
    .gemm = {.cublas_lt_limit = kernels::no_cublas_lt_limit},
    .conv = {.channels_last = true, .library = kernels::ConvLibrary::tensorrt},
    .half_accumulation = true,
    .windows_stream = true,
    .batched_matmul_copies = false,
    .engine = true,
    .host_kind = HostKind::engine};

/// What TensorRT's builder makes of a network, in this order. A BERT layer becomes seven kernels: one product for
/// queries, keys and values, attention, the product after it, residual and norm, and the two products of the
/// feed-forward with another norm. Biases are added in the products. Source: TensorRT, demo/BERT; developer guide,
/// "Types of Fusions".
inline constexpr std::array<Pass, 11> builder_passes{rewrites::recognise_attention,
                                                     rewrites::fold_batch_norm,
                                                     rewrites::merge_sibling_layers,
                                                     rewrites::fuse_activation,
                                                     rewrites::fuse_residual_layer_norm,
                                                     rewrites::fuse_epilogue,
                                                     rewrites::fuse_scale_and_activation,
                                                     rewrites::fold_movement,
                                                     rewrites::fuse_pointwise,
                                                     rewrites::eliminate_concatenations,
                                                     rewrites::name_engine_layers};

}  // namespace ftax
