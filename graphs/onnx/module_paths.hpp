#pragma once

#include <map>
#include <string>
#include <vector>

#include "ftax/graph.hpp"
#include "graphs/onnx/records.hpp"

namespace ftax::onnx_import {

/// Returns the path of the nn.Module that called a node, as recorded by PyTorch's exporters: in metadata
/// (pkg.torch.onnx.name_scopes) or in the node's name ("/layer1/layer1.0/conv1/Conv"); `fallback` if missing.
[[nodiscard]] std::string module_of(const NodeRecord& node, const std::string& fallback);

/// Returns the modules named by nodes, by path, with their class if in the metadata (pkg.torch.onnx.class_hierarchy).
using ModuleTypes = std::map<std::string, std::string, std::less<>>;
[[nodiscard]] ModuleTypes module_types(const std::vector<NodeRecord>& nodes);

/// Lists the module calls of the forward pass from the paths of the operators in execution order.
void record_module_calls(Graph& graph, const ModuleTypes& types);

/// Returns true if PyTorch's exporter decomposed the operator that ended with `last`: it names the end of attention
/// after the call, and records the module class of an RMSNorm.
[[nodiscard]] bool taken_apart(const Op& last, OpKind kind, const ModuleTypes& types);

/// Reverts foldings of PyTorch's exporters into weights that eager PyTorch still executes: a batch normalisation folded
/// into the convolution before it, the transposed copy of a linear layer's weight, a bias of zeros. They are recognised
/// by names: copies have generated names ("onnx::Conv_497"), or the operator has the module path of the batch norm.
void restore_folded_layers(Graph& graph, const ModuleTypes& types);

/// Merges the weights of an embedding and a head with equal values: exporters that fold constants store a tied weight
/// twice, transposed for the head. External data at the same location are equal; otherwise a sample of values is
/// compared. Unreadable weights are not merged. `graph` is the import of `records` after layer recognition; `directory`
/// contains the model file.
void share_embedding(Graph& graph, const GraphRecord& records, const std::string& directory);

}  // namespace ftax::onnx_import
