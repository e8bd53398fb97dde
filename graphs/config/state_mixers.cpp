#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "graphs/config/transformer.hpp"

namespace ftax::config {

/// State of a layer over all earlier tokens, of fixed size.
TensorId Transformer::state(std::size_t index, std::string_view what, Shape shape) {
    return net_.input(fmt::format("past_key_values.{}.{}", index, what), std::move(shape), net_.dtype());
}

void Transformer::update_state(TensorId old, TensorId fresh) {
    states_.push_back(net_.apply(OpKind::scatter, "aten::copy_", {old, fresh}, net_.shape(old)));
}

/// `count` in prefill, 0 in a step of one token: steps update their state without the products over a chunk.
Expression Transformer::in_prefill(Expression count) {
    ExpressionPool& pool = net_.pool();
    return pool.multiply(count, pool.minimum(pool.add(length_, net_.number(-1)), net_.number(1)));
}

/// A causal convolution of each channel over the last tokens: [batch, length, channels]. Source: causal_conv1d_fn and
/// causal_conv1d_update of transformers, whose results have some tokens more that are cut off.
TensorId Transformer::short_convolution(std::size_t index, TensorId x, bool activated) {
    const StateSpace& space = config_.space;
    ExpressionPool& pool = net_.pool();
    const Expression channels = net_.shape(x)[2];
    const Expression taps = net_.number(space.kernel);
    const TensorId past = state(index, "conv_state", {batch_, channels, taps});
    const TensorId all = net_.concat({past, net_.swap(x, 1, 2)}, 2);
    update_state(past, net_.part(all, 2, taps));
    std::vector<TensorId> inputs{all, net_.parameter("conv1d.weight", {channels, net_.number(1), taps})};
    if (space.conv_bias) inputs.push_back(net_.parameter("conv1d.bias", {channels}));
    const Expression length = pool.add(pool.add(length_, net_.number(1)),
                                       in_prefill(net_.number(std::max<std::int64_t>(0, space.kernel - 2))));
    TensorId y = net_.conv(inputs, {batch_, channels, length}, 1, 0, *pool.constant_value(channels));
    y = net_.part(y, 2, length_);
    if (activated) y = net_.map("silu", {y});
    return net_.swap(y, 1, 2);
}

/// A product of each chunk of tokens and head, in prefill alone.
TensorId Transformer::chunk_product(TensorId x, std::int64_t rows, std::int64_t depth, std::int64_t columns) {
    ExpressionPool& pool = net_.pool();
    const Expression chunks = in_prefill(pool.ceil_divide(length_, net_.number(config_.space.chunk)));
    const Expression products = pool.multiply(pool.multiply(batch_, net_.number(config_.space.heads)), chunks);
    const TensorId left = net_.view(x, {products, net_.number(rows), net_.number(depth)});
    const TensorId right = net_.view(x, {products, net_.number(depth), net_.number(columns)});
    return net_.matmul(left, right, "aten::bmm");
}

/// Decays the state of each head and adds the update, once per chunk.
TensorId Transformer::decay_state(std::size_t index, TensorId gates, Shape shape) {
    const TensorId past = state(index, "state", std::move(shape));
    const TensorId fresh = net_.map("add", {net_.map("mul", {past, gates}), gates});
    update_state(past, fresh);
    return fresh;
}

/// Mamba: a state of each channel. Source: MambaMixer, JambaMambaMixer.
TensorId Transformer::mamba(std::size_t index, TensorId x) {
    const StateSpace& space = config_.space;
    const Expression inner = net_.number(space.inner);
    const TensorId both = net_.linear("in_proj", x, 2 * space.inner, space.bias);
    const TensorId gate = net_.part(both, 2, inner);
    const TensorId y = short_convolution(index, net_.part(both, 2, inner), true);
    const TensorId projected = net_.linear("x_proj", y, space.rank + 2 * space.state, false);
    TensorId step = net_.part(projected, 2, net_.number(space.rank));
    TensorId input = net_.part(projected, 2, net_.number(space.state));
    TensorId output = net_.part(projected, 2, net_.number(space.state));
    if (space.inner_norm) {
        step = norm("dt_layernorm", step);
        input = norm("b_layernorm", input);
        output = norm("c_layernorm", output);
    }
    step = net_.map("softplus", {net_.linear("dt_proj", step, space.inner, true)});
    const TensorId rates = net_.map("exp", {net_.parameter("A_log", {inner, net_.number(space.state)})});
    const Shape each{batch_, length_, inner, net_.number(space.state)};
    const TensorId decay = net_.map("mul", {step, rates}, each);
    const TensorId added = net_.map("mul", {step, input}, each);
    const TensorId past = state(index, "state", {batch_, inner, net_.number(space.state)});
    const TensorId states = net_.map("add", {net_.map("mul", {net_.map("exp", {decay}), past}), added});
    update_state(past, states);
    const TensorId column = net_.view(output, {batch_, length_, net_.number(space.state), net_.number(1)});
    TensorId result = net_.view(net_.matmul(states, column), net_.shape(y));
    result = net_.map("add", {result, net_.map("mul", {y, net_.parameter("D", {inner})})});
    return net_.linear("out_proj", net_.map("mul", {result, net_.map("silu", {gate})}), config_.hidden, space.bias);
}

/// Mamba-2: a matrix of each head, chunks of tokens at once. Source: mamba2_chunk_scan, mamba2_selective_state_update.
TensorId Transformer::mamba2(std::size_t index, TensorId x) {
    const StateSpace& space = config_.space;
    ExpressionPool& pool = net_.pool();
    const std::int64_t width = space.inner / space.heads;
    const std::int64_t channels = space.inner + 2 * space.key_heads * space.state;
    const TensorId all = net_.linear("in_proj", x, space.inner + channels + space.heads, space.bias);
    const TensorId gate = net_.part(all, 2, net_.number(space.inner));
    const TensorId mixed = short_convolution(index, net_.part(all, 2, net_.number(channels)), true);
    TensorId step = net_.part(all, 2, net_.number(space.heads));
    step = net_.map("softplus", {net_.map("add", {step, net_.parameter("dt_bias", {net_.number(space.heads)})})});
    const TensorId rates = net_.map("mul", {step, net_.parameter("A_log", {net_.number(space.heads)})});
    const TensorId values = net_.part(mixed, 2, net_.number(space.inner));
    const Shape matrix{batch_, net_.number(space.heads), net_.number(width), net_.number(space.state)};
    const TensorId states = decay_state(index, net_.map("exp", {rates}), matrix);
    const std::int64_t chunk = space.chunk;
    const TensorId scores = net_.map("mul", {chunk_product(mixed, chunk, space.state, chunk), rates});
    const TensorId within = chunk_product(scores, chunk, chunk, width);
    const TensorId added = chunk_product(mixed, space.state, chunk, width);
    const TensorId before = chunk_product(mixed, chunk, space.state, width);
    // Of one token the state alone makes the result; of a chunk, products between the chunks.
    const Expression chunks = pool.add(pool.ceil_divide(length_, net_.number(chunk)), net_.number(1));
    const Expression heads = pool.multiply(batch_, net_.number(space.heads));
    const Expression between = in_prefill(heads);
    const Expression numbers = net_.number(width * space.state);
    const TensorId steps = net_.view(rates, {between, chunks, chunks});
    const TensorId carried = net_.matmul(steps, net_.view(states, {between, chunks, numbers}), "aten::bmm");
    const Expression alone = pool.add(heads, pool.multiply(net_.number(-1), between));
    const TensorId held = net_.view(states, {alone, net_.number(width), net_.number(space.state)});
    const TensorId column = net_.view(mixed, {alone, net_.number(space.state), net_.number(1)});
    const TensorId read = net_.matmul(held, column, "aten::bmm");
    const TensorId direct = net_.map("mul", {values, net_.parameter("D", {net_.number(space.heads)})});
    TensorId result = net_.map("add", {direct, within, added, before, carried, read});
    result = net_.map("mul", {result, net_.map("silu", {gate})});
    if (space.inner_norm) result = net_.norm("norm", result, NormKind::rms);
    return net_.linear("out_proj", result, config_.hidden, space.bias);
}

/// The gated delta rule: a matrix of each head; in Kimi's delta attention each channel decays by itself. Source:
/// Qwen3NextGatedDeltaNet, torch_chunk_gated_delta_rule; KimiLinearDeltaAttention, BailingHybridDeltaAttention.
TensorId Transformer::delta(std::size_t index, TensorId x) {
    const StateSpace& space = config_.space;
    const std::int64_t width = space.inner / space.heads;
    const std::int64_t keys = space.key_heads * space.state;
    const Mixer kind = config_.layers[index].mixer;
    const std::int64_t gated = kind == Mixer::delta ? 1 : 0;
    const TensorId all = net_.linear("in_proj_qkvz", x, 2 * keys + (1 + gated) * space.inner, false);
    const TensorId gates = net_.linear("in_proj_ba", x, (1 + gated) * space.heads, false);
    const auto gate_of = [&](const std::string& name, TensorId packed, std::int64_t to) {
        if (kind == Mixer::delta) return net_.part(packed, 2, net_.number(to));
        const TensorId from = kind == Mixer::kda ? net_.linear(name + "_a_proj", x, width, false) : x;
        return net_.linear(name + "_b_proj", from, space.inner, false);
    };
    const TensorId gate = gate_of("g", all, space.inner);
    const TensorId mixed = short_convolution(index, net_.part(all, 2, net_.number(2 * keys + space.inner)), true);
    const Expression heads = net_.number(space.heads);
    const TensorId beta = net_.map("sigmoid", {net_.part(gates, 2, heads)});
    TensorId decay = gate_of("f", gates, space.heads);
    decay = net_.map("add", {decay, net_.parameter("dt_bias", {net_.shape(decay)[2]})});
    decay = net_.map("mul", {net_.map("softplus", {decay}), net_.parameter("A_log", {heads})});
    const TensorId values = net_.part(mixed, 2, net_.number(space.inner));
    const std::int64_t chunk = space.chunk;
    const Shape matrix{batch_, heads, net_.number(space.state), net_.number(width)};
    const TensorId states = decay_state(index, net_.map("exp", {decay}), matrix);
    const TensorId system = net_.map("mul", {chunk_product(mixed, chunk, space.state, chunk), beta});
    const TensorId scores = net_.map("mul", {chunk_product(mixed, chunk, space.state, chunk), beta});
    const TensorId known = chunk_product(system, chunk, space.state, width);
    const TensorId before = chunk_product(mixed, chunk, space.state, width);
    const TensorId within = chunk_product(scores, chunk, chunk, width);
    const TensorId added = chunk_product(mixed, space.state, chunk, width);
    // What the state already holds of the new value, and the result.
    const TensorId held = net_.reduce("sum", states, 2, false);
    const TensorId read = net_.reduce("sum", states, 2, false);
    const TensorId mixture = net_.map("add", {values, known, before, within, added, held, read});
    TensorId result = net_.view(mixture, {batch_, length_, heads, net_.number(width)});
    result = net_.map("mul", {net_.norm("norm", result, NormKind::rms), net_.map("silu", {gate})});
    return net_.linear("out_proj", net_.view(result, net_.shape(values)), config_.hidden, false);
}

/// LFM2: a convolution between two gates. Source: Lfm2ShortConv.
TensorId Transformer::gated_convolution(std::size_t index, TensorId x) {
    const StateSpace& space = config_.space;
    const Expression inner = net_.number(space.inner);
    const TensorId all = net_.linear("in_proj", x, 3 * space.inner, space.bias);
    const TensorId before = net_.part(all, 2, inner);
    const TensorId after = net_.part(all, 2, inner);
    const TensorId gated = net_.map("mul", {before, net_.part(all, 2, inner)});
    const TensorId mixed = net_.map("mul", {after, short_convolution(index, gated, false)});
    return net_.linear("out_proj", mixed, config_.hidden, space.bias);
}

/// Lightning attention: linear attention that decays, a gate and a norm. Source: MiniMaxLightningAttention.
TensorId Transformer::lightning(std::size_t index, TensorId x) {
    ExpressionPool& pool = net_.pool();
    const std::int64_t width = config_.head_width;
    const std::int64_t inner = config_.heads * width;
    const TensorId all = net_.map("silu", {net_.linear("qkv_proj", x, 3 * inner, false)});
    const auto next = [&] { return heads_of(net_.part(all, 2, net_.number(inner)), config_.heads, width); };
    const TensorId query = next(), key = next(), value = next();
    const Expression heads = net_.number(config_.heads);
    const Expression wide = net_.number(width);
    // Blocks of tokens attend to themselves; a step of one token reads the state alone.
    const Expression block = pool.minimum(length_, net_.number(config_.space.chunk));
    const Expression blocks = pool.multiply(in_prefill(heads), pool.ceil_divide(length_, block));
    const auto split = [&](TensorId tensor) { return net_.view(tensor, {batch_, blocks, block, wide}); };
    const TensorId rows = split(query);
    const TensorId scores = net_.map_scalar("mul", net_.matmul(rows, net_.swap(split(key), 2, 3)), 1);
    const TensorId within = net_.matmul(scores, split(value));
    const TensorId outer = net_.matmul(net_.swap(key, 2, 3), value);
    const TensorId states = decay_state(index, outer, {batch_, heads, wide, wide});
    const TensorId mixed = net_.matmul(query, states);
    TensorId result =
        net_.view(net_.swap(net_.map("add", {mixed, within}), 1, 2), {batch_, length_, net_.number(inner)});
    result = net_.norm("norm", result, NormKind::rms);
    result = net_.map("mul", {net_.map("sigmoid", {net_.linear("output_gate", x, inner, false)}), result});
    return net_.linear("out_proj", result, config_.hidden, false);
}

TensorId Transformer::mix(std::size_t index, TensorId x) {
    const Mixer mixer = config_.layers[index].mixer;
    const bool both = mixer == Mixer::both;
    if (mixer == Mixer::attention || both) {
        const Network::Module module(net_, "self_attn", config_.title + "Attention");
        const TensorId attended = attend(index, x, no_tensor);
        if (!both) return attended;
        return net_.map("add", {attended, sum_over_cards(mamba2(index, x))});
    }
    const Network::Module module(net_, "mixer", config_.title + "Mixer");
    if (mixer == Mixer::linear) return net_.linear("linear_attn", x, config_.hidden, config_.output_bias);
    const TensorId mixed = mixer == Mixer::mamba       ? mamba(index, x)
                           : mixer == Mixer::mamba2    ? mamba2(index, x)
                           : mixer == Mixer::conv      ? gated_convolution(index, x)
                           : mixer == Mixer::lightning ? lightning(index, x)
                                                       : delta(index, x);
    return sum_over_cards(mixed);
}

}  // namespace ftax::config
