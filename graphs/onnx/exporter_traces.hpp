#pragma once

#include "ftax/graph.hpp"
#include "graphs/onnx/module_paths.hpp"

namespace ftax::onnx_import {

/// Undoes what PyTorch's exporters fold into weights and what eager PyTorch still runs: a batch normalisation folded
/// into the convolution before it, the transposed copy of a linear layer's weight, a bias of zeros. They leave traces
/// in names: the copies have generated ones ("onnx::Conv_497"), or the operator carries the module path of the batch
/// norm.
void restore_folded_layers(Graph& graph, const ModuleTypes& types);

}  // namespace ftax::onnx_import
