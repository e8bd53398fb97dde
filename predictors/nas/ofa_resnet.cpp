#include <array>
#include <cmath>

#include "predictors/nas/once_for_all.hpp"
#include "predictors/nas/spaces.hpp"

namespace ftax::nas {
namespace {

using namespace once_for_all;

/// Once-for-all ResNet-50-D: 4 stages of bottlenecks, elastic in depth, in expansion and in width.
/// Source: Cai et al., "Once-for-All", ICLR 2020, arXiv 1908.09791, and its code (elastic_nn/networks/ofa_resnets.py);
/// stem and average-pooled shortcuts of ResNet-D (He et al., CVPR 2019, arXiv 1812.01187, figure 2).
struct Stage {
    std::int16_t channels, stride;
    int least_blocks;
};
constexpr std::array<Stage, 4> stages{{{256, 1, 2}, {512, 2, 2}, {1024, 2, 4}, {2048, 2, 2}}};
constexpr int most_extra_blocks = 2;
constexpr std::size_t block_count = 18;
constexpr std::array<double, 3> widths{0.65, 0.8, 1.0};
constexpr std::array<double, 3> expansions{0.2, 0.25, 0.35};

// Choices: depths of stem and 4 stages, expansions of 18 blocks, widths of stem (middle, end) and 4 stages, image side.
constexpr std::size_t depth_count = 1 + stages.size();
constexpr std::size_t width_count = 2 + stages.size();
constexpr std::size_t first_expansion = depth_count;
constexpr std::size_t first_width = first_expansion + block_count;

enum Kind : std::int16_t { stem, bottleneck, head };

std::int16_t scaled(double channels, int width) {
    return static_cast<std::int16_t>(round_channels(channels * widths[static_cast<std::size_t>(width)]));
}

class OfaResNet final : public ListSpace {
  public:
    OfaResNet()
        : ListSpace("ofa-resnet", {{{"d", depth_count, {"0", "1", "2"}},
                                    {"e", block_count, {"0.2", "0.25", "0.35"}},
                                    {"w", width_count, {"0", "1", "2"}}}}) {}

    void blocks(std::span<const int> choices, std::vector<Block>& chain) const override {
        auto side = static_cast<std::int16_t>(side_of(choices));
        std::int16_t channels = scaled(64, choices[first_width + 1]);
        const bool deep_stem = choices[0] == most_extra_blocks;
        chain.push_back({{stem, side, scaled(32, choices[first_width]), channels, deep_stem}});
        side = halve(halve(side));
        std::size_t first_block = first_expansion;
        for (std::size_t s = 0; s < stages.size(); ++s) {
            const std::int16_t out = scaled(stages[s].channels, choices[first_width + 2 + s]);
            const int depth = stages[s].least_blocks + choices[1 + s];
            for (int i = 0; i < depth; ++i) {
                const std::int16_t stride = i == 0 ? stages[s].stride : std::int16_t{1};
                const auto expansion = static_cast<std::int16_t>(choices[first_block + static_cast<std::size_t>(i)]);
                chain.push_back({{bottleneck, side, channels, out, stride, expansion}});
                if (stride == 2) side = halve(side);
                channels = out;
            }
            first_block += static_cast<std::size_t>(stages[s].least_blocks + most_extra_blocks);
        }
        chain.push_back({{head, side, channels}});
    }

    void build(GraphBuilder& net, const Block& block, std::vector<TensorId>& live) const override {
        const int kind = block.fields[0];
        live = {kind == stem         ? build_stem(net, block, live[0])
                : kind == bottleneck ? build_bottleneck(net, block, live[0])
                                     : net.linear(net.flatten(net.global_average_pool(live[0]), 1), 1000)};
    }

  private:
    static TensorId conv_norm(GraphBuilder& net, TensorId x, std::int64_t channels, Window window = {}) {
        return net.batch_norm(net.conv(x, channels, window));
    }

    static TensorId build_stem(GraphBuilder& net, const Block& block, TensorId x) {
        const auto [kind, side, middle, end, deep, a, b, c] = block.fields;
        x = net.relu(conv_norm(net, x, middle, {.kernel = 3, .stride = 2, .pad = 1}));
        if (deep) x = net.add(net.relu(conv_norm(net, x, middle, {.kernel = 3, .pad = 1})), x);
        x = net.relu(conv_norm(net, x, end, {.kernel = 3, .pad = 1}));
        return net.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
    }

    static TensorId build_bottleneck(GraphBuilder& net, const Block& block, TensorId x) {
        const auto [kind, side, in, out, stride, expansion, a, b] = block.fields;
        const std::int64_t middle = round_channels(std::round(out * expansions[static_cast<std::size_t>(expansion)]));
        TensorId y = net.relu(conv_norm(net, x, middle));
        y = net.relu(conv_norm(net, y, middle, {.kernel = 3, .stride = stride, .pad = 1}));
        y = conv_norm(net, y, out);
        TensorId shortcut = x;
        if (in != out || stride != 1) {
            // Windows of the shortcut that reach over an odd edge count too (ceil_mode): padded here, same shape.
            const std::int64_t pad = stride == 2 && side % 2 == 1 ? 1 : 0;
            shortcut = conv_norm(net, net.average_pool(x, {.kernel = stride, .stride = stride, .pad = pad}), out);
        }
        return net.relu(net.add(y, shortcut));
    }
};

}  // namespace

const Space& ofa_resnet_space() {
    static const OfaResNet space;
    return space;
}

}  // namespace ftax::nas
