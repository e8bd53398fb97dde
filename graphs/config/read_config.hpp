#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ftax/graph.hpp"
#include "ftax/types.hpp"
#include "graphs/config/transformer_config.hpp"
#include "graphs/files/json_document.hpp"

namespace ftax::config {

FTAX_CHOICE(Form, decoder, encoder, vision, text_and_vision, speech)

/// A row of families.txt: what distinguishes one family from others. Fields of type string_view are names of a
/// config.json's fields; those for a number or a truth value may be the value itself.
struct Family {
    std::string_view model_type;
    std::string_view base;  ///< the family whose row this one extends
    std::string title;      ///< class prefix: "Qwen2Moe"
    Form form = Form::decoder;
    bool is_part = false;      ///< the model has further parts, which are not built
    std::string_view missing;  ///< what ftax lacks for the family, which it refuses; empty: nothing
    Structure structure{};
    std::string_view layers, heads, mlp_width;    ///< if the usual names have a different meaning
    std::string_view one_key_head = "false";      ///< whether all heads share one of keys
    std::string_view query_norm_switch = "true";  ///< whether queries and keys are normalised
    bool wide_mlp = false;                        ///< the MLP's width defaults to four times the hidden size
    std::string_view query_bias = "attention_bias", output_bias = "attention_bias", mlp_bias = "mlp_bias";
    std::string_view head_bias = "false", scaled_embedding = "false";
    std::string_view rotary_share = "1";  ///< share of a head that is rotated, or the width itself
    /// Layers with sliding-window attention, if the file does not list `layer_types`.
    std::string_view window, window_switch = "true", window_first = "0";
    std::string_view full_every = "0";  ///< every n-th layer sees all tokens …
    std::string_view full_at;           ///< … the one at this place, the last if empty
    Mixer state_mixer = Mixer::none;    ///< mixer of layers other than attention
    bool state_norm = false;            ///< with a norm on its result
    bool lone_sublayers = false;        ///< a layer is either a mixer or an MLP
    /// Experts: width of one, the shared MLP's width or how many experts it is wide, every n-th layer, those before the
    /// first, the MLP's width in layers without.
    std::string_view expert_width, shared_width, shared_count, expert_step = "1", expert_at, first_dense = "0",
                                                               dense_width;
    std::string_view normalized = "true";
    bool shared_gate = false;
    /// Rows of the learned table beyond `positions`; negative: number of rows without a position.
    std::int64_t position_offset = 0;
    /// Optional fields with the default values of the family's class: JSON.
    std::vector<std::pair<std::string_view, std::string_view>> defaults;
};

[[nodiscard]] std::span<const Family> families();

/// Returns the row of a model type; nullptr if there is none.
[[nodiscard]] const Family* find_family(std::string_view model_type);

/// Reads the sizes of a stack of layers from a config.json by the names of its family, and checks that they fit
/// together. Throws Error{model} naming file and field.
[[nodiscard]] TransformerConfig read_transformer(const JsonField& document, const Family& family);

/// Returns an integer field, or `fallback` if it is missing. Throws Error{model} as above, Error{limit} beyond `most`,
/// and without a fallback Error{model} if the field is missing.
[[nodiscard]] std::int64_t read_count(const JsonField& document, std::string_view field,
                                      std::optional<std::int64_t> fallback = std::nullopt, std::int64_t most = 1 << 26);

/// Returns a number of layers. Throws Error{limit} beyond 10,000, more than any model has.
[[nodiscard]] std::int64_t read_layers(const JsonField& document, std::string_view field);

/// Element type of the weights: `dtype` or `torch_dtype`; f32 if both are missing or unsupported.
[[nodiscard]] DType read_dtype(const JsonField& document);

/// Returns the precision that the field `quantization_config` of a checkpoint declares; nullopt if ftax has none with
/// its formats. Throws Error{model} for a field of the wrong type. Source: transformers, utils/quantization_config.py;
/// ModelOpt's quant_algo.
[[nodiscard]] std::optional<Precision> read_quantization(const JsonField& quantization);

/// Sets the precision of layers and experts with weights that the checkpoint narrows, or warns that it is unknown.
void note_quantization(Graph& graph, const JsonField& quantization);

}  // namespace ftax::config
