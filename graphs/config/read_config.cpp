#include "graphs/config/read_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "graphs/base/embedded.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/base/mapped.hpp"

namespace ftax::config {
namespace {

/// The name that the file has for a size which families call differently (field_names.txt), else the usual one.
std::string_view name_in(const JsonField& document, std::string_view usual) {
    static const std::vector<std::string_view> lines = words_of(embedded_text("graphs/config/field_names.txt"), '\n');
    const auto line =
        std::ranges::find(lines, usual, [](std::string_view names) { return split_at(names, ' ').first; });
    const std::vector<std::string_view> names = words_of(*line);
    const auto found = std::ranges::find_if(names, [&](auto name) { return document.find(name).has_value(); });
    return found == names.end() ? usual : *found;
}

std::int64_t read_known(const JsonField& document, std::string_view usual, std::optional<std::int64_t> fallback = {}) {
    return read_count(document, name_in(document, usual), fallback);
}

/// A truth value: the word itself or a field.
bool read_flag(const JsonField& document, std::string_view name) {
    if (name == "true" || name == "false") return name == "true";
    const auto field = document.find(name);
    return field && field->flag();
}

/// A size: the number itself or a field; `fallback` without a name or the field.
std::int64_t read_size(const JsonField& document, std::string_view name, std::int64_t fallback) {
    std::int64_t number = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), number).ec == std::errc{}) return number;
    return name.empty() ? fallback : read_count(document, name, fallback);
}

/// What has no meaning unless one number divides another.
std::int64_t quotient(const JsonField& document, std::string_view field, std::int64_t whole, std::int64_t parts,
                      std::string_view what) {
    if (whole % parts != 0) document[field].fail(fmt::format("{} is not a multiple of the {} {}", whole, parts, what));
    return whole / parts;
}

/// A field of rope_parameters, which may have a set for each type of layer, else of the document.
std::optional<JsonField> find_rotary(const JsonField& document, std::string_view name) {
    if (const auto rope = document.find("rope_parameters")) {
        for (const std::string_view type : {"", "full_attention", "sliding_attention"}) {
            const auto set = type.empty() ? rope : rope->find(type);
            if (auto found = set ? set->find("partial_rotary_factor") : std::nullopt) return found;
        }
    }
    return document.find(name);
}

/// The leading part of a head that is rotated: given as a share of it or as a width.
std::int64_t read_rotary_width(const JsonField& document, const Family& family, std::int64_t head_width) {
    const auto field = family.rotary_share == "1" ? std::nullopt : find_rotary(document, family.rotary_share);
    const double share = field ? field->positive() : 1;
    const double width = share > 1 ? share : std::floor(share * static_cast<double>(head_width));
    if (width < 2 || width > static_cast<double>(head_width) || std::fmod(width, 2) != 0)
        (field ? *field : document)
            .fail(fmt::format("rotary positions need an even part of each head of {}, not {}", head_width, width));
    return static_cast<std::int64_t>(width);
}

/// The types of layers that the file lists; Nemotron-H writes a character for each.
std::optional<std::vector<std::string>> find_layer_types(const JsonField& document) {
    const std::string_view name = name_in(document, "layer_types");
    const auto listed = document.find(name);
    if (!listed) return std::nullopt;
    if (name != "hybrid_override_pattern") return listed->texts();
    return mapped(listed->text(), [](char c) -> std::string {
        return c == '*' ? "attention" : c == '-' ? "mlp" : c == 'E' ? "moe" : "mamba";
    });
}

/// Throws Error{model} where a list has not one entry for each layer.
void check_length(const JsonField& document, std::string_view field, std::size_t entries, std::size_t layers) {
    // Lists may go on with the layers that draft tokens.
    const std::int64_t drafting = read_count(document, "num_nextn_predict_layers", 0);
    if (entries != layers && entries != layers + static_cast<std::size_t>(drafting))
        document[field].fail(fmt::format("has {} entries for {} layers", entries, layers));
}

/// The layers in a list that counts from `first`; none where the file has no list.
std::set<std::int64_t> listed_layers(const JsonField& document, std::string_view field, std::int64_t first) {
    std::set<std::int64_t> layers;
    if (const auto listed = document.find(field))
        for (const JsonField& entry : listed->elements()) layers.insert(entry.integer() - first);
    return layers;
}

