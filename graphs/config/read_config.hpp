#pragma once

#include <optional>
#include <string_view>

#include "ftax/graph.hpp"
#include "ftax/types.hpp"
#include "graphs/config/families.hpp"
#include "graphs/config/transformer_config.hpp"
#include "src/io/json_document.hpp"

namespace ftax::config {

/// Returns the row of a model type; nullptr if there is none.
[[nodiscard]] const Family* find_family(std::string_view model_type);

/// Reads the sizes of a stack of layers from a config.json by the names of its family, and checks that they fit
/// together. Throws Error{model} naming file and field.
[[nodiscard]] TransformerConfig read_transformer(const JsonField& document, const Family& family);

/// Returns an integer field, or `fallback` if it is missing. Throws Error{model} as above, Error{limit}
/// beyond `most`, and without a fallback Error{model} if the field is missing. Products of two sizes of 2^26 fit easily
/// into 64 bits.
[[nodiscard]] std::int64_t read_count(const JsonField& document, std::string_view field,
                                      std::optional<std::int64_t> fallback = std::nullopt, std::int64_t most = 1 << 26);

/// Returns a number of layers. Throws Error{limit} beyond 10,000, more than any model has.
[[nodiscard]] std::int64_t read_layers(const JsonField& document, std::string_view field);

/// Element type of the weights: `dtype` or `torch_dtype`; f32 if both are missing or unsupported.
[[nodiscard]] DType read_dtype(const JsonField& document);

/// Returns the precision that the field `quantization_config` of a checkpoint declares; nullopt if ftax has none with
/// its formats. Throws Error{model} for a field of the wrong type.
/// Source: transformers, utils/quantization_config.py (awq, gptq, fp8, fbgemm_fp8, mxfp4, compressed-tensors),
/// ModelOpt's quant_algo.
[[nodiscard]] std::optional<Precision> read_quantization(const JsonField& quantization);

/// Sets the precision of layers and experts with weights, except those in `modules_to_not_convert`, or warns that it is
/// unknown.
void note_quantization(Graph& graph, const JsonField& quantization);

}  // namespace ftax::config
