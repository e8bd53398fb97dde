#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ftax/graph_builder.hpp"
#include "graphs/config/transformer_config.hpp"
#include "graphs/files/json_document.hpp"

namespace ftax::config {

using Shape = std::vector<Expression>;

/// Appends the operators of a module's forward function in eager PyTorch, module by module, with their shapes.
/// Parameters are named after their modules; all parameters and activations have the same type.
class Network {
  public:
    Network(std::string name, DType dtype);

    /// Operators appended during its lifetime belong to a submodule, whose call is recorded.
    class [[nodiscard]] Module {
      public:
        Module(Network& network, std::string_view name, std::string_view type);
        ~Module() { network_.path_.resize(outer_); }
        Module(const Module&) = delete;
        Module& operator=(const Module&) = delete;

      private:
        Network& network_;
        std::size_t outer_;
    };

    [[nodiscard]] Expression number(std::int64_t value) { return pool().constant(value); }
    [[nodiscard]] Expression symbol(std::string_view name) { return pool().symbol(name); }
    [[nodiscard]] ExpressionPool& pool() { return builder_.graph().expressions; }
    [[nodiscard]] const Shape& shape(TensorId tensor) const { return builder_.shape(tensor); }

    TensorId input(std::string_view name, Shape shape, DType dtype);
    TensorId activation_input(std::string_view name, Shape shape) { return input(name, std::move(shape), dtype_); }
    TensorId parameter(std::string_view name, Shape shape);

    /// Appends an operator with one result of the given shape and, unless stated, the type of its first input.
    TensorId apply(OpKind kind, std::string_view source, const std::vector<TensorId>& inputs, Shape shape,
                   std::vector<Attribute> attributes = {}, DType dtype = DType::unknown);
    /// An elementwise function; unless stated, the result has the shape and type of the first operand.
    TensorId map(std::string_view function, const std::vector<TensorId>& operands, std::optional<Shape> result = {},
                 DType dtype = DType::unknown);
    TensorId map_scalar(std::string_view function, TensorId operand, double scalar);
    TensorId cast(TensorId x, DType dtype);
    TensorId view(TensorId x, Shape shape) { return apply(OpKind::reshape, "aten::view", {x}, std::move(shape)); }
    /// A view with two axes exchanged.
    TensorId swap(TensorId x, std::size_t first, std::size_t second);
    /// A view of `length` entries along an axis.
    TensorId part(TensorId x, std::size_t axis, Expression length);
    TensorId concat(const std::vector<TensorId>& parts, std::size_t axis);
    TensorId reduce(std::string_view function, TensorId x, std::size_t axis, bool keep);
    TensorId softmax(TensorId x);
    TensorId fill(std::string_view source, Shape shape, DType dtype);
    TensorId best(TensorId x, std::int64_t count);  ///< topk along the last axis: the values
    /// Products of the last two dimensions.
    TensorId matmul(TensorId a, TensorId b, std::string_view source = "aten::matmul");
    /// The result of `build`, whose operators belong to a submodule.
    template <class Build>
    TensorId within(std::string_view name, std::string_view type, const Build& build) {
        const Module module(*this, name, type);
        return build();
    }

    TensorId linear(std::string_view name, TensorId x, std::int64_t width, bool bias);
    /// The same as addmm over a flattened input, the weight as [in, out].
    TensorId addmm(std::string_view name, TensorId x, std::int64_t width, bool bias);
    TensorId linear_with(TensorId x, TensorId weight, TensorId bias = no_tensor);
    /// Layer norm, or x / sqrt(mean(x²) + ε) · w in f32. Source: transformers, LlamaRMSNorm, Gemma2RMSNorm.
    TensorId norm(std::string_view name, TensorId x, NormKind kind);
    TensorId lookup(TensorId table, TensorId indices);
    /// The results of a block of blocks.txt with these numbers. Its inputs beyond `inputs` are new ones below `past`.
    std::vector<TensorId> block(std::string_view name, const ShapeBindings& numbers,
                                const std::vector<TensorId>& inputs, std::string_view past = "");

    [[nodiscard]] DType dtype() const { return dtype_; }
    [[nodiscard]] Graph finish(const std::vector<TensorId>& outputs) { return builder_.finish(outputs); }

  private:
    [[nodiscard]] std::string path_to(std::string_view name) const;

    GraphBuilder builder_;
    DType dtype_;
    std::string path_;
    std::map<std::string, Graph> blocks_;  ///< by their text
};

/// Appends the layers of a transformer as run by transformers (5.x) in eager mode with `attn_implementation="sdpa"`
/// and a DynamicCache: each layer reads `past` cached tokens in addition to the `length` new ones, which it appends.
class Transformer {
  public:
    /// `length`: number of new tokens; `past`: number of cached tokens, 0 without a cache.
    Transformer(Network& network, const TransformerConfig& config, Expression length, Expression past);

