#include "graphs/config/read_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "graphs/config/activations.hpp"
#include "src/core/excerpt.hpp"

namespace ftax::config {
namespace {

bool read_flag(const JsonField& document, const Flag& flag) {
    const auto field = flag.field.empty() ? std::nullopt : document.find(flag.field);
    return field ? field->flag() : flag.fallback;
}

/// A size whose name a family may do without.
std::int64_t read_size(const JsonField& document, std::string_view field, std::int64_t fallback) {
    return field.empty() ? fallback : read_count(document, field, fallback);
}

/// What has no meaning unless one number divides another.
std::int64_t quotient(const JsonField& document, std::string_view field, std::int64_t whole, std::int64_t parts,
                      std::string_view what) {
    if (whole % parts != 0) document[field].fail(fmt::format("{} is not a multiple of the {} {}", whole, parts, what));
    return whole / parts;
}

/// The leading part of a head that is rotated: given as a share of it or as a width.
std::int64_t read_rotary_width(const JsonField& document, const Family& family, std::int64_t head_width) {
    double share = family.rotary_share_fallback;
    std::optional<JsonField> field;
    if (!family.rotary_share.empty()) {
        const auto rope = document.find("rope_parameters");
        field = document.find(family.rotary_share);
        if (!field && rope) field = rope->find("partial_rotary_factor");
        if (field) share = field->positive();
    }
    const double width = share > 1 ? share : std::floor(share * static_cast<double>(head_width));
    if (width < 2 || width > static_cast<double>(head_width) || std::fmod(width, 2) != 0) {
        (field ? *field : document)
            .fail(fmt::format("rotary positions need an even part of each head of {}, not {}", head_width, width));
    }
    return static_cast<std::int64_t>(width);
}

std::vector<std::int64_t> read_windows(const JsonField& document, const Family& family, std::int64_t layers) {
    std::vector<std::int64_t> windows(static_cast<std::size_t>(layers), 0);
    const Windows& names = family.windows;
    if (names.field.empty() || !document.find(names.field)) return windows;
    if (!names.switched_by.empty() && !read_flag(document, {names.switched_by, false})) return windows;
    const std::int64_t window = read_count(document, names.field);
    if (const auto listed = document.find("layer_types")) {
        const std::vector<std::string> types = listed->texts();
        if (types.size() != windows.size()) {
            listed->fail(fmt::format("has {} entries for {} layers", types.size(), layers));
        }
        for (std::size_t i = 0; i < types.size(); ++i) windows[i] = types[i] == "full_attention" ? 0 : window;
        return windows;
    }
    const std::int64_t every = read_size(document, names.full_every, names.full_every_fallback);
    const std::int64_t first = read_size(document, names.first, 0);
    for (std::int64_t i = first; i < layers; ++i) {
        if (every == 0 || (i + 1) % every != 0) windows[static_cast<std::size_t>(i)] = window;
    }
    return windows;
}

Experts read_experts(const JsonField& document, const Family& family, TransformerConfig& config) {
    const ExpertNames& names = family.experts;
    Experts experts;
    if (names.count.empty()) return experts;
    // A dense model of the family says so by leaving the experts out.
    if (names.first_dense.empty() || document.find(names.count)) experts.count = read_count(document, names.count);
    if (experts.count == 0) return experts;
    constexpr std::string_view per_token = "num_experts_per_tok";
    experts.per_token = read_count(document, per_token);
    if (experts.per_token > experts.count) {
        document[per_token].fail(fmt::format("{} of {} experts", experts.per_token, experts.count));
    }
    experts.width = read_count(document, names.width);
    experts.shared_width = read_size(document, names.shared_width, 0);
    if (!names.shared_count.empty()) {
        experts.shared_width = experts.width * read_count(document, names.shared_count, 0);
    }
    experts.shared_gate = names.shared_gate;
    experts.normalized = read_flag(document, names.normalized);
    experts.groups = std::max<std::int64_t>(1, read_count(document, "n_group", 1));
    quotient(document, names.count, experts.count, experts.groups, "groups (n_group)");
    if (!names.dense_width.empty()) config.mlp_width = read_count(document, names.dense_width, config.mlp_width);
    const std::int64_t step = std::max<std::int64_t>(1, read_size(document, names.step, 1));
    const std::int64_t dense = read_size(document, names.first_dense, 0);
    for (std::int64_t i = 0; i < config.layers; ++i) {
        // DeepSeek counts layers from 0, the others from 1.
        experts.layers.push_back(i >= dense && (names.first_dense.empty() ? i + 1 : i) % step == 0);
    }
    if (const auto listed = document.find("mlp_only_layers")) {
        for (const JsonField& entry : listed->elements()) {
            const double layer = entry.not_negative();
            if (layer < static_cast<double>(config.layers)) experts.layers[static_cast<std::size_t>(layer)] = false;
        }
    }
    return experts;
}

Latent read_latent(const JsonField& document) {
    return {.query_rank = read_count(document, "q_lora_rank", 0),
            .key_value_rank = read_count(document, "kv_lora_rank"),
            .plain_width = read_count(document, "qk_nope_head_dim"),
            .rotary_width = read_count(document, "qk_rope_head_dim"),
            .value_width = read_count(document, "v_head_dim")};
}

/// What single fields of a family change in the structure of its table row.
void read_variants(const JsonField& document, const Family& family, TransformerConfig& config) {
    Structure& structure = config.structure;
    const auto off = [&](std::string_view field) { return !read_flag(document, {field, true}); };
    const auto on = [&](std::string_view field) { return read_flag(document, {field, false}); };
    if (family.model_type == "opt") {
        if (off("do_layer_norm_before")) structure.place = NormPlace::after;
        config.embedding_width = read_count(document, "word_embed_proj_dim", config.hidden);
    } else if (family.model_type == "gpt_neox") {
        if (off("use_parallel_residual")) structure.place = NormPlace::before;
    } else if (family.model_type == "deepseek_v3") {
        if (off("rope_interleave")) structure.positions = Positions::rotary;
    } else if (family.model_type == "falcon") {
        const bool grouped = on("new_decoder_architecture");
        if (grouped) {
            structure.place =
                read_count(document, "num_ln_in_parallel_attn", 2) == 2 ? NormPlace::apart : NormPlace::shared;
        } else {
            if (off("parallel_attn")) structure.place = NormPlace::before;
            config.key_value_heads = off("multi_query") ? config.heads : 1;
        }
        if (on("alibi")) structure.positions = Positions::linear_bias;
    }
    config.final_norm = structure.place != NormPlace::after;
}

std::string read_activation(const JsonField& document, const Family& family) {
    std::optional<JsonField> field;
    for (const std::string_view name : {family.names.activation, std::string_view("hidden_act")}) {
        if (!field && !name.empty()) field = document.find(name);
    }
    const std::string name = field ? field->text() : std::string(family.activation);
    if (find_activation(name)) return name;
    std::vector<std::string_view> known;
    for (const Activation& activation : activations) known.push_back(activation.name);
    field->fail(
        fmt::format("'{}' is no activation that ftax knows; known are {}", excerpt(name), fmt::join(known, ", ")));
}

}  // namespace

const Family* find_family(std::string_view model_type) {
    const auto all = families();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Family& f) { return f.model_type == model_type; });
    return found == all.end() ? nullptr : &*found;
}

