#pragma once

#include "ftax/graph.hpp"
#include "graphs/onnx/module_paths.hpp"

namespace ftax::onnx_import {

/// Whether PyTorch's exporter took apart the operator that ended with `last`: it names the end of attention after the
/// call, and says which module's class an RMSNorm is of.
[[nodiscard]] bool taken_apart(const Op& last, OpKind kind, const ModuleTypes& types);

/// Undoes what PyTorch's exporters fold into weights and what eager PyTorch still runs: a batch normalisation folded
/// into the convolution before it, the transposed copy of a linear layer's weight, a bias of zeros. They leave traces
/// in names: the copies have generated ones ("onnx::Conv_497"), or the operator carries the module path of the batch
/// norm.
void restore_folded_layers(Graph& graph, const ModuleTypes& types);

}  // namespace ftax::onnx_import
