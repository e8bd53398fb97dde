#pragma once

#include <map>
#include <string>
#include <vector>

#include "ftax/graph.hpp"
#include "graphs/onnx/records.hpp"

namespace ftax::onnx_import {

/// Returns the path of the nn.Module that ran a node, as PyTorch's exporters record it: in metadata
/// (pkg.torch.onnx.name_scopes) or in the node's name ("/layer1/layer1.0/conv1/Conv"); `fallback` when they do not.
[[nodiscard]] std::string module_of(const NodeRecord& node, const std::string& fallback);

/// The modules that nodes name, by path, with their class where metadata says it (pkg.torch.onnx.class_hierarchy).
using ModuleTypes = std::map<std::string, std::string, std::less<>>;
[[nodiscard]] ModuleTypes module_types(const std::vector<NodeRecord>& nodes);

/// Lists the module calls of the forward pass from the paths of the operators in execution order.
void record_module_calls(Graph& graph, const ModuleTypes& types);

/// Whether PyTorch's exporter took apart the operator that ended with `last`: it names the end of attention after the
/// call, and says which module's class an RMSNorm is of.
[[nodiscard]] bool taken_apart(const Op& last, OpKind kind, const ModuleTypes& types);

/// Undoes what PyTorch's exporters fold into weights and what eager PyTorch still runs: a batch normalisation folded
/// into the convolution before it, the transposed copy of a linear layer's weight, a bias of zeros. They leave traces
/// in names: the copies have generated ones ("onnx::Conv_497"), or the operator carries the module path of the batch
/// norm.
void restore_folded_layers(Graph& graph, const ModuleTypes& types);

/// Makes one weight of an embedding and a head that hold the same values: exporters that fold constants write a shared
/// weight twice, the head's transposed. External data at the same place are the same; else some values of both, spread
/// over them, are compared. What cannot be read stays apart. `graph` is what became of `records` after the layers have
/// been recognised; `directory` holds the model file.
void share_embedding(Graph& graph, const GraphRecord& records, const std::string& directory);

}  // namespace ftax::onnx_import
