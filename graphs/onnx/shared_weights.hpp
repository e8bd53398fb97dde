#pragma once

#include <string>

#include "ftax/graph.hpp"
#include "graphs/onnx/records.hpp"

namespace ftax::onnx_import {

/// Makes one weight of an embedding and a head that hold the same values: exporters that fold constants write a shared
/// weight twice, the head's transposed. External data at the same place are the same; else some values of both, spread
/// over them, are compared. What cannot be read stays apart. `graph` is what became of `records` after the layers have
/// been recognised; `directory` holds the model file.
void share_embedding(Graph& graph, const GraphRecord& records, const std::string& directory);

}  // namespace ftax::onnx_import
