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
    const Expression channels = net.number(read_count(document, "num_channels", 3));
    const Expression batch = net.symbol("batch");
    const Expression hidden = net.number(config.hidden);
    const Expression along = net.number(side / patch);
    const Expression patches = net.number((side / patch) * (side / patch));
    const TensorId pixels = net.activation_input("pixel_values", {batch, channels, net.number(side), net.number(side)});
    const Network::Module module(net, "embeddings", config.title + "Embeddings");
    std::vector<TensorId> inputs{
        pixels, net.parameter("patch_embedding.weight", {hidden, channels, net.number(patch), net.number(patch)})};
    if (bias) inputs.push_back(net.parameter("patch_embedding.bias", {hidden}));
    const TensorId grid = net.conv(inputs, {batch, hidden, along, along}, patch, 0);
    const TensorId tokens = net.swap(net.view(grid, {batch, hidden, patches}), 1, 2);
    const TensorId class_row = net.parameter("class_embedding", {net.number(1), net.number(1), hidden});
    const TensorId all = net.concat({net.expand(class_row, {batch, net.number(1), hidden}), tokens}, 1);
    return net.map("add", {all, net.parameter("position_embeddings", {net.number(1), net.shape(all)[1], hidden})});
}

Expression patch_tokens(Network& net, const JsonField& document) {
    const std::int64_t along = read_count(document, "image_size") / read_count(document, "patch_size");
    return net.number(along * along + 1);
}

/// CLIPVisionTransformer up to the pooled token.
TensorId clip_vision(Network& net, const JsonField& document, TransformerConfig config) {
    config.structure.final_norm = false;
    const TensorId tokens = embed_patches(net, document, config, false);
    Transformer vision(net, config, patch_tokens(net, document), nothing);
    return vision.norm("post_layernorm", first_token(net, vision.run(vision.norm("pre_layrnorm", tokens))));
}

/// CLIPTextTransformer up to the token at the end of the text.
TensorId clip_text(Network& net, const TransformerConfig& config) {
    const TensorId ids = token_ids(net, "input_ids");
    Transformer text(net, config, net.symbol("seq"), nothing);
    const TensorId hidden = text.run(text.embed(ids));
    const TensorId end = net.reduce("argmax", ids, 1, false);
    const Shape shape = net.shape(hidden);
    return net.apply(OpKind::gather, "aten::index", {hidden, end}, {shape[0], shape[2]});
}

TensorId conv1d(Network& net, std::string_view name, TensorId x, std::int64_t channels, std::int64_t stride) {
    const Network::Module module(net, name, "torch.nn.modules.conv.Conv1d");
    constexpr std::int64_t kernel = 3;
    Shape shape = net.shape(x);
    const TensorId weight = net.parameter("weight", {net.number(channels), shape[1], net.number(kernel)});
    const TensorId bias = net.parameter("bias", {net.number(channels)});
    shape[1] = net.number(channels);
    shape[2] = net.pool().floor_divide(shape[2], net.number(stride));
    return net.conv({x, weight, bias}, std::move(shape), stride, 1);
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
    Transformer layers(net, config, patch_tokens(net, document), nothing);
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
    TensorId images = net.within("vision_model", "CLIPVisionTransformer", see);
    TensorId texts = net.within("text_model", "CLIPTextTransformer", [&] { return clip_text(net, text); });
    const auto unit = [&](TensorId x) {
        const TensorId length = net.map_scalar("pow", net.reduce("sum", net.map_scalar("pow", x, 2), 1, true), 0.5);
        return net.map("div", {x, length});
    };
    images = unit(net.linear("visual_projection", images, width, false));
    texts = unit(net.linear("text_projection", texts, width, false));
    const TensorId scale = net.map("exp", {net.parameter("logit_scale", {})});
    const TensorId logits = net.matmul(texts, net.swap(images, 0, 1));
    return limited(net.finish({net.map("mul", {logits, scale})}), "seq", text.positions);
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

    Network net(std::move(name), decoder.dtype);
    const Expression batch = net.symbol("batch");
    const TensorId ids = token_ids(net, "decoder_input_ids");
    const TensorId features = net.activation_input(
        "input_features", {batch, net.number(read_count(document, "num_mel_bins")), net.number(2 * frames)});
    const TensorId memory = net.within("model.encoder", "WhisperEncoder", [&] {
        TensorId x = net.map("gelu", {conv1d(net, "conv1", features, encoder.hidden, 1)});
        x = net.swap(net.map("gelu", {conv1d(net, "conv2", x, encoder.hidden, 2)}), 1, 2);
        x = net.map("add",
                    {x, net.parameter("embed_positions.weight", {net.number(frames), net.number(encoder.hidden)})});
        return Transformer(net, encoder, net.number(frames), nothing).run(x);
    });
    const TensorId logits = net.within("model.decoder", "WhisperDecoder", [&] {
        Transformer layers(net, decoder, net.symbol("seq"), net.symbol("past"));
        return layers.predict(layers.run(layers.embed(ids), memory));
    });
    return limited(net.finish({logits}), "past+seq", decoder.positions);
}

}  // namespace ftax::config
