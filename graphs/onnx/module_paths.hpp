#pragma once

#include <map>
#include <string>
#include <string_view>
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

}  // namespace ftax::onnx_import
