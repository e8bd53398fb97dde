#pragma once

#include "ftax/graph.hpp"
#include "graphs/onnx/module_paths.hpp"

namespace ftax::onnx_import {

/// Undoes what PyTorch's exporters fold into weights and what eager PyTorch still runs: a batch normalisation folded
/// into the convolution before it, and the transposed copy of a linear layer's weight. Both leave traces in names: the
/// folded copies have generated ones ("onnx::Conv_497"), or the operator carries the module path of the batch norm.
void restore_folded_layers(Graph& graph, const ModuleTypes& types);

}  // namespace ftax::onnx_import
