#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "graphs/config/transformer_config.hpp"

namespace ftax::config {

/// A truth value of config.json; without a name, or where the file leaves it out, it is `fallback`.
struct Flag {
    std::string_view field;
    bool fallback = false;
};

/// What a family calls its sizes in config.json. Where a file has no `key_value_heads` there are as many as heads; no
/// `mlp_width`, four times the hidden size.
struct FieldNames {
    std::string_view hidden = "hidden_size";
    std::string_view layers = "num_hidden_layers";
    std::string_view heads = "num_attention_heads";
    std::string_view key_value_heads = "num_key_value_heads";
    std::string_view mlp_width = "intermediate_size";
    std::string_view activation = "hidden_act";
    std::string_view positions = "max_position_embeddings";
};

/// Which layers see a window of tokens only, where the file does not list them (`layer_types`).
struct Windows {
    std::string_view field;                ///< its length; empty: no layer has one
    std::string_view full_every;           ///< every n-th layer sees all tokens; the field that says n
    std::int64_t full_every_fallback = 0;  ///< 0: none does
    std::string_view switched_by;          ///< a truth value without which no layer has one
    std::string_view first;                ///< layers before the first with one
};

/// What a family calls the sizes of its experts.
struct ExpertNames {
    std::string_view count;  ///< empty: the family has none
    std::string_view width = "moe_intermediate_size";
    std::string_view shared_width;      ///< of the shared MLP …
    std::string_view shared_count;      ///< … or how many experts wide it is
    std::string_view step;              ///< every n-th layer has experts
    std::string_view first_dense;       ///< layers before the first with experts
    std::string_view dense_width = "";  ///< of layers without, where it is not mlp_width
    bool shared_gate = false;
    Flag normalized{"", true};  ///< whether the scores of a token's experts are divided by their sum
};

/// Sizes that a family's files may leave out because its class has them; 0: they must not.
struct Fallbacks {
    std::int64_t heads = 0, key_value_heads = 0, head_width = 0, vocabulary = 0;
};

/// What the whole network is made of.
enum class Form : std::uint8_t { decoder, encoder, vision, text_and_vision, speech };

/// One row of the table of families: all that tells one from another.
struct Family {
    std::string_view model_type;  ///< of config.json
    std::string_view title;
    Form form = Form::decoder;
    FieldNames names{};
    Structure structure{};
    Flag query_bias{"attention_bias", false};
    Flag output_bias{"attention_bias", false};
    Flag mlp_bias{"mlp_bias", false};
    Flag tied{"tie_word_embeddings", false};
    bool head_bias = false;
    std::string_view activation = "";    ///< where the file leaves it out; empty: it must not
    std::string_view rotary_share = "";  ///< field with the share of a head that is rotated, or the width itself
    double rotary_share_fallback = 1;
    Windows windows{};
    ExpertNames experts{};
    /// Rows of the learned table beyond `positions`; less than 0: so many of its rows are of no position.
    std::int64_t position_offset = 0;
    std::int64_t token_types = 0;  ///< where the file leaves `type_vocab_size` out
    Fallbacks fallbacks{};
};

[[nodiscard]] std::span<const Family> families();

}  // namespace ftax::config
