#include <fmt/format.h>

#include <utility>

#include "graphs/config/read_config.hpp"
#include "graphs/config/transformer.hpp"
#include "graphs/ir/operands.hpp"

namespace ftax::config {
namespace {

constexpr Expression nothing{};

TensorId token_ids(Network& net, std::string_view name) {
    return net.input(name, {net.symbol("batch"), net.symbol("seq")}, DType::i64);
}

/// Notes the longest context, beyond which predictions warn.
Graph limited(Graph graph, std::string symbol, std::int64_t positions) {
    if (positions > 0) graph.ranges.push_back({.symbol = std::move(symbol), .least = 1, .greatest = positions});
    return graph;
}

TensorId first_token(Network& net, TensorId hidden) {
    const Shape shape = net.shape(hidden);
    return net.view(net.part(hidden, 1, net.number(1)), {shape[0], shape[2]});
}

TensorId pooled(Network& net, const TransformerConfig& config, TensorId hidden) {
    const Network::Module module(net, "pooler", config.title + "Pooler");
    return net.map("tanh", {net.linear("dense", first_token(net, hidden), config.hidden, true)});
}

/// An image split into patches, after a class token, with positions.
TensorId embed_patches(Network& net, const JsonField& document, const TransformerConfig& config, bool bias) {
    const std::int64_t side = read_count(document, "image_size");
    const std::int64_t patch = read_count(document, "patch_size");
    if (patch > side) document["patch_size"].fail(fmt::format("{} is more than the image_size {}", patch, side));
    const std::int64_t channels = read_count(document, "num_channels", 3), along = side / patch;
    const TensorId pixels = net.activation_input(
        "pixel_values", {net.symbol("batch"), net.number(channels), net.number(side), net.number(side)});
    const Network::Module module(net, "embeddings", config.title + "Embeddings");
    ShapeBindings numbers{{"channels", channels}, {"side", side}, {"patch", patch}, {"along", along}, {"bias", bias}};
    numbers.insert({{"patches", along * along}, {"hidden", config.hidden}});
    return net.block("image_patches", numbers, {pixels})[0];
}

/// CLIPVisionTransformer up to the pooled token.
TensorId clip_vision(Network& net, const JsonField& document, TransformerConfig config) {
    config.structure.final_norm = false;
    const TensorId tokens = embed_patches(net, document, config, false);
    Transformer vision(net, config, net.shape(tokens)[1], nothing);
    return vision.norm("post_layernorm", first_token(net, vision.run(vision.norm("pre_layrnorm", tokens))));
}

/// CLIPTextTransformer up to the token at the end of the text.
TensorId clip_text(Network& net, const TransformerConfig& config) {
    const TensorId ids = token_ids(net, "input_ids");
    Transformer text(net, config, net.symbol("seq"), nothing);
    const TensorId hidden = text.run(text.embed(ids));
    return net.block("end_token", {{"hidden", config.hidden}}, {ids, hidden})[0];
}

}  // namespace

Graph build_decoder(std::string name, const TransformerConfig& config) {
    Network net(std::move(name), config.dtype);
    const TensorId ids = token_ids(net, "input_ids");
    std::vector<TensorId> outputs;
    {
        const Network::Module module(net, "model", config.title + "ForCausalLM");
        Transformer layers(net, config, net.symbol("seq"), net.symbol("past"));
        outputs = {layers.predict(layers.run(layers.embed(ids)))};
        outputs.insert(outputs.end(), layers.states().begin(), layers.states().end());
    }
    Graph graph = limited(net.finish(outputs), "past+seq", config.positions);
    if (config.structure.samples_all)
        graph.ops[graph.tensors[outputs[0]].producer].attributes.push_back(
            {std::string(samples_all_attribute), std::int64_t{1}});
    return graph;
}

Graph build_encoder(std::string name, const TransformerConfig& config) {
    Network net(std::move(name), config.dtype);
    const TensorId result = net.within("model", config.title + "Model", [&] {
        if (config.structure.causal) return clip_text(net, config);
        Transformer layers(net, config, net.symbol("seq"), nothing);
        const TensorId hidden = layers.run(layers.embed(token_ids(net, "input_ids")));
        return config.token_types > 0 ? pooled(net, config, hidden) : hidden;
    });
    return limited(net.finish({result}), "seq", config.positions);
}

Graph build_vision(std::string name, const JsonField& document, const TransformerConfig& config) {
    Network net(std::move(name), config.dtype);
    const Network::Module module(net, "model", config.title + "Model");
    if (config.model_type == "clip_vision_model") return net.finish({clip_vision(net, document, config)});
    const TensorId tokens = embed_patches(net, document, config, true);
    Transformer layers(net, config, net.shape(tokens)[1], nothing);
    return net.finish({pooled(net, config, layers.run(tokens))});
}

Graph build_text_and_vision(std::string name, const JsonField& document) {
    const JsonField text_document = document["text_config"];
    const JsonField vision_document = document["vision_config"];
    const auto read = [](const JsonField& part) {
        return read_transformer(part, *find_family(part["model_type"].text()));
    };
    const TransformerConfig text = read(text_document), vision = read(vision_document);
    const std::int64_t width = read_count(document, "projection_dim", 512);
    Network net(std::move(name), read_dtype(document));
    const auto see = [&] { return clip_vision(net, vision_document, vision); };
    const TensorId images = net.within("vision_model", "CLIPVisionTransformer", see);
    const TensorId texts = net.within("text_model", "CLIPTextTransformer", [&] { return clip_text(net, text); });
    const ShapeBindings numbers{{"vision", vision.hidden}, {"text", text.hidden}, {"width", width}};
    return limited(net.finish(net.block("similarity", numbers, {images, texts})), "seq", text.positions);
}

Graph build_speech(std::string name, const JsonField& document, const TransformerConfig& decoder) {
    TransformerConfig encoder = decoder;
    encoder.heads = encoder.key_value_heads = read_count(document, "encoder_attention_heads");
    if (encoder.hidden % encoder.heads != 0)
        document["encoder_attention_heads"].fail(
            fmt::format("{} heads do not divide d_model {}", encoder.heads, encoder.hidden));
    encoder.head_width = encoder.value_width = encoder.hidden / encoder.heads;
    encoder.layers.assign(static_cast<std::size_t>(read_layers(document, "encoder_layers")),
                          {.sizes = encoder, .mlp_width = read_count(document, "encoder_ffn_dim")});
    encoder.structure.causal = false;
    const std::int64_t frames = read_count(document, "max_source_positions");
    const std::int64_t mels = read_count(document, "num_mel_bins");

    Network net(std::move(name), decoder.dtype);
    const TensorId ids = token_ids(net, "decoder_input_ids");
    const TensorId features =
        net.activation_input("input_features", {net.symbol("batch"), net.number(mels), net.number(2 * frames)});
    const TensorId memory = net.within("model.encoder", "WhisperEncoder", [&] {
        const ShapeBindings numbers{{"mels", mels}, {"frames", frames}, {"hidden", encoder.hidden}};
        const TensorId x = net.block("speech_frames", numbers, {features})[0];
        return Transformer(net, encoder, net.number(frames), nothing).run(x);
    });
    const TensorId logits = net.within("model.decoder", "WhisperDecoder", [&] {
        Transformer layers(net, decoder, net.symbol("seq"), net.symbol("past"));
        return layers.predict(layers.run(layers.embed(ids), memory));
    });
    return limited(net.finish({logits}), "past+seq", decoder.positions);
}

}  // namespace ftax::config
