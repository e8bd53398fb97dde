#include <fmt/format.h>

#include <algorithm>

#include "graphs/config/transformer.hpp"

namespace ftax::config {

/// A mixer whose state over all earlier tokens has a fixed size.
TensorId Transformer::mix_state(std::size_t index, TensorId x) {
    const StateSpace& space = config_.space;
    const Mixer mixer = config_.layers[index].mixer;
    const bool is_lightning = mixer == Mixer::lightning, by_head = mixer == Mixer::delta;
    const std::int64_t heads = is_lightning ? config_.heads : space.heads;
    const std::int64_t inner = is_lightning ? heads * config_.head_width : space.inner;
    const std::int64_t width = inner / std::max<std::int64_t>(1, heads), keys = space.key_heads * space.state;
    ShapeBindings numbers{{"hidden", config_.hidden}, {"inner", inner}, {"channels", inner + 2 * keys}};
    numbers.insert({{"heads", heads}, {"width", width}, {"state", space.state}, {"decays", by_head ? heads : inner}});
    numbers.insert({{"chunk", space.chunk}, {"rank", space.rank}, {"kernel", space.kernel}, {"bias", space.bias}});
    numbers.insert({{"precise", space.wide}, {"imprecise", !space.wide}});
    numbers.insert({{"normed", space.inner_norm}, {"unnormed", !space.inner_norm}, {"scalar", by_head}});
    numbers.insert({{"low", mixer == Mixer::kda}, {"wide", mixer == Mixer::kda_wide}, {"conv_bias", space.conv_bias}});
    const std::string_view name = mixer == Mixer::mamba                               ? "mamba"
                                  : mixer == Mixer::conv                              ? "conv"
                                  : is_lightning                                      ? "lightning"
                                  : mixer >= Mixer::delta && mixer <= Mixer::kda_wide ? "delta"
                                                                                      : "mamba2";
    const std::vector<TensorId> results = net_.block(name, numbers, {x}, fmt::format("past_key_values.{}", index));
    states_.insert(states_.end(), results.begin() + 1, results.end());
    return sum_over_cards(results[0]);
}

TensorId Transformer::mix(std::size_t index, TensorId x) {
    const Mixer mixer = config_.layers[index].mixer;
    if (mixer == Mixer::attention || mixer == Mixer::both) {
        const Network::Module module(net_, "self_attn", config_.title + "Attention");
        const TensorId attended = attend(index, x, no_tensor);
        return mixer == Mixer::both ? net_.map("add", {attended, mix_state(index, x)}) : attended;
    }
    const Network::Module module(net_, "mixer", config_.title + "Mixer");
    return mixer == Mixer::linear ? net_.linear("linear_attn", x, config_.hidden, config_.output_bias)
                                  : mix_state(index, x);
}

}  // namespace ftax::config