    /// Token ids of shape [batch, length] become hidden states: embedding, positions, types.
    TensorId embed(TensorId ids);
    /// All layers and the last norm; `memory`: input of cross-attention.
    TensorId run(TensorId hidden, TensorId memory = no_tensor);
    /// Hidden states of the last token become logits.
    TensorId predict(TensorId hidden);

    /// States of fixed size after the pass.
    [[nodiscard]] const std::vector<TensorId>& states() const { return states_; }

    TensorId norm(std::string_view name, TensorId x);

  private:
    struct Heads {
        TensorId query, key, value;
        TensorId gate = no_tensor;
    };

    TensorId layer(std::size_t index, TensorId hidden, TensorId memory);
    TensorId add(TensorId hidden, TensorId x);
    using Sublayer = TensorId(std::size_t index, TensorId x);
    Sublayer mix, mix_state, attend_shared, feed_forward;
    std::vector<TensorId> gather_streams(std::string_view name, TensorId streams, bool mixes);
    TensorId in_streams(std::size_t index, TensorId streams, std::string_view name, Sublayer Transformer::*sublayer);
    using Step = TensorId(TensorId x);
    Step activate, limited;
    TensorId mix_experts(TensorId x, bool hashed = false);
    TensorId compress(std::size_t index, std::string_view owner, TensorId x, std::int64_t width);
    TensorId rotate(TensorId x, const HeadSizes& sizes);
    TensorId rotate_all(TensorId x, std::int64_t width);
    TensorId repeat_heads(TensorId x, std::int64_t copies);
    TensorId add_layer_input(TensorId hidden);
    void embed_for_layers(TensorId ids, TensorId hidden);
    TensorId norm_heads(std::string_view name, TensorId x);
    TensorId linear(std::string_view name, TensorId x, std::int64_t width, bool bias);
    void prepare_rotation();
    void prepare_mask();
    TensorId heads_of(TensorId x, std::int64_t heads, std::int64_t width);
    Heads project(std::size_t index, TensorId x, TensorId memory);
    Heads project_latent(std::size_t index, TensorId x);
    void choose_tokens(std::size_t index, TensorId x, TensorId query_rank);
    [[nodiscard]] ShapeBindings numbers_of_shared(std::int64_t heads, std::int64_t width) const;
    TensorId capped(TensorId x, double cap);
    TensorId cached(std::size_t index, std::string_view what, TensorId fresh);
    TensorId score(const Heads& heads, const HeadSizes& sizes, bool causal, std::int64_t window);
    TensorId attend(std::size_t index, TensorId x, TensorId memory);
    TensorId activate_experts(TensorId gate_up, std::int64_t width);
    TensorId dense(TensorId x, std::int64_t width);
    TensorId route(TensorId tokens, bool hashed);
    TensorId expert_layer(std::string_view name, TensorId x, std::int64_t width, Expression active, Expression rows);
    TensorId sum_over(TensorId x, std::int64_t cards, std::int64_t calls = 1);
    TensorId sum_over_cards(TensorId x) { return sum_over(x, config_.cards); }

    Network& net_;
    const TransformerConfig& config_;
    Expression batch_, length_, past_;
    std::vector<TensorId> states_;
    TensorId table_ = no_tensor, ids_ = no_tensor;
    TensorId mask_ = no_tensor, layer_inputs_ = no_tensor;
    std::map<std::int64_t, std::pair<TensorId, TensorId>> rotations_;  ///< cosines and sines by rotated width
    /// Keys and values of the last layer without and with a window that has its own.
    std::array<std::pair<TensorId, TensorId>, 2> key_values_{{{no_tensor, no_tensor}, {no_tensor, no_tensor}}};
    TensorId chosen_ = no_tensor;  ///< mask of the tokens selected by an indexer
};

/// A text of blocks.txt with its numbers, without the parts whose number is 0.
[[nodiscard]] std::string filled_in(std::string_view text, const ShapeBindings& numbers);

/// A language model: `seq` new tokens after `past` cached ones, logits of the last one.
[[nodiscard]] Graph build_decoder(std::string name, const TransformerConfig& config);
/// A text encoder of `seq` tokens, with the pooler of BERT or the pooled token of CLIP.
[[nodiscard]] Graph build_encoder(std::string name, const TransformerConfig& config);
/// An image encoder. Reads `image_size`, `patch_size` and `num_channels` from the document.
[[nodiscard]] Graph build_vision(std::string name, const JsonField& document, const TransformerConfig& config);
/// CLIP: both encoders, their projections and the similarity of every text with every image.
[[nodiscard]] Graph build_text_and_vision(std::string name, const JsonField& document);
/// Whisper: the encoder over its 30 s window and one pass of the decoder.
[[nodiscard]] Graph build_speech(std::string name, const JsonField& document, const TransformerConfig& decoder);
/// The encoder that a config.json describes in its vision_config, by its family in vision.txt. Throws Error for others.
[[nodiscard]] std::shared_ptr<const ImageEncoder> image_encoder(const nlohmann::json& document, DType dtype,
                                                                const ImportOptions& options);

}  // namespace ftax::config
