#pragma once

#include <string_view>

#include "ftax/graph.hpp"

/// Passes over a graph that the optimisers of frameworks make; a framework is a list of them (predictors/frameworks/).
namespace ftax::rewrites {

/// Value of the attribute `function` of a pointwise operator that stands for a run of fused ones.
inline constexpr std::string_view fused_function = "fused";

/// Folds a batch norm into the convolution or linear layer that feeds it alone: a bias remains.
/// Source: ONNX Runtime, ConvBNFusion; TensorRT, layer fusion "convolution and scale".
void fold_batch_norm(Graph& graph);

/// Lets a convolution apply the relu behind it, and the residual addition in between, in its epilogue.
/// Source: ONNX Runtime, ConvActivationFusion and ConvAddActivationFusion (FusedConv knows relu on CUDA).
void fuse_conv_relu(Graph& graph);
/// The same for any elementwise function, and for linear layers.
/// Source: TensorRT, layer fusion "convolution and pointwise".
void fuse_epilogue(Graph& graph);

/// Joins a residual addition to the layer norm that alone reads it. Source: ONNX Runtime, SkipLayerNormFusion.
void fuse_skip_layer_norm(Graph& graph);

/// Joins runs of two or more elementwise operators that follow one another: what passes inside causes no traffic.
/// Source: TensorRT, pointwise fusion.
void fuse_pointwise(Graph& graph);
/// Runs of elementwise operators and batch norms.
/// Source: TorchScript's NVFuser (PyTorch 1.12), which leaves single operators alone.
void fuse_pointwise_and_batch_norm(Graph& graph);
/// Runs of elementwise operators, softmax, norms and reductions. Source: Inductor's scheduler.
void fuse_pointwise_and_reductions(Graph& graph);

/// Removes concatenations: their inputs are written where the result is read.
/// Source: TensorRT, "concatenation elimination".
void remove_concatenations(Graph& graph);

}  // namespace ftax::rewrites