std::int64_t read_count(const JsonField& document, std::string_view field, std::optional<std::int64_t> fallback) {
    const auto found = document.find(field);
    if (!found && fallback) return *fallback;
    const JsonField value = document[field];
    // 0 says "none" wherever a size may be left out.
    if (fallback && value.not_negative() == 0) return 0;
    // Products of any two sizes stay far from the end of 64 bits; those of more are checked where they are made.
    constexpr int most = 1 << 26;
    const int count = value.positive_count();
    if (count > most) value.fail(fmt::format("{} is more than {}", count, most));
    return count;
}

std::int64_t read_layers(const JsonField& document, std::string_view field) {
    constexpr std::int64_t most = 10'000;
    const std::int64_t layers = read_count(document, field);
    if (layers > most) throw Error(ErrorCode::limit, fmt::format("{}: {} layers, more than {}", field, layers, most));
    return layers;
}

DType read_dtype(const JsonField& document) {
    for (const std::string_view name : {"dtype", "torch_dtype"}) {
        const auto field = document.find(name);
        if (!field) continue;
        const std::string text = field->text();
        if (text == "bfloat16") return DType::bf16;
        if (text == "float16") return DType::f16;
        return DType::f32;
    }
    return DType::f32;
}

TransformerConfig read_transformer(const JsonField& document, const Family& family) {
    const FieldNames& names = family.names;
    TransformerConfig config;
    config.model_type = family.model_type;
    config.title = family.title;
    config.structure = family.structure;
    config.dtype = read_dtype(document);
    const auto required = [&](std::string_view field, std::int64_t fallback) {
        return fallback > 0 ? read_count(document, field, fallback) : read_count(document, field);
    };
    config.hidden = read_count(document, names.hidden);
    config.layers = read_layers(document, names.layers);
    config.heads = required(names.heads, family.fallbacks.heads);
    config.key_value_heads =
        read_size(document, names.key_value_heads,
                  family.fallbacks.key_value_heads > 0 ? family.fallbacks.key_value_heads : config.heads);
    config.head_width = read_count(document, "head_dim", family.fallbacks.head_width);
    config.embedding_width = config.hidden;
    read_variants(document, family, config);
    if (config.structure.projection == Projection::latent) {
        config.latent = read_latent(document);
        config.head_width = config.latent.plain_width + config.latent.rotary_width;
        config.key_value_heads = config.heads;
    }
    if (config.head_width == 0) {
        config.head_width =
            quotient(document, names.hidden, config.hidden, config.heads, fmt::format("heads ({})", names.heads));
    }
    if (config.key_value_heads == 0) document[names.key_value_heads].fail("must be a positive number");
    quotient(document, names.heads, config.heads, config.key_value_heads,
             fmt::format("heads of keys ({})", names.key_value_heads));
    const Positions positions = config.structure.positions;
    if (positions == Positions::rotary || positions == Positions::rotary_halves) {
        config.rotary_width = config.structure.projection == Projection::latent
                                  ? config.latent.rotary_width
                                  : read_rotary_width(document, family, config.head_width);
    }
    const bool text = family.form != Form::vision;
    if (text) config.vocabulary = required("vocab_size", family.fallbacks.vocabulary);
    if (text) config.positions = read_size(document, names.positions, 0);
    if (positions == Positions::learned || positions == Positions::learned_from_mask) {
        const std::int64_t offset = family.position_offset;
        if (text && config.positions == 0) config.positions = read_count(document, names.positions);
        config.position_rows = config.positions + std::max<std::int64_t>(0, offset);
        config.positions += std::min<std::int64_t>(0, offset);
    }
    config.token_types = family.token_types > 0 ? read_count(document, "type_vocab_size", family.token_types) : 0;
    const bool four_fold =
        names.mlp_width.empty() || names.mlp_width == "n_inner" || names.mlp_width == "ffn_hidden_size";
    config.mlp_width =
        four_fold ? read_size(document, names.mlp_width, 4 * config.hidden) : read_count(document, names.mlp_width);
    config.activation = read_activation(document, family);
    config.query_bias = read_flag(document, family.query_bias);
    config.output_bias = read_flag(document, family.output_bias);
    config.mlp_bias = read_flag(document, family.mlp_bias);
    config.head_bias = family.head_bias;
    config.tied = read_flag(document, family.tied);
    if (const auto cap = document.find("attn_logit_softcapping")) config.score_cap = cap->positive();
    if (const auto cap = document.find("final_logit_softcapping")) config.logit_cap = cap->positive();
    config.windows = read_windows(document, family, config.layers);
    config.experts = read_experts(document, family, config);
    return config;
}

}  // namespace ftax::config