/// What a layer of a type that the file lists mixes its tokens with. Returns false for an unknown type.
bool set_type(Layer& layer, std::string_view type, const Family& family, std::int64_t window) {
    constexpr std::array<std::string_view, 5> full{"full_attention", "attention", "global", "indexed_attention",
                                                   "deepseek_sparse_attention"};
    constexpr std::array<std::string_view, 5> windowed{"sliding_attention", "chunked_attention", "local",
                                                       "compressed_sparse_attention", "heavily_compressed_attention"};
    if (std::ranges::find(full, type) != full.end()) return true;
    if (std::ranges::find(windowed, type) != windowed.end()) {
        layer.window = window;
    } else if (type == "mlp" || (type == "moe" && !family.expert_width.empty())) {
        layer.mixer = Mixer::none;
        if (type == "moe") layer.feed_forward = FeedForward::experts;
    } else if (family.state_mixer != Mixer::none && type != "moe") {
        layer.mixer = family.state_mixer;
    } else {
        return false;
    }
    return true;
}

/// What each layer mixes its tokens with: by the file's list, else by the family's rule.
void read_mixers(const JsonField& document, const Family& family, std::vector<Layer>& layers) {
    const auto types = find_layer_types(document);
    if (types) check_length(document, name_in(document, "layer_types"), types->size(), layers.size());
    const bool windowed =
        !family.window.empty() && document.find(family.window) && read_flag(document, family.window_switch);
    const std::int64_t window = windowed ? read_count(document, family.window) : 0;
    const std::int64_t every = read_size(document, family.full_every, 0);
    const std::int64_t full_at = read_size(document, family.full_at, every - 1);
    const std::string_view list = name_in(document, "attn_layer_indices");
    const std::set<std::int64_t> listed = listed_layers(document, list, list == "full_attn_layers" ? 1 : 0);
    const std::int64_t first = read_size(document, family.window_first, 0);
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const auto place = static_cast<std::int64_t>(i);
        if (!types) {
            const bool full = (every > 0 && place % every == full_at) || listed.contains(place);
            if (place >= first && !full) layers[i].window = window;
            if (family.state_mixer != Mixer::none && !full) layers[i].mixer = family.state_mixer;
            continue;
        }
        if (!set_type(layers[i], (*types)[i], family, window))
            document[name_in(document, "layer_types")].fail(
                fmt::format("'{}' is not a layer type of {}", excerpt((*types)[i]), family.model_type));
    }
    for (Layer& layer : layers)
        if (family.lone_sublayers && layer.mixer != Mixer::none) layer.feed_forward = FeedForward::none;
    if (const auto rotated = document.find("no_rope_layers")) {  // 1: rotated, as transformers write it
        const std::vector<JsonField> entries = rotated->elements();
        for (std::size_t i = 0; i < std::min(entries.size(), layers.size()); ++i)
            layers[i].rotated = entries[i].not_negative() != 0;
    }
}

void read_experts(const JsonField& document, const Family& family, TransformerConfig& config) {
    if (family.expert_width.empty() || (config.structure.gemma4 && !read_flag(document, "enable_moe_block"))) return;
    Experts& experts = config.experts;
    const std::string_view count_name = name_in(document, "num_experts");
    // A dense model of the family omits the experts.
    if (family.first_dense == "0" || document.find(count_name)) experts.count = read_count(document, count_name);
    if (experts.count == 0) {
        config.mlp_width = read_size(document, family.shared_width, config.mlp_width);
        return;
    }
    const std::string_view per_token = name_in(document, "num_experts_per_tok");
    experts.per_token = read_count(document, per_token);
    if (experts.per_token > experts.count)
        document[per_token].fail(fmt::format("{} of {} experts", experts.per_token, experts.count));
    experts.width = read_count(document, family.expert_width);
    experts.latent_width = read_count(document, "moe_latent_size", 0);
    experts.shared_width = read_size(document, family.shared_width, 0);
    if (!family.shared_count.empty())
        experts.shared_width = experts.width * read_size(document, family.shared_count, 0);
    experts.shared_gate = family.shared_gate;
    experts.normalized = read_flag(document, family.normalized);
    experts.groups = std::max<std::int64_t>(1, read_known(document, "n_group", 1));
    quotient(document, count_name, experts.count, experts.groups, "groups (n_group)");
    config.mlp_width = read_size(document, family.dense_width, config.mlp_width);
    const std::int64_t step = std::max<std::int64_t>(1, read_size(document, family.expert_step, 1));
    const std::int64_t dense = read_size(document, family.first_dense, 0);
    // DeepSeek counts layers from 0, the others from 1.
    const std::int64_t at = read_size(document, family.expert_at, family.first_dense == "0" ? step - 1 : 0);
    const auto listed_types = document.find("mlp_layer_types");
    const std::vector<std::string> types = listed_types ? listed_types->texts() : std::vector<std::string>{};
    if (listed_types) check_length(document, "mlp_layer_types", types.size(), config.layers.size());
    const std::int64_t hashed = read_count(document, "num_hash_layers", 0);
    const std::set<std::int64_t> dense_layers = listed_layers(document, "mlp_only_layers", 0);
    for (std::size_t i = 0; i < config.layers.size(); ++i) {
        const auto place = static_cast<std::int64_t>(i);
        const bool sparse = listed_types ? types[i] != "dense" : place >= dense && place % step == at;
        config.layers[i].hashed = listed_types ? types[i] == "hash_moe" : place < hashed;
        if (sparse && !family.lone_sublayers && !dense_layers.contains(place))
            config.layers[i].feed_forward = family.structure.gemma4 ? FeedForward::both : FeedForward::experts;
    }
}

