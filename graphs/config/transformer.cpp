#include "graphs/config/transformer.hpp"

#include <fmt/format.h>

namespace ftax::config {

Transformer::Transformer(Network& network, const TransformerConfig& config, Expression length, Expression past)
    : net_(network), config_(config), batch_(network.symbol("batch")), length_(length), past_(past) {}

TensorId Transformer::norm(std::string_view name, TensorId x) {
    return net_.norm(name, x, config_.structure.norm);
}

TensorId Transformer::linear(std::string_view name, TensorId x, std::int64_t width, bool bias) {
    return config_.structure.addmm_layers ? net_.addmm(name, x, width, bias) : net_.linear(name, x, width, bias);
}

TensorId Transformer::embed(TensorId ids) {
    const Structure& s = config_.structure;
    ids_ = ids;
    TensorId hidden = net_.within("embed_tokens", "torch.nn.modules.sparse.Embedding", [&] {
        table_ = net_.parameter("weight", {net_.number(config_.vocabulary), net_.number(config_.embedding_width)});
        const TensorId rows = sum_over_cards(net_.lookup(table_, ids));
        return s.scaled_embedding ? net_.map_scalar("mul", rows, 1) : rows;
    });
    if (config_.token_types > 0)
        hidden = net_.block("token_types", {{"types", config_.token_types}, {"hidden", config_.hidden}}, {hidden})[0];
    const bool masked = s.positions == Positions::learned_from_mask,
               learned = masked || s.positions == Positions::learned;
    const ShapeBindings numbers{
        {"rows", config_.position_rows}, {"hidden", config_.hidden}, {"masked", masked}, {"plain", !masked}};
    const TensorId positions = learned ? net_.block("positions", numbers, {})[0] : no_tensor;
    if (config_.embedding_width != config_.hidden) hidden = net_.linear("project_in", hidden, config_.hidden, false);
    if (learned) hidden = net_.map("add", {hidden, positions});
    if (s.embedding_norm) hidden = norm("embedding_norm", hidden);
    if (config_.layer_input_width > 0) embed_for_layers(ids, hidden);
    return hidden;
}

TensorId Transformer::run(TensorId hidden, TensorId memory) {
    prepare_rotation();
    prepare_mask();
    if (config_.streams > 1)
        hidden = net_.block("copied_streams", {{"streams", config_.streams}, {"hidden", config_.hidden}}, {hidden})[0];
    for (std::size_t i = 0; i < config_.layers.size(); ++i) hidden = layer(i, hidden, memory);
    if (config_.streams > 1) hidden = gather_streams("hc_head", hidden, false)[0];
    return config_.structure.final_norm ? norm("norm", hidden) : hidden;
}

TensorId Transformer::predict(TensorId hidden) {
    if (config_.embedding_width != config_.hidden)
        hidden = net_.linear("project_out", hidden, config_.embedding_width, false);
    hidden = net_.part(hidden, 1, net_.number(1));
    const auto tied = [&] { return net_.linear_with(hidden, table_); };
    TensorId logits = config_.tied ? net_.within("lm_head", "torch.nn.modules.linear.Linear", tied)
                                   : net_.linear("lm_head", hidden, config_.vocabulary, config_.head_bias);
    if (config_.structure.scaled_logits) logits = net_.map_scalar("div", logits, 1);
    return capped(logits, config_.logit_cap);
}

/// A soft cap, with tanh; 0: none.
TensorId Transformer::capped(TensorId x, double cap) {
    if (cap <= 0) return x;
    return net_.map_scalar("mul", net_.map("tanh", {net_.map_scalar("div", x, cap)}), cap);
}

/// An embedding of the tokens for each layer, plus a projection of the usual one. Source: Gemma4TextModel,
/// get_per_layer_inputs and project_per_layer_inputs.
void Transformer::embed_for_layers(TensorId ids, TensorId hidden) {
    const auto layers = static_cast<std::int64_t>(config_.layers.size());
    ShapeBindings numbers{{"hidden", config_.hidden}, {"layers", layers}, {"width", config_.layer_input_width}};
    numbers.insert({"rows", config_.layer_vocabulary});
    layer_inputs_ = net_.block("layer_embeddings", numbers, {hidden, ids})[0];
}

/// Source: Gemma4TextDecoderLayer.
TensorId Transformer::add_layer_input(TensorId hidden) {
    TensorId x = activate(net_.linear("per_layer_input_gate", hidden, config_.layer_input_width, false));
    const TensorId own = net_.view(net_.part(layer_inputs_, 2, net_.number(1)), net_.shape(x));
    x = net_.linear("per_layer_projection", net_.map("mul", {x, own}), config_.hidden, false);
    return net_.map("add", {hidden, norm("post_per_layer_input_norm", x)});
}

/// What a sublayer adds to the residual stream.
TensorId Transformer::add(TensorId hidden, TensorId x) {
    if (config_.structure.scaled_residual) x = net_.map_scalar("mul", x, 1);
    return net_.map("add", {hidden, x});
}

/// The mixture of the streams that a sublayer reads, and how it changes them. Source: DeepseekV4HyperConnection.
std::vector<TensorId> Transformer::gather_streams(std::string_view name, TensorId streams, bool mixes) {
    const Network::Module module(net_, name, config_.title + "HyperConnection");
    const ShapeBindings numbers{{"streams", config_.streams}, {"hidden", config_.hidden}, {"mixes", mixes}};
    std::vector<TensorId> results = net_.block("gathered_streams", numbers, {streams});
    for (std::int64_t i = 1; mixes && i < config_.balances; ++i)
        results[2] = net_.block("balanced", numbers, {results[2]})[0];
    return results;
}

TensorId Transformer::in_streams(std::size_t index, TensorId streams, std::string_view name,
                                 Sublayer Transformer::*sublayer) {
    const std::vector<TensorId> gathered = gather_streams(name, streams, true);
    const TensorId x = (this->*sublayer)(index, norm(std::string(name) + "_norm", gathered[0]));
    return net_.block("spread_streams", {{"streams", config_.streams}, {"hidden", config_.hidden}},
                      {streams, x, gathered[1], gathered[2]})[0];
}

/// Source: LlamaDecoderLayer, GPTNeoXLayer, FalconDecoderLayer, Gemma2DecoderLayer, Olmo2DecoderLayer, BertLayer,
/// NemotronHBlock of transformers 5.24.
TensorId Transformer::layer(std::size_t index, TensorId hidden, TensorId memory) {
    const Network::Module module(net_, fmt::format("layers.{}", index), config_.title + "Layer");
    const Layer& kind = config_.layers[index];
    const NormPlace place = config_.structure.place;
    const bool first = place == NormPlace::before || place == NormPlace::around;
    if (config_.streams > 1)
        return in_streams(index, in_streams(index, hidden, "attn_hc", &Transformer::mix), "ffn_hc",
                          &Transformer::feed_forward);
    if (kind.mixer != Mixer::none) {
        const bool norm_first = first || place == NormPlace::shared || place == NormPlace::apart;
        TensorId x =
            norm_first && (index > 0 || config_.structure.first_norm) ? norm("input_layernorm", hidden) : hidden;
        TensorId mixed = mix(index, x);
        if (place == NormPlace::shared || place == NormPlace::apart) {
            if (place == NormPlace::apart) x = norm("post_attention_layernorm", hidden);
            return net_.map("add", {net_.map("add", {feed_forward(index, x), mixed}), hidden});
        }
        if (place == NormPlace::around || place == NormPlace::outputs) mixed = norm("post_attention_layernorm", mixed);
        hidden = add(hidden, mixed);
        if (place == NormPlace::after) hidden = norm("post_attention_layernorm", hidden);
    }
    if (memory != no_tensor) {
        const Network::Module cross(net_, "encoder_attn", config_.title + "Attention");
        hidden = net_.map("add", {hidden, attend(index, norm("layer_norm", hidden), memory)});
    }
    if (kind.feed_forward == FeedForward::none) return hidden;
    TensorId x = first ? norm("pre_feedforward_layernorm", hidden) : hidden;
    x = feed_forward(index, x);
    if (kind.feed_forward == FeedForward::both) {
        const TensorId mixed = mix_experts(norm("pre_feedforward_layernorm_2", hidden));
        x = net_.map("add", {norm("post_feedforward_layernorm_1", x), norm("post_feedforward_layernorm_2", mixed)});
    }
    if (place == NormPlace::around || place == NormPlace::outputs) x = norm("post_feedforward_layernorm", x);
    hidden = add(hidden, x);
    if (layer_inputs_ != no_tensor) hidden = add_layer_input(hidden);
    if (config_.structure.gemma4) hidden = net_.map("mul", {hidden, net_.parameter("layer_scalar", {})});
    return place == NormPlace::after ? norm("final_layer_norm", hidden) : hidden;
}

}  // namespace ftax::config
