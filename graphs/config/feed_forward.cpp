#include <cmath>
#include <string>

#include "graphs/config/transformer.hpp"

namespace ftax::config {

/// An activation as its module runs it. Source: transformers, activations.py.
TensorId Transformer::activate(TensorId x) {
    const Network::Module module(net_, "act_fn", "transformers.activations");
    const Activation& activation = *find_activation(config_.activation);
    switch (activation.spelling) {
        case Spelling::single:
            return net_.map(activation.function, {x});
        case Spelling::sigmoid:
            return net_.map("mul", {x, net_.map("sigmoid", {net_.map_scalar("mul", x, 1.702)})});
        case Spelling::squared:
            return net_.map_scalar("pow", net_.map(activation.function, {x}), 2);
        case Spelling::xielu: {
            const TensorId positive = net_.map("mul", {net_.map("mul", {x, x}), net_.parameter("alpha_p", {})});
            const TensorId negative = net_.map("mul", {net_.map("expm1", {x}), net_.parameter("alpha_n", {})});
            return net_.map("where", {x, positive, negative});
        }
        case Spelling::tanh:
            break;
    }
    const TensorId half = net_.map_scalar("mul", x, 0.5);
    const TensorId cube = net_.map_scalar("mul", net_.map_scalar("pow", x, 3), 0.044715);
    const TensorId bent = net_.map("tanh", {net_.map_scalar("mul", net_.map("add", {x, cube}), 0.7978845608028654)});
    return net_.map("mul", {half, net_.map_scalar("add", bent, 1)});
}

TensorId Transformer::limited(TensorId x) {
    return config_.structure.clamped ? net_.map("clamp", {x}) : x;
}

TensorId Transformer::dense(TensorId x, std::int64_t width) {
    const Structure& structure = config_.structure;
    const auto projected = [&](std::string_view name, std::int64_t to) {
        return linear(name, x, to, config_.mlp_bias);
    };
    TensorId inner = no_tensor;
    if (structure.gated && structure.packed_gate) {
        const TensorId both = projected("gate_up_proj", 2 * width);
        const std::size_t last = net_.shape(both).size() - 1;
        const TensorId gate = net_.part(both, last, net_.number(width));
        const TensorId up = net_.part(both, last, net_.number(width));
        inner = net_.map("mul", {up, activate(gate)});
    } else {
        inner = activate(limited(projected(structure.gated ? "gate_proj" : "up_proj", width)));
        if (structure.gated) inner = net_.map("mul", {inner, limited(projected("up_proj", width))});
        if (structure.inner_norms) inner = norm("sub_norm", inner);
    }
    return linear("down_proj", inner, config_.hidden, config_.mlp_bias);
}

/// Scores of the experts of each token: [tokens, per_token]. Source: MixtralTopKRouter, GptOssTopKRouter,
/// DeepseekV3TopkRouter, Gemma4TextRouter.
TensorId Transformer::route(TensorId tokens, bool hashed) {
    const Network::Module module(net_, "gate", config_.title + "TopKRouter");
    const Experts& experts = config_.experts;
    const TensorId weight = net_.parameter("weight", {net_.number(experts.count), net_.number(config_.hidden)});
    const TensorId bias =
        config_.structure.expert_bias ? net_.parameter("bias", {net_.number(experts.count)}) : no_tensor;
    const Routing routing = config_.structure.routing;
    if (config_.structure.gemma4)
        tokens = net_.map("mul", {net_.norm("norm", tokens, NormKind::rms_plain),
                                  net_.parameter("scale", {net_.number(config_.hidden)})});
    TensorId scores = net_.linear_with(tokens, weight, bias);
    const auto normalize = [&](TensorId x) {
        return experts.normalized ? net_.map("div", {x, net_.reduce("sum", x, 1, true)}) : x;
    };
    if (routing == Routing::softmax_first) {
        const TensorId weights = normalize(net_.best(net_.softmax(scores), experts.per_token));
        if (!config_.structure.gemma4) return weights;
        const TensorId scales = net_.parameter("per_expert_scale", {net_.number(experts.count)});
        return net_.map("mul", {weights, net_.lookup(scales, weights)});
    }
    if (routing == Routing::best_first) return net_.softmax(net_.best(scores, experts.per_token));
    if (routing == Routing::sigmoid) return net_.map("sigmoid", {net_.best(scores, experts.per_token)});
    const bool is_root = routing == Routing::root_softplus;
    scores = is_root ? net_.map("sqrt", {net_.map("softplus", {scores})}) : net_.map("sigmoid", {scores});
    const Shape pairs{net_.shape(scores)[0], net_.number(experts.per_token)};
    TensorId choice =
        hashed ? net_.apply(OpKind::gather, "aten::index", {ids_}, pairs)
               : net_.map("add", {scores, net_.parameter("e_score_correction_bias", {net_.number(experts.count)})});
    if (experts.groups > 1)
        choice = net_.block("best_groups", {{"experts", experts.count}, {"groups", experts.groups}}, {choice})[0];
    if (!hashed) choice = net_.best(choice, experts.per_token);
    const TensorId weights = net_.apply(OpKind::gather, "aten::gather", {scores, choice}, pairs);
    return net_.map_scalar("mul", normalize(weights), 1);
}

/// One product for all experts that have tokens; every one has the same number of them.
TensorId Transformer::expert_layer(std::string_view name, TensorId x, std::int64_t width, Expression active,
                                   Expression rows) {
    const Expression depth = net_.shape(x).back();
    const Expression out = net_.number(width);
    const Experts& experts = config_.experts;
    const std::int64_t own = experts.count / experts.cards;
    const TensorId read = net_.part(net_.parameter(name, {net_.number(own), depth, out}), 0, active);
    const TensorId grouped = net_.view(x, {active, rows, depth});
    TensorId y = net_.apply(
        OpKind::matmul, "aten::_grouped_mm", {grouped, read}, {active, rows, out},
        {{std::string(experts_attribute), own},
         {std::string(experts_per_token_attribute), std::max<std::int64_t>(1, experts.per_token / experts.cards)},
         {"cards", std::int64_t{experts.cards}},
         {"groups", std::int64_t{experts.token_groups}},
         {"gated", std::int64_t{name == "gate_up_proj"}}});
    y = net_.view(y, {net_.shape(x)[0], out});
    if (!config_.structure.expert_bias) return y;
    const TensorId bias = net_.parameter(std::string(name) + "_bias", {net_.number(own), out});
    return net_.map("add", {y, net_.lookup(bias, net_.fill("aten::arange", {net_.shape(x)[0]}, DType::i64))});
}

TensorId Transformer::activate_experts(TensorId gate_up, std::int64_t width) {
    if (!config_.structure.gated) return activate(gate_up);
    const TensorId gate = limited(net_.part(gate_up, 1, net_.number(width)));
    const TensorId up = limited(net_.part(gate_up, 1, net_.number(width)));
    if (config_.structure.clamped_experts) return net_.block("clamped_swish", {{"width", width}}, {gate, up})[0];
    return net_.map("mul", {activate(gate), up});
}

/// Tokens are sorted by expert, multiplied group by group, put back and summed (transformers, integrations/moe.py,
/// grouped_mm_experts_forward). Groups of cards with tokens of their own that share the experts gather all tokens and
/// scatter the sums by NCCL: two calls that move as much as an all-reduce. Source: vLLM, allgather_reducescatter;
/// TensorRT-LLM, fused_moe without MNNVL's all-to-all; SGLang, dp_gather and dp_scatter.
TensorId Transformer::mix_experts(TensorId x, bool hashed) {
    const Experts& experts = config_.experts;
    ExpressionPool& pool = net_.pool();
    const std::int64_t depth = experts.latent_width > 0 ? experts.latent_width : config_.hidden;
    const Expression hidden = net_.number(depth);
    const std::int64_t count = experts.count / experts.cards;
    const Expression tokens = pool.multiply(pool.multiply(batch_, length_), net_.number(experts.token_groups));
    const Expression all_pairs = pool.multiply(tokens, net_.number(experts.per_token));
    // The card with most tokens: the highest of 2 to 16 normal sums of loads, 0.68 ln(cards) deviations above the mean.
    // An expert's load has 1.5 times the mean. Source: sampled from the power law (1.01) of AIConfigurator's workload.
    const double above =
        1.5 * std::sqrt(double(experts.cards) / double(experts.count)) * 0.68 * std::log(experts.cards);
    const Expression busiest = pool.multiply(all_pairs, net_.number(std::llround(100 * (1 + above))));
    const Expression pairs = pool.ceil_divide(busiest, net_.number(100 * experts.cards));
    const Expression active = pool.minimum(pairs, net_.number(count));
    const Expression rows = pool.ceil_divide(pairs, active);
    const Shape gathered_shape{net_.number(experts.token_groups), pool.multiply(batch_, length_), net_.shape(x).back()};
    const TensorId all =
        experts.token_groups == 1 ? x : net_.apply(OpKind::expand, "aten::expand", {x}, gathered_shape);
    TensorId flat = net_.view(all, {tokens, net_.shape(x).back()});
    const TensorId scores = route(flat, hashed);
    if (experts.latent_width > 0) flat = net_.linear("fc1_latent_proj", flat, depth, false);
    TensorId mixed = no_tensor;
    {
        const Network::Module module(net_, "experts", config_.title + "Experts");
        TensorId chosen = net_.view(scores, {all_pairs});
        if (experts.cards > 1) chosen = net_.part(chosen, 0, pairs);
        const ShapeBindings sizes{{"width", depth}, {"each", experts.per_token}, {"own", count}};
        const std::vector<TensorId> sorted = net_.block("sorted_pairs", sizes, {chosen, flat});
        const bool gated = config_.structure.gated;
        const TensorId up =
            expert_layer(gated ? "gate_up_proj" : "up_proj", sorted[1], (gated ? 2 : 1) * experts.width, active, rows);
        const TensorId down = expert_layer("down_proj", activate_experts(up, experts.width), depth, active, rows);
        const TensorId weighted = net_.map("mul", {down, sorted[2]});
        const TensorId restored = net_.block("restored_pairs", sizes, {weighted, sorted[0]})[0];
        if (experts.cards > 1) {
            mixed = net_.apply(OpKind::reduce, "aten::index_add", {restored}, {tokens, hidden}, {{"function", "sum"}});
        } else {
            mixed = net_.reduce("sum", net_.view(restored, {tokens, net_.number(experts.per_token), hidden}), 1, false);
        }
        if (experts.token_groups > 1) {
            mixed = sum_over(mixed, config_.cards * experts.token_groups, 2);
            mixed = net_.part(mixed, 0, pool.multiply(batch_, length_));
        }
        mixed = net_.view(mixed, {batch_, length_, hidden});
    }
    if (experts.latent_width > 0) mixed = net_.linear("fc2_latent_proj", mixed, config_.hidden, false);
    if (experts.shared_width > 0) {
        TensorId shared = net_.within("shared_experts", config_.title + "MLP", [&] {
            const TensorId own = dense(x, experts.shared_width);
            return experts.token_groups > 1 ? sum_over_cards(own) : own;
        });
        if (experts.shared_gate)
            shared = net_.map("mul", {shared, net_.map("sigmoid", {net_.linear("shared_expert_gate", x, 1, false)})});
        mixed = net_.map("add", {mixed, shared});
    }
    return experts.token_groups > 1 ? mixed : sum_over_cards(mixed);
}

TensorId Transformer::feed_forward(std::size_t index, TensorId x) {
    const Network::Module module(net_, "mlp", config_.title + "MLP");
    const Layer& layer = config_.layers[index];
    if (layer.feed_forward == FeedForward::experts) return mix_experts(x, layer.hashed);
    return sum_over_cards(dense(x, layer.mlp_width));
}

/// Each card has multiplied by its columns of the layer's inner width: the whole is the sum. Source: Shoeybi et al.,
/// "Megatron-LM", arXiv 1909.08053, section 3.
TensorId Transformer::sum_over(TensorId x, std::int64_t cards, std::int64_t calls) {
    if (cards == 1) return x;
    return net_.apply(OpKind::all_reduce, "all_reduce", {x}, net_.shape(x), {{"ranks", cards}, {"calls", calls}});
}

}  // namespace ftax::config