/// Sizes of the layers that are no attention. Source: transformers, configuration_*.py of these models.
void read_state_space(const JsonField& document, const Family& family, TransformerConfig& config) {
    StateSpace& space = config.space;
    const Mixer mixer = family.state_mixer;
    if (mixer == Mixer::none) return;
    const bool by_channel = mixer == Mixer::kda || mixer == Mixer::kda_wide;
    const std::string_view chunk = name_in(document, "mamba_chunk_size");  // if missing, as in transformers
    const std::int64_t usual_chunk = mixer == Mixer::delta || by_channel ? 64 : 256;
    space.chunk = document.find(chunk) ? read_count(document, chunk) : usual_chunk;
    space.inner_norm = family.state_norm;
    if (mixer == Mixer::lightning) return;
    space.kernel = read_known(document, "mamba_d_conv");
    const auto type = document.find(name_in(document, "mamba_ssm_dtype"));
    space.wide = type && type->text() == "float32";
    space.bias = read_flag(document, name_in(document, mixer == Mixer::conv ? "mamba_conv_bias" : "mamba_proj_bias"));
    space.conv_bias = mixer != Mixer::delta && read_flag(document, name_in(document, "mamba_conv_bias"));
    if (mixer == Mixer::conv) {
        space.inner = config.hidden;
        return;
    }
    space.state = read_known(document, by_channel ? "mamba_d_head" : "mamba_d_state");
    if (mixer == Mixer::mamba) {
        const std::int64_t expand = read_count(document, "mamba_expand", 0);
        space.inner = expand > 0 ? expand * config.hidden : read_known(document, "intermediate_size");
        constexpr std::int64_t channels_per_rank = 16;
        space.rank = read_known(document, "mamba_dt_rank", (config.hidden + channels_per_rank - 1) / channels_per_rank);
        return;
    }
    space.heads = read_known(document, "mamba_n_heads");
    space.key_heads = read_known(document, by_channel ? "mamba_n_heads" : "mamba_n_groups");
    space.inner = space.heads * read_known(document, "mamba_d_head");
}

void read_latent(const JsonField& document, TransformerConfig& config) {
    Latent& latent = config.latent;
    latent = {.query_rank = read_count(document, "q_lora_rank", 0),
              .key_value_rank = read_count(document, "kv_lora_rank"),
              .plain_width = read_count(document, "qk_nope_head_dim"),
              .rotary_width = read_count(document, "qk_rope_head_dim")};
    latent.index_heads = read_count(document, "index_n_heads", 0);
    if (latent.index_heads > 0) latent.index_width = read_count(document, "index_head_dim");
    latent.index_count = read_count(document, "index_topk", 0);
    const auto types = document.find("indexer_types");
    if (types) check_length(document, "indexer_types", types->texts().size(), config.layers.size());
    for (std::size_t i = 0; types && i < config.layers.size(); ++i)
        config.layers[i].reuses_choice = types->texts()[i] == "shared";
    config.value_width = read_count(document, "v_head_dim");
    config.head_width = latent.plain_width + latent.rotary_width;
    config.key_value_heads = config.heads;
    config.rotary_width = latent.rotary_width;
}

