#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/import.hpp"
#include "ftax/types.hpp"

namespace ftax::config {

/// An enumeration with the text of its names, which families.txt uses.
#define FTAX_CHOICE(Name, ...)                      \
    enum class Name : std::uint8_t { __VA_ARGS__ }; \
    constexpr std::string_view text_of(Name) {      \
        return #__VA_ARGS__;                        \
    }

/// Form of an activation in eager PyTorch: one operator, x · sigmoid(1.702 x), the tanh form of GELU written out, the
/// square of one operator, or xIELU with its two parameters.
FTAX_CHOICE(Spelling, single, sigmoid, tanh, squared, xielu)

/// A row of activations.txt.
struct Activation {
    std::string_view name;  ///< name in config.json
    Spelling spelling = Spelling::single;
    std::string_view function;  ///< function of pointwise operators
};
[[nodiscard]] std::span<const Activation> activations();

[[nodiscard]] inline const Activation* find_activation(std::string_view name) {
    const auto found = std::ranges::find(activations(), name, &Activation::name);
    return found == activations().end() ? nullptr : &*found;
}

/// Layer norm, without bias (layer_weight) or without parameters (layer_plain); x / rms(x), computed in f32, times w
/// (rms), times 1 + w (rms_offset) or alone (rms_plain).
FTAX_CHOICE(NormKind, layer, layer_weight, layer_plain, rms, rms_offset, rms_plain)

/// Position of the norms of a layer: before attention and MLP, after their residual sums, before and after each, after
/// each before its sum (outputs), or once (shared) or twice (apart) before an attention and an MLP in parallel.
FTAX_CHOICE(NormPlace, before, after, around, outputs, shared, apart)

/// q, k and v by a layer each, by one layer (packed), or multi-head latent attention (DeepSeek), whose keys and values
/// expand from a cached low-rank vector; or one head of keys for all, which are the values as well (DeepSeek-V4).
FTAX_CHOICE(Projection, apart, packed, latent, shared)

/// `rotary_halves` are products of both halves instead of one rotated copy, `learned_from_mask` are numbered by a
/// running sum over the attention mask, `linear_bias` is ALiBi.
FTAX_CHOICE(Positions, none, rotary, rotary_halves, learned, learned_from_mask, linear_bias)

/// Norms of queries and keys: with one weight per channel of a head, one per channel of each head, or over all heads.
FTAX_CHOICE(QueryNorm, none, head, each_head, all_heads)

/// Gate on the attention's result: a sigmoid of as many channels, from a separate layer or packed with the queries, or
/// of one number per head.
FTAX_CHOICE(OutputGate, none, apart, packed, per_head)

/// Form of scaled dot product attention: one operator, or product, softmax and product.
FTAX_CHOICE(Scoring, fused, written_out)

/// Softmax over all experts, then the best; the best, then a softmax over them; the best, each with its sigmoid; or
/// sigmoid, or root of softplus, best groups, best experts of these.
FTAX_CHOICE(Routing, softmax_first, best_first, sigmoid, grouped, root_softplus)

/// Token mixer of a layer. All except attention and `linear`, a matrix in its place, keep a state of fixed size. Kimi's
/// delta attention (kda) decays each channel; kda_wide has gates of full rank.
FTAX_CHOICE(Mixer, none, attention, mamba, mamba2, delta, kda, kda_wide, conv, lightning, both, linear)
/// `both`: an MLP and experts that read the same hidden state, their results summed (Gemma 4).
enum class FeedForward : std::uint8_t { none, dense, experts, both };

struct HeadSizes {
    std::int64_t heads = 0;
    std::int64_t key_value_heads = 0;
    std::int64_t head_width = 0;
    std::int64_t value_width = 0;    ///< width of a head's values
    std::int64_t rotary_width = 0;   ///< leading part of a head that is rotated
    bool values_are_keys = false;    ///< values are what keys are before norm and rotation
    bool shares_key_values = false;  ///< reads those of the last layer of its type that has its own
    std::int64_t entries = 0;        ///< most compressed entries that a query sees beside its window
};

struct Layer {
    HeadSizes sizes{};
    Mixer mixer = Mixer::attention;
    FeedForward feed_forward = FeedForward::dense;
    std::int64_t window = 0;     ///< tokens its attention sees; 0: all
    bool rotated = true;         ///< whether its queries and keys have rotary positions
    bool hashed = false;         ///< experts by a table of token ids
    std::int64_t ratio = 0;      ///< tokens for which one compressed entry stays beyond the window; 0: none
    bool reuses_choice = false;  ///< attends to the tokens that the last layer with an indexer selected
    std::int64_t mlp_width = 0;
};

/// Structure of a family's network, independent of its size. Set by the rows of families.txt.
struct Structure {
    NormKind norm = NormKind::rms;
    NormPlace place = NormPlace::before;
    Projection projection = Projection::apart;
    Positions positions = Positions::rotary;
    Scoring scoring = Scoring::fused;
    Routing routing = Routing::softmax_first;
    QueryNorm query_norm = QueryNorm::none;
    OutputGate output_gate = OutputGate::none;
    bool gated = true;         ///< MLP: down(f(gate(x)) · up(x)), not down(f(up(x)))
    bool packed_gate = false;  ///< gate and up by one layer
    bool inner_norms = false;  ///< a norm before the last layer of attention and MLP each (BitNet)
    bool scaled_embedding = false;
    bool scaled_residual = false;  ///< each sublayer's result is multiplied by a number before its sum
    bool scaled_logits = false;
    bool embedding_norm = false;
    bool attention_sinks = false, window_sinks = false;  ///< a learned score per head in the softmax, with a window
    bool gemma4 = false;  ///< norms of values and before the router, experts beside an MLP, a factor for each layer
    bool expert_bias = false;
    bool clamped = false;          ///< an MLP's gate and factor are clamped (DeepSeek-V4)
    bool clamped_experts = false;  ///< GPT-OSS: (up + 1) · gate · sigmoid(1.702 gate), both clamped
    bool samples_all = false;      ///< its generation_config.json samples from all tokens, without top-k and top-p
    bool addmm_layers = false;     ///< linear layers flatten their input and call addmm (GPT-2's Conv1D)
    bool first_norm = true;        ///< false: the first layer's attention reads the normalised embedding as it is
    bool final_norm = true;
    bool causal = true;
};

/// Mixture of experts; count 0 means that every layer is dense.
struct Experts {
    std::int64_t count = 0;
    std::int64_t per_token = 0;
    std::int64_t width = 0;         ///< width of one expert's MLP
    std::int64_t latent_width = 0;  ///< width of what experts read and write; 0: that of the model
    std::int64_t shared_width = 0;  ///< width of the shared MLP for all tokens; 0: none
    std::int64_t groups = 1;
    std::int64_t cards = 1;         ///< cards over which the experts are split
    std::int64_t token_groups = 1;  ///< groups that send tokens to this card's experts
    bool shared_gate = false;
    bool normalized = true;  ///< the scores of a token's experts are divided by their sum
};

/// Tokens of a compressed entry where an indexer selects them. Source: DeepSeek-V4, inference/model.py (Compressor).
inline constexpr std::int64_t indexed_ratio = 4;

/// Ranks of multi-head latent attention, of an attention with shared keys and of an indexer.
struct Latent {
    std::int64_t query_rank = 0;  ///< 0: queries come straight from the hidden state
    std::int64_t key_value_rank = 0;
    std::int64_t plain_width = 0;   ///< width of the part of a query or key without positions
    std::int64_t rotary_width = 0;  ///< width of the part with positions
    std::int64_t index_heads = 0;   ///< heads of the indexer that selects tokens (DeepSeek-V3.2); 0: none
    std::int64_t index_width = 0;
    std::int64_t index_count = 0;  ///< tokens that it selects
    std::int64_t output_groups = 0, output_rank = 0;
};

/// Sizes of the mixers with a state of constant size.
struct StateSpace {
    std::int64_t inner = 0;      ///< channels
    std::int64_t heads = 0;      ///< heads with a state each
    std::int64_t key_heads = 0;  ///< heads of keys and queries, or groups of Mamba-2's B and C
    std::int64_t state = 0;      ///< numbers per channel; the width of a key
    std::int64_t kernel = 0;     ///< taps of the short convolution
    std::int64_t rank = 0;       ///< rank of Mamba's time step
    std::int64_t chunk = 0;      ///< tokens that prefill multiplies at once
    bool bias = false, conv_bias = false;
    bool wide = false;        ///< the state is in f32
    bool inner_norm = false;  ///< a gated norm (Mamba-2), norms of B, C and time step (Mamba)
};

/// A stack of transformer layers: structure and sizes.
struct TransformerConfig : HeadSizes {
    std::string model_type;
    std::string title;  ///< class prefix: "Llama"
    Structure structure;
    DType dtype = DType::f32;
    std::int64_t hidden = 0;
    std::int64_t mlp_width = 0;          ///< of layers that state none
    std::int64_t layer_input_width = 0;  ///< width of an embedding that each layer has of its own; 0: none
    std::int64_t layer_vocabulary = 0;   ///< its rows
    std::int64_t streams = 1;            ///< residual streams side by side (hyper-connections)
    std::int64_t balances = 0;           ///< iterations that balance their mixture
    std::int64_t vocabulary = 0;
    std::int64_t embedding_width = 0;  ///< hidden, unless projected
    std::int64_t positions = 0;        ///< longest context; 0: unlimited
    std::int64_t position_rows = 0;    ///< rows of a learned table
    std::int64_t token_types = 0;
    std::string activation;
    bool query_bias = false, output_bias = false, mlp_bias = false, head_bias = false;
    bool tied = false;                    ///< the output layer is the embedding table
    double score_cap = 0, logit_cap = 0;  ///< tanh soft caps; 0: none
    std::vector<Layer> layers;
    Experts experts;
    Latent latent;
    StateSpace space;
    CacheOptions cache;
    std::int64_t cards = 1;  ///< cards per layer; sizes are those of one card's part
};

}  // namespace ftax::config
