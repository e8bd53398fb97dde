#include <fmt/format.h>

#include <set>
#include <tuple>
#include <utility>

#include "graphs/config/transformer.hpp"
#include "graphs/ir/operands.hpp"

namespace ftax::config {

/// Cosines and sines of the new tokens' positions, once for all layers with as many channels (LlamaRotaryEmbedding).
void Transformer::prepare_rotation() {
    const Positions positions = config_.structure.positions;
    if (positions != Positions::rotary && positions != Positions::rotary_halves) return;
    const Network::Module module(net_, "rotary_emb", config_.title + "RotaryEmbedding");
    const TensorId column = net_.block("rotation", {}, {})[0];
    std::set<std::int64_t> widths{config_.rotary_width};
    for (const Layer& layer : config_.layers) widths.insert(layer.sizes.rotary_width);
    const bool whole = positions == Positions::rotary;
    for (const std::int64_t width : widths) {
        ShapeBindings numbers{{"half", width / 2}, {"width", whole ? width : width / 2}, {"whole", whole}};
        numbers.insert({"halves", !whole});
        const auto waves = net_.block("waves", numbers, {column});
        rotations_[width] = {waves[0], waves[1]};
    }
}

/// The causal mask of models that add one to their scores, and of a cache that holds more tokens: [1, 1, length, keys].
void Transformer::prepare_mask() {
    const bool fixed = config_.cache.kind == CacheKind::fixed && past_ != Expression{};
    if (config_.structure.scoring == Scoring::fused && !fixed) return;
    mask_ = net_.block("causal_mask", {{"fixed", fixed}, {"growing", !fixed}}, {})[0];
}

/// Rotates all of the last axis. Source: apply_rotary_pos_emb of Llama; GptOss and DeepSeek multiply both halves.
TensorId Transformer::rotate_all(TensorId x, std::int64_t width) {
    if (rotations_.empty()) return x;
    const auto [cosines, sines] = rotations_.at(width);
    const bool halves = config_.structure.positions == Positions::rotary_halves;
    const ShapeBindings numbers{{"width", width}, {"half", width / 2}};
    return net_.block(halves ? "rotated_halves" : "rotated", numbers, {x, cosines, sines})[0];
}

TensorId Transformer::rotate(TensorId x, const HeadSizes& sizes) {
    const std::size_t last = net_.shape(x).size() - 1;
    if (sizes.rotary_width == sizes.head_width) return rotate_all(x, sizes.rotary_width);
    const TensorId rotated = net_.part(x, last, net_.number(sizes.rotary_width));
    const TensorId rest = net_.part(x, last, net_.number(sizes.head_width - sizes.rotary_width));
    return net_.concat({rotate_all(rotated, sizes.rotary_width), rest}, last);
}

/// [batch, tokens, heads · width] as [batch, heads, tokens, width].
TensorId Transformer::heads_of(TensorId x, std::int64_t heads, std::int64_t width) {
    return net_.swap(net_.view(x, {batch_, net_.shape(x)[1], net_.number(heads), net_.number(width)}), 1, 2);
}

/// Norms of queries or keys as [batch, heads, tokens, width].
TensorId Transformer::norm_heads(std::string_view name, TensorId x) {
    const QueryNorm kind = config_.structure.query_norm;
    if (kind == QueryNorm::head) return norm(name, x);
    if (kind == QueryNorm::none) return x;
    const Shape apart = net_.shape(x);
    const Expression width = net_.pool().multiply(apart[1], apart[3]);
    if (kind == QueryNorm::all_heads) {
        const TensorId normed = norm(name, net_.view(net_.swap(x, 1, 2), {apart[0], apart[2], width}));
        return net_.swap(net_.view(normed, {apart[0], apart[2], apart[1], apart[3]}), 1, 2);
    }
    const NormKind plain =
        config_.structure.norm <= NormKind::layer_plain ? NormKind::layer_plain : NormKind::rms_plain;
    return net_.map("mul", {net_.norm(name, x, plain), net_.parameter(std::string(name) + ".weight", {width})});
}

Transformer::Heads Transformer::project(std::size_t index, TensorId x, TensorId memory) {
    const HeadSizes& sizes = config_.layers[index].sizes;
    const std::int64_t width = sizes.head_width;
    const std::int64_t query_width = sizes.heads * width;
    const std::int64_t key_width = sizes.key_value_heads * width;
    const std::int64_t value_width = sizes.key_value_heads * sizes.value_width;
    std::pair<TensorId, TensorId>& latest = key_values_[config_.layers[index].window > 0];
    const bool shares = sizes.shares_key_values && latest.first != no_tensor;
    const bool packed = config_.structure.projection == Projection::packed;
    const bool with_gate = config_.structure.output_gate == OutputGate::packed && !packed;
    const TensorId source = memory == no_tensor ? x : memory;
    const std::int64_t all_width = query_width + key_width + value_width;
    const TensorId all = packed ? linear("qkv_proj", x, all_width, config_.query_bias) : no_tensor;
    const auto projected = [&](std::string_view name, TensorId from, std::int64_t to) {
        return packed ? net_.part(all, 2, net_.number(to)) : linear(name, from, to, config_.query_bias);
    };
    Heads heads{};
    TensorId query = projected("q_proj", x, with_gate ? 2 * query_width : query_width);
    if (with_gate) {
        heads.gate = net_.part(query, 2, net_.number(query_width));
        query = net_.part(query, 2, net_.number(query_width));
    }
    heads.query = heads_of(query, sizes.heads, width);
    if (!shares) {
        heads.key = heads_of(projected("k_proj", source, key_width), sizes.key_value_heads, width);
        heads.value = sizes.values_are_keys ? heads.key
                                            : heads_of(projected("v_proj", source, value_width), sizes.key_value_heads,
                                                       sizes.value_width);
    }
    const bool rotated = config_.layers[index].rotated && !rotations_.empty();
    heads.query = norm_heads("q_norm", heads.query);
    if (!shares) heads.key = norm_heads("k_norm", heads.key);
    if (rotated) heads.query = rotate(heads.query, sizes);
    if (rotated && !shares) heads.key = rotate(heads.key, sizes);
    if (shares) std::tie(heads.key, heads.value) = latest;
    if (shares || memory != no_tensor) return heads;
    if (config_.structure.gemma4) heads.value = net_.norm("v_norm", heads.value, NormKind::rms_plain);
    latest = {heads.key = cached(index, "key", heads.key), heads.value = cached(index, "value", heads.value)};
    return heads;
}

/// The mask of the tokens that an indexer picks for each query: the best sums of scores (DeepseekV32Indexer).
void Transformer::choose_tokens(std::size_t index, TensorId x, TensorId query_rank) {
    const Network::Module module(net_, "indexer", config_.title + "Indexer");
    const std::int64_t heads = config_.latent.index_heads;
    const std::int64_t width = config_.latent.index_width;
    const ShapeBindings numbers = numbers_of_shared(heads, width);
    if (config_.layers[index].ratio > 0) {
        const TensorId entries = cached(index, "index_key", compress(index, "indexer", x, width));
        const auto [cosines, sines] = rotations_.at(config_.rotary_width);
        chosen_ = net_.block("chosen_entries", numbers, {x, query_rank, entries, cosines, sines})[0];
        return;
    }
    const std::vector<TensorId> projected = net_.block("index_heads", numbers, {x, query_rank});
    const TensorId keys = cached(index, "index_key", projected[1]);
    chosen_ = net_.block("index_scores", numbers, {x, projected[0], keys})[0];
}

/// Keys and values of all tokens expand from the cached latent vectors. Source: DeepseekV3Attention.
Transformer::Heads Transformer::project_latent(std::size_t index, TensorId x) {
    const Latent& ranks = config_.latent;
    const std::int64_t head = ranks.plain_width + ranks.rotary_width;
    TensorId rank = x;
    if (ranks.query_rank > 0) {
        rank = norm("q_a_layernorm", net_.linear("q_a_proj", x, ranks.query_rank, config_.query_bias));
        if (ranks.index_heads > 0 && !config_.layers[index].reuses_choice) choose_tokens(index, x, rank);
    }
    rank = net_.linear(ranks.query_rank > 0 ? "q_b_proj" : "q_proj", rank, config_.heads * head, false);
    const TensorId query = heads_of(rank, config_.heads, head);
    const TensorId plain = net_.part(query, 3, net_.number(ranks.plain_width));
    const TensorId query_turn = rotate_all(net_.part(query, 3, net_.number(ranks.rotary_width)), ranks.rotary_width);
    ShapeBindings numbers{{"hidden", config_.hidden}, {"heads", config_.heads}, {"plain", ranks.plain_width}};
    numbers.insert({{"turned", ranks.rotary_width}, {"rank", ranks.key_value_rank}});
    numbers.insert({{"value", config_.value_width}, {"biased", config_.query_bias}});
    const std::vector<TensorId> fresh = net_.block("latent_keys", numbers, {x});
    const TensorId turn = rotate_all(fresh[1], ranks.rotary_width);
    const auto heads =
        net_.block("latent_heads", numbers,
                   {plain, query_turn, cached(index, "latent", fresh[0]), cached(index, "rotary_key", turn)});
    return {heads[0], heads[1], heads[2]};
}

/// The numbers of the blocks of an attention with shared keys and of an indexer, for heads of a width.
ShapeBindings Transformer::numbers_of_shared(std::int64_t heads, std::int64_t width) const {
    const std::int64_t turned = config_.rotary_width;
    ShapeBindings numbers{{"hidden", config_.hidden}, {"heads", heads}, {"width", width}, {"turned", turned / 2}};
    numbers.insert({{"plain", width - turned}, {"rank", config_.latent.query_rank}});
    numbers.insert({{"groups", config_.latent.output_groups}, {"low", config_.latent.output_rank}});
    return numbers;
}

/// An entry for each `ratio` of the new tokens: [batch, 1, length / ratio, width].
TensorId Transformer::compress(std::size_t index, std::string_view owner, TensorId x, std::int64_t width) {
    const Network::Module module(net_, "compressor", config_.title + "Compressor");
    const std::int64_t ratio = config_.layers[index].ratio;
    const auto [cosines, sines] = rotations_.at(config_.rotary_width);
    ShapeBindings numbers = numbers_of_shared(1, width);
    const bool overlaps = ratio == indexed_ratio;
    numbers.insert({{"ratio", ratio}, {"series", overlaps ? 2 : 1}, {"overlaps", overlaps}, {"apart", !overlaps}});
    const std::vector<TensorId> results =
        net_.block("compressed", numbers, {x, cosines, sines}, fmt::format("past_key_values.{}.{}", index, owner));
    states_.push_back(results[1]);
    return results[0];
}

/// All heads share keys that are the values as well: those in the window, and compressed ones (DeepseekV4Attention).
TensorId Transformer::attend_shared(std::size_t index, TensorId x) {
    const HeadSizes& sizes = config_.layers[index].sizes;
    const auto [cosines, sines] = rotations_.at(config_.rotary_width);
    const ShapeBindings numbers = numbers_of_shared(sizes.heads, sizes.head_width);
    const std::vector<TensorId> projected = net_.block("shared_heads", numbers, {x, cosines, sines});
    TensorId key = projected[2];
    chosen_ = no_tensor;
    if (config_.layers[index].ratio > 0)
        key = net_.concat({key, compress(index, "compressor", x, sizes.head_width)}, 2);
    if (config_.layers[index].ratio == indexed_ratio) choose_tokens(index, x, projected[0]);
    key = cached(index, "key", key);
    const TensorId mixed = score({projected[1], key, key}, sizes, true, config_.layers[index].window);
    return sum_over_cards(net_.block("grouped_output", numbers, {mixed, cosines, sines})[0]);
}

/// What the cache holds of a layer, with the new tokens appended: DynamicCache joins both into a new tensor, the other
/// kinds write the new ones where they belong.
/// A layer with a window keeps as many tokens as its next query can see. Source: DynamicSlidingWindowLayer.
TensorId Transformer::cached(std::size_t index, std::string_view what, TensorId fresh) {
    if (past_ == Expression{}) return fresh;
    const auto [window, ratio] = std::pair(config_.layers[index].window, config_.layers[index].ratio);
    const CacheKind kind = config_.cache.kind;
    const bool fixed = kind == CacheKind::fixed;
    const Expression all = fixed ? net_.symbol("cache") : past_;
    Expression seen = window > 0 ? net_.pool().minimum(all, net_.number(window - (fixed ? 0 : 1))) : all;
    if (what == "index_key" && ratio > 0) seen = net_.number(0);
    if (ratio > 0) seen = net_.pool().add(seen, net_.pool().floor_divide(all, net_.number(ratio)));
    Shape held = net_.shape(fresh);
    held[2] = kind == CacheKind::paged ? net_.pool().add(seen, held[2]) : seen;
    const DType type = config_.cache.type == DType::unknown ? net_.dtype() : config_.cache.type;
    const TensorId past = net_.input(fmt::format("past_key_values.{}.{}", index, what), held, type);
    if (kind == CacheKind::dynamic) return net_.concat({past, fresh}, 2);
    return net_.apply(OpKind::scatter, "aten::index_copy_", {past, fresh}, std::move(held));
}

/// Copies each head of keys or values for the `copies` heads of queries that read it. Source: repeat_kv.
TensorId Transformer::repeat_heads(TensorId x, std::int64_t copies) {
    if (copies == 1) return x;
    return net_.block("repeated_heads", {{"copies", copies}}, {x})[0];
}

/// [batch, heads, tokens, width] of queries, keys and values become [batch, tokens, heads · width].
TensorId Transformer::score(const Heads& heads, const HeadSizes& sizes, bool causal, std::int64_t window) {
    const Shape query = net_.shape(heads.query);
    const Expression keys = net_.shape(heads.key)[2];
    const Expression width = net_.shape(heads.value)[3];
    Shape result = query;
    result[3] = width;
    const Shape flat{batch_, query[2], net_.pool().multiply(query[1], width)};
    if (config_.structure.scoring == Scoring::fused) {
        std::vector<TensorId> inputs{heads.query, heads.key, heads.value};
        // A mask makes the kernel's own causal one needless. Layers with a window have one of their own.
        if (chosen_ != no_tensor) {
            inputs.push_back(chosen_);
        } else if (mask_ != no_tensor && net_.shape(mask_)[3] == keys) {
            inputs.push_back(mask_);
        }
        const TensorId mixed =
            net_.apply(OpKind::attention, "aten::scaled_dot_product_attention", inputs, std::move(result),
                       {{"causal", std::int64_t{causal && inputs.size() == 3}},
                        {window_attribute, chosen_ != no_tensor ? config_.latent.index_count : window}});
        return net_.view(net_.swap(mixed, 1, 2), flat);
    }
    const TensorId key = repeat_heads(heads.key, sizes.heads / sizes.key_value_heads);
    const TensorId value = repeat_heads(heads.value, sizes.heads / sizes.key_value_heads);
    TensorId scores = net_.map_scalar("mul", net_.matmul(heads.query, net_.swap(key, 2, 3)), 1);
    scores = capped(scores, config_.score_cap);
    if (config_.structure.positions == Positions::linear_bias) {
        const TensorId slopes =
            net_.fill("aten::arange", {net_.number(sizes.heads), net_.number(1), keys}, net_.dtype());
        scores = net_.map("add", {scores, slopes});
    }
    scores = net_.map("add", {scores, chosen_ != no_tensor ? chosen_ : mask_});
    const bool with_sinks = config_.structure.attention_sinks || (window > 0 && config_.structure.window_sinks);
    if (with_sinks) scores = net_.block("with_sinks", {{"heads", sizes.heads}}, {scores})[0];
    TensorId weights = net_.softmax(scores);
    if (with_sinks) weights = net_.part(weights, 3, keys);
    std::vector<Attribute> seen{{window_attribute, window}};
    if (sizes.entries > 0) seen.push_back({entries_attribute, sizes.entries});
    const TensorId mixed = net_.apply(OpKind::matmul, "aten::matmul", {weights, value}, std::move(result), seen);
    const TensorId turned = net_.swap(mixed, 1, 2);
    return net_.view(net_.apply(OpKind::copy, "aten::contiguous", {turned}, net_.shape(turned)), flat);
}

TensorId Transformer::attend(std::size_t index, TensorId x, TensorId memory) {
    const bool own = memory == no_tensor, latent = config_.structure.projection == Projection::latent;
    const HeadSizes& sizes = config_.layers[index].sizes;
    if (config_.structure.projection == Projection::shared) return attend_shared(index, x);
    Heads heads = latent ? project_latent(index, x) : project(index, x, memory);
    const OutputGate gate = config_.structure.output_gate;
    const bool per_head = gate == OutputGate::per_head;
    if (per_head || gate == OutputGate::apart)
        heads.gate = linear("gate_proj", x, sizes.heads * (per_head ? 1 : sizes.value_width), false);
    TensorId mixed = score(heads, sizes, config_.structure.causal && own, own ? config_.layers[index].window : 0);
    if (per_head) {
        const Shape flat = net_.shape(mixed);
        const Shape split{flat[0], flat[1], net_.number(sizes.heads), net_.number(sizes.value_width)};
        mixed = net_.view(net_.map("mul", {net_.view(mixed, split), net_.map("sigmoid", {heads.gate})}), flat);
    } else if (heads.gate != no_tensor) {
        mixed = net_.map("mul", {mixed, net_.map("sigmoid", {heads.gate})});
    }
    if (config_.structure.inner_norms) mixed = norm("sub_norm", mixed);
    return sum_over_cards(linear("o_proj", mixed, config_.hidden, config_.output_bias));
}

}  // namespace ftax::config