/// Source: DeepseekV4Config.
void read_compression(const JsonField& document, TransformerConfig& config) {
    Latent& latent = config.latent;
    latent.query_rank = read_count(document, "q_lora_rank");
    latent.output_groups = read_count(document, "o_groups");
    latent.output_rank = read_count(document, "o_lora_rank");
    latent.index_heads = read_count(document, "index_n_heads");
    latent.index_width = read_count(document, "index_head_dim");
    latent.index_count = read_count(document, "index_topk");
    if (latent.index_width < config.rotary_width) document["index_head_dim"].fail("is less than qk_rope_head_dim");
    quotient(document, "num_attention_heads", config.heads, latent.output_groups, "groups (o_groups)");
    config.streams = read_count(document, "hc_mult");
    config.balances = read_count(document, "hc_sinkhorn_iters", {}, 1000);
    const auto types = document.find("compress_ratios") ? std::nullopt : find_layer_types(document);
    const std::vector<JsonField> ratios = document[types ? "layer_types" : "compress_ratios"].elements();
    check_length(document, types ? "layer_types" : "compress_ratios", ratios.size(), config.layers.size());
    for (std::size_t i = 0; i < config.layers.size(); ++i) {
        Layer& layer = config.layers[i];
        layer.ratio = types ? read_count(document["compress_rates"], (*types)[i], 0) : ratios[i].integer();
        if (layer.ratio > 0) layer.sizes.entries = layer.ratio == indexed_ratio ? latent.index_count : config.positions;
    }
}

/// Heads of each layer: the file's usual ones, those of layers with or without a window, and what `per_layer_config`
/// says of single layers (transformers from 5.20 on).
void read_head_sizes(const JsonField& document, const Family& family, TransformerConfig& config) {
    const auto overrides = document.find("per_layer_config");
    const auto own = std::ssize(config.layers) - read_count(document, "num_kv_shared_layers", 0);
    for (std::int64_t i = 0; i < std::ssize(config.layers); ++i) {
        Layer& layer = config.layers[static_cast<std::size_t>(i)];
        HeadSizes& sizes = layer.sizes = config;
        const auto resize = [&](const JsonField& from, const std::array<std::string_view, 3>& names) {
            sizes.heads = read_size(from, names[0], sizes.heads);
            sizes.key_value_heads = read_size(from, names[1], sizes.key_value_heads);
            sizes.head_width = read_size(from, names[2], sizes.head_width);
        };
        if (layer.window > 0) {
            resize(document, {"num_sliding_attention_heads", "swa_num_key_value_heads", ""});
        } else {
            resize(document, {"", "num_global_key_value_heads", "global_head_dim"});
            sizes.values_are_keys = read_flag(document, "attention_k_eq_v");
        }
        const auto single = overrides ? overrides->find(std::to_string(i)) : std::nullopt;
        if (single) resize(*single, {"num_attention_heads", "num_key_value_heads", "head_dim"});
        quotient(document, "num_attention_heads", sizes.heads, sizes.key_value_heads, "heads of keys");
        layer.mlp_width = i >= own && read_flag(document, "use_double_wide_mlp") ? 2 * config.mlp_width : 0;
        sizes.shares_key_values = i >= own;
        if (sizes.head_width == config.head_width) continue;
        sizes.value_width = sizes.head_width;
        if (config.rotary_width > 0) sizes.rotary_width = read_rotary_width(document, family, sizes.head_width);
    }
}

/// Layers that a search left without attention or MLP, with a matrix in place of attention or with fewer heads of keys.
/// Source: modeling_decilm.py of nvidia/Llama-3_3-Nemotron-Super-49B-v1; nemotron_nas.py of vLLM.
void read_blocks(const JsonField& document, TransformerConfig& config) {
    const auto listed = document.find("block_configs");
    const std::vector<JsonField> blocks = listed ? listed->elements() : std::vector<JsonField>{};
    if (listed) check_length(document, "block_configs", blocks.size(), config.layers.size());
    for (std::size_t i = 0; i < std::min(blocks.size(), config.layers.size()); ++i) {
        Layer& layer = config.layers[i];
        const JsonField attention = blocks[i]["attention"], mlp = blocks[i]["ffn"];
        for (const std::string_view other : {"mamba", "llama4", "window_length", "moe"})
            if (attention.find(other) || mlp.find(other)) blocks[i].fail(fmt::format("{} is not supported", other));
        if (read_flag(mlp, "replace_with_linear")) mlp["replace_with_linear"].fail("is not supported");
        const bool none = read_flag(attention, "no_op"), linear = read_flag(attention, "replace_with_linear");
        layer.mixer = none ? Mixer::none : linear ? Mixer::linear : Mixer::attention;
        if (layer.mixer == Mixer::attention)
            layer.sizes.key_value_heads = quotient(attention, "n_heads_in_group", config.heads,
                                                   read_count(attention, "n_heads_in_group"), "heads of a group");
        layer.feed_forward = read_flag(mlp, "no_op") ? FeedForward::none : FeedForward::dense;
        if (layer.feed_forward == FeedForward::none) continue;
        constexpr std::int64_t step = 256;
        const double width = 2 * mlp["ffn_mult"].positive() * static_cast<double>(config.hidden) / 3;
        layer.mlp_width = (static_cast<std::int64_t>(width) + step - 1) / step * step;
    }
}

