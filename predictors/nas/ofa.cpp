#include <array>

#include "predictors/nas/once_for_all.hpp"
#include "predictors/nas/spaces.hpp"

namespace ftax::nas {
namespace {

using namespace once_for_all;

/// Once-for-all MobileNetV3 (width 1.0): 5 stages of 2 to 4 inverted bottlenecks, each with its own kernel and
/// expansion, at any resolution.
/// Source: Cai et al., "Once-for-All", ICLR 2020, arXiv 1908.09791, section 4.1; widths, activations and squeeze-excite
/// of MobileNetV3-Large (Howard et al., ICCV 2019, arXiv 1905.02244, table 1).
struct Stage {
    std::int16_t channels, stride;
    bool hard_swish, squeeze_excite;
};
constexpr std::array<Stage, 5> stages{
    {{24, 2, false, false}, {40, 2, false, true}, {80, 2, true, false}, {112, 1, true, true}, {160, 2, true, true}}};
constexpr std::array<int, 3> kernels{3, 5, 7};
constexpr std::array<int, 3> expansions{3, 4, 6};
constexpr std::array<int, 3> depths{2, 3, 4};
constexpr std::size_t blocks_per_stage = 4;
constexpr std::size_t block_count = stages.size() * blocks_per_stage;

// Choices: kernel of 20 blocks, expansion of 20 blocks, depth of 5 stages, image side.
constexpr std::size_t first_expansion = block_count;
constexpr std::size_t first_depth = 2 * block_count;

enum Kind : std::int16_t { stem, bottleneck, head };

class OfaMobileNetV3 final : public ListSpace {
  public:
    OfaMobileNetV3()
        : ListSpace("ofa", {{{"ks", block_count, {"3", "5", "7"}},
                             {"e", block_count, {"3", "4", "6"}},
                             {"d", stages.size(), {"2", "3", "4"}}}}) {}

    void blocks(std::span<const int> choices, std::vector<Block>& chain) const override {
        auto side = static_cast<std::int16_t>(side_of(choices));
        chain.push_back({{stem, side}});
        side = halve(side);
        std::int16_t channels = 16;
        for (std::size_t s = 0; s < stages.size(); ++s) {
            const int depth = depths[static_cast<std::size_t>(choices[first_depth + s])];
            for (int i = 0; i < depth; ++i) {
                const std::size_t at = s * blocks_per_stage + static_cast<std::size_t>(i);
                const std::int16_t stride = i == 0 ? stages[s].stride : std::int16_t{1};
                chain.push_back(
                    {{bottleneck, side, channels, static_cast<std::int16_t>(s), stride,
                      static_cast<std::int16_t>(kernels[static_cast<std::size_t>(choices[at])]),
                      static_cast<std::int16_t>(expansions[static_cast<std::size_t>(choices[first_expansion + at])])}});
                if (stride == 2) side = halve(side);
                channels = stages[s].channels;
            }
        }
        chain.push_back({{head, side}});
    }

    void build(GraphBuilder& net, const Block& block, std::vector<TensorId>& live) const override {
        TensorId x = live[0];
        if (block.fields[0] == stem) {
            x = hard_swish(net, net.batch_norm(net.conv(x, 16, {.kernel = 3, .stride = 2, .pad = 1})));
            const TensorId deep = net.relu(net.batch_norm(net.conv(x, 16, {.kernel = 3, .pad = 1, .groups = 16})));
            live = {net.add(net.batch_norm(net.conv(deep, 16)), x)};
        } else if (block.fields[0] == bottleneck) {
            live = {build_bottleneck(net, block, x)};
        } else {
            x = hard_swish(net, net.batch_norm(net.conv(x, 960)));
            x = hard_swish(net, net.conv(mean_over_image(net, x), 1280));
            live = {net.linear(net.flatten(x, 1), 1000)};
        }
    }

  private:
    // The reference code writes both activations out: x · relu6(x + 3) / 6 and relu6(x + 3) / 6.
    static TensorId hard_swish(GraphBuilder& net, TensorId x) {
        return net.pointwise("div", {net.pointwise("mul", {x, net.pointwise("relu6", {net.pointwise("add", {x})})})});
    }

    static TensorId mean_over_image(GraphBuilder& net, TensorId x) {
        for (const std::int64_t axis : {3, 2}) {
            Tensor reduced = net.graph().tensors[x];
            reduced.name.clear();
            reduced.role = TensorRole::activation;
            reduced.shape[static_cast<std::size_t>(axis)] = net.graph().expressions.constant(1);
            x = net.op(OpKind::reduce, "aten::mean", {x},
                       {{"function", std::string("mean")}, {"axes", std::vector<std::int64_t>{axis}}}, {reduced})[0];
        }
        return x;
    }

    static TensorId build_bottleneck(GraphBuilder& net, const Block& block, TensorId x) {
        const auto [kind, side, in, stage_index, stride, kernel, expansion, unused] = block.fields;
        const Stage& stage = stages[static_cast<std::size_t>(stage_index)];
        const std::int64_t wide = round_channels(in * expansion);
        const auto activate = [&](TensorId t) { return stage.hard_swish ? hard_swish(net, t) : net.relu(t); };
        TensorId y = activate(net.batch_norm(net.conv(x, wide)));
        y = activate(
            net.batch_norm(net.conv(y, wide, {.kernel = kernel, .stride = stride, .pad = kernel / 2, .groups = wide})));
        if (stage.squeeze_excite) {
            const TensorId squeezed =
                net.relu(net.conv(mean_over_image(net, y), round_channels(double(wide / 4)), {}, true));
            const TensorId gate = net.pointwise("add", {net.conv(squeezed, wide, {}, true)});
            y = net.pointwise("mul", {y, net.pointwise("div", {net.pointwise("relu6", {gate})})});
        }
        y = net.batch_norm(net.conv(y, stage.channels));
        return in == stage.channels && stride == 1 ? net.add(y, x) : y;
    }
};

}  // namespace

const Space& ofa_mobilenet_v3_space() {
    static const OfaMobileNetV3 space;
    return space;
}

}  // namespace ftax::nas
