#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graphs/config/transformer_config.hpp"

namespace ftax::config {

/// What the whole network is made of.
enum class Form : std::uint8_t { decoder, encoder, vision, text_and_vision, speech };

/// A row of families.txt: what distinguishes one family from others. Fields of type string_view are names of a
/// config.json's fields; those that say a number or a truth value may be the value itself.
struct Family {
    std::string_view model_type;
    std::string_view base;  ///< the family whose row this one extends
    std::string title;      ///< class prefix: "Qwen2Moe"
    Form form = Form::decoder;
    bool is_part = false;  ///< there is more to the model, which is not built
    Structure structure{};
    std::string_view layers, heads, mlp_width;    ///< where the usual names mean something else
    std::string_view one_key_head = "false";      ///< whether all heads share one of keys
    std::string_view query_norm_switch = "true";  ///< whether queries and keys are normalised
    bool wide_mlp = false;  ///< where the file leaves the MLP's width out, it is four times the hidden size
    std::string_view query_bias = "attention_bias", output_bias = "attention_bias", mlp_bias = "mlp_bias";
    std::string_view head_bias = "false", tied = "tie_word_embeddings", scaled_embedding = "false";
    std::string_view rotary_share = "1";  ///< share of a head that is rotated, or the width itself
    /// Layers whose attention sees a window of tokens, where the file does not list `layer_types`.
    std::string_view window, window_switch = "true", window_first = "0";
    std::string_view full_every = "0";  ///< every n-th layer sees all tokens …
    std::string_view full_at;           ///< … the one at this place, the last if empty
    Mixer state_mixer = Mixer::none;    ///< of layers that are no attention
    bool state_norm = false;            ///< it normalises what it computes
    bool lone_sublayers = false;        ///< a layer is either a mixer or an MLP
    /// Experts: width of one, the shared MLP's width or how many experts it is wide, every n-th layer, those before the
    /// first, the MLP's width in layers without.
    std::string_view expert_width, shared_width, shared_count, expert_step = "1", expert_at, first_dense = "0",
                                                               dense_width;
    std::string_view normalized = "true";
    bool shared_gate = false;
    /// Rows of the learned table beyond `positions`; less than 0: so many of its rows are of no position.
    std::int64_t position_offset = 0;
    /// Fields that the family's files may leave out, with the value of its class: JSON.
    std::vector<std::pair<std::string_view, std::string_view>> defaults;
};

[[nodiscard]] std::span<const Family> families();

}  // namespace ftax::config