/// What single fields of a family change in the structure of its table row.
void read_variants(const JsonField& document, const Family& family, TransformerConfig& config) {
    Structure& structure = config.structure;
    const auto off = [&](std::string_view field) {
        const auto found = document.find(field);
        return found && !found->flag();
    };
    const auto on = [&](std::string_view field) { return read_flag(document, field); };
    if (family.model_type == "opt") {
        if (off("do_layer_norm_before")) structure.place = NormPlace::after;
        config.embedding_width = read_count(document, "word_embed_proj_dim", config.hidden);
    } else if (family.model_type == "gpt_neox") {
        if (off("use_parallel_residual")) structure.place = NormPlace::before;
    } else if (family.model_type == "falcon") {
        if (on("new_decoder_architecture")) {
            structure.place =
                read_count(document, "num_ln_in_parallel_attn", 2) == 2 ? NormPlace::apart : NormPlace::shared;
        } else {
            if (off("parallel_attn")) structure.place = NormPlace::before;
            config.key_value_heads = off("multi_query") ? config.heads : 1;
        }
        if (on("alibi")) structure.positions = Positions::linear_bias;
    }
    if (structure.positions == Positions::rotary_halves && off("rope_interleave"))
        structure.positions = Positions::rotary;
    if (on("block_auto_adjust_ff_dim")) {  // Lfm2MLP
        const JsonField multiple = document["block_multiple_of"];
        const auto factor = document.find("block_ffn_dim_multiplier");
        const std::int64_t two_thirds = 2 * config.mlp_width / 3;
        const double width = std::floor(static_cast<double>(two_thirds) * (factor ? factor->positive() : 1));
        const std::int64_t step = multiple.positive_count();
        config.mlp_width = (static_cast<std::int64_t>(width) + step - 1) / step * step;
    }
    if (family.one_key_head != "false") config.key_value_heads = on(family.one_key_head) ? 1 : config.heads;
    if (!read_flag(document, family.query_norm_switch)) structure.query_norm = QueryNorm::none;
    if (family.model_type == "stablelm" && on("use_parallel_residual")) structure.place = NormPlace::shared;
    if (structure.place == NormPlace::after) structure.final_norm = false;
}

std::string read_activation(const JsonField& document) {
    const JsonField field = document[name_in(document, "hidden_activation")];
    std::string name = field.text();
    if (find_activation(name)) return name;
    field.fail(fmt::format("unknown activation '{}'; known: {}", excerpt(name),
                           fmt::join(mapped(activations(), &Activation::name), ", ")));
}

}  // namespace

const Family* find_family(std::string_view model_type) {
    const auto all = families();
    const auto found = std::ranges::find(all, model_type, &Family::model_type);
    return found == all.end() ? nullptr : &*found;
}

std::int64_t read_count(const JsonField& document, std::string_view field, std::optional<std::int64_t> fallback,
                        std::int64_t most) {
    const auto found = document.find(field);
    if (!found && fallback) return *fallback;
    const JsonField value = document[field];
    // 0 says "none" wherever a size may be left out.
    if (fallback && value.not_negative() == 0) return 0;
    const int count = value.positive_count();
    if (count > most) value.fail(fmt::format("{} is more than {}", count, most), ErrorCode::limit);
    return count;
}

