#pragma once

#include <optional>

#include "ftax/graph.hpp"
#include "ftax/types.hpp"
#include "src/io/json_document.hpp"

namespace ftax::config {

/// Returns the precision that the field `quantization_config` of a checkpoint declares; nullopt if ftax has none with
/// its formats. Throws Error{model} for a field of the wrong type.
/// Source: transformers, utils/quantization_config.py (awq, gptq, fp8, fbgemm_fp8, mxfp4, compressed-tensors),
/// ModelOpt's quant_algo.
[[nodiscard]] std::optional<Precision> read_quantization(const JsonField& quantization);

/// Sets the precision of layers and experts with weights, except those in `modules_to_not_convert`, or warns that it is
/// unknown.
void note_quantization(Graph& graph, const JsonField& quantization);

}  // namespace ftax::config