std::int64_t read_layers(const JsonField& document, std::string_view field) {
    return read_count(document, field, {}, 10'000);
}

DType read_dtype(const JsonField& document) {
    const auto field = document.find(document.find("dtype") ? "dtype" : "torch_dtype");
    const std::string text = field ? field->text() : std::string{};
    return text == "bfloat16" ? DType::bf16 : text == "float16" ? DType::f16 : DType::f32;
}

TransformerConfig read_transformer(const JsonField& document, const Family& family) {
    TransformerConfig config;
    config.model_type = family.model_type;
    config.title = family.title;
    config.structure = family.structure;
    config.structure.scaled_embedding = read_flag(document, family.scaled_embedding);
    config.dtype = read_dtype(document);
    const std::string_view hidden = name_in(document, "hidden_size");
    const std::string_view heads = family.heads.empty() ? name_in(document, "num_attention_heads") : family.heads;
    const std::string_view key_value_heads = name_in(document, "num_key_value_heads");
    config.hidden = read_count(document, hidden);
    const std::string_view layers = family.layers.empty() ? name_in(document, "num_hidden_layers") : family.layers;
    const auto types = document.find(layers) ? std::nullopt : find_layer_types(document);
    config.layers.resize(types ? types->size() : static_cast<std::size_t>(read_layers(document, layers)));
    config.heads = read_count(document, heads);
    config.key_value_heads = read_count(document, key_value_heads, config.heads);
    config.head_width = read_known(document, "head_dim", 0);
    config.embedding_width = config.hidden;
    const std::string_view mlp = family.mlp_width.empty() ? name_in(document, "intermediate_size") : family.mlp_width;
    config.mlp_width = read_count(document, mlp, family.wide_mlp ? 4 * config.hidden : 0);
    read_variants(document, family, config);
    const bool latent = config.structure.projection == Projection::latent;
    if (latent) read_latent(document, config);
    if (!latent) config.value_width = read_count(document, "v_head_dim", 0);
    if (config.head_width == 0)
        config.head_width = quotient(document, hidden, config.hidden, config.heads, fmt::format("heads ({})", heads));
    if (config.value_width == 0) config.value_width = config.head_width;
    if (config.key_value_heads == 0) document[key_value_heads].fail("must be a positive number");
    quotient(document, heads, config.heads, config.key_value_heads, fmt::format("heads of keys ({})", key_value_heads));
    const Positions positions = config.structure.positions;
    if (!latent && (positions == Positions::rotary || positions == Positions::rotary_halves))
        config.rotary_width = read_rotary_width(document, family, config.head_width);
    const bool text = family.form != Form::vision;
    if (text) config.vocabulary = read_known(document, "vocab_size");
    const std::string_view position_name =
        family.form == Form::speech ? "max_target_positions" : name_in(document, "max_position_embeddings");
    if (text) config.positions = read_count(document, position_name, 0);
    if (positions == Positions::learned || positions == Positions::learned_from_mask) {
        const std::int64_t offset = family.position_offset;
        if (text && config.positions == 0) config.positions = read_count(document, position_name);
        config.position_rows = config.positions + std::max<std::int64_t>(0, offset);
        config.positions += std::min<std::int64_t>(0, offset);
    }
    config.token_types = read_count(document, "type_vocab_size", 0);
    config.activation = read_activation(document);
    config.query_bias = read_flag(document, family.query_bias);
    config.output_bias = read_flag(document, family.output_bias);
    config.mlp_bias = read_flag(document, family.mlp_bias);
    config.head_bias = read_flag(document, family.head_bias);
    config.tied = read_flag(document, "tie_word_embeddings");
    if (const auto cap = document.find("attn_logit_softcapping")) config.score_cap = cap->positive();
    if (const auto cap = document.find("final_logit_softcapping")) config.logit_cap = cap->positive();
    read_mixers(document, family, config.layers);
    read_head_sizes(document, family, config);
    if (config.structure.projection == Projection::shared) read_compression(document, config);
    config.layer_input_width = read_count(document, "hidden_size_per_layer_input", 0);
    if (config.layer_input_width > 0) config.layer_vocabulary = read_count(document, "vocab_size_per_layer_input");
    read_state_space(document, family, config);
    read_experts(document, family, config);
    read_blocks(document, config);
    for (Layer& layer : config.layers) {
        if (layer.mlp_width == 0) layer.mlp_width = config.mlp_width;
        const bool dense = layer.feed_forward == FeedForward::dense || layer.feed_forward == FeedForward::both;
        // Says what is wrong with the field.
        if (dense && layer.mlp_width == 0) static_cast<void>(read_count(document, mlp));
    }
    return config;
}

}  // namespace ftax::config
