#include <array>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/throw_error.hpp"
#include "predictors/nas/spaces.hpp"

namespace ftax::nas {
namespace {

/// FBNet for 32 × 32 images and 100 classes, 22 layers with 9 candidates each.
/// Source: Wu et al., "FBNet", CVPR 2019, arXiv 1812.03443, table 1 and 2; strides and head as HW-NAS-Bench
/// (Li et al., ICLR 2021, arXiv 2103.10584) uses them for CIFAR.
struct Candidate {
    std::int64_t kernel, expansion, groups;
};
constexpr std::array<Candidate, 8> candidates{
    {{3, 1, 1}, {3, 1, 2}, {3, 3, 1}, {3, 6, 1}, {5, 1, 1}, {5, 1, 2}, {5, 3, 1}, {5, 6, 1}}};
constexpr int skip = 8;

struct Stage {
    int layers;
    std::int16_t channels;
    std::int16_t stride;
};
constexpr std::array<Stage, 7> stages{
    {{1, 16, 1}, {4, 24, 1}, {4, 32, 2}, {4, 64, 2}, {4, 112, 1}, {4, 184, 2}, {1, 352, 1}}};
constexpr std::size_t layer_count = 22;
constexpr std::int16_t stem_channels = 16;
constexpr std::int16_t image_side = 32;
constexpr std::int64_t head_channels = 1504;

enum Kind : std::int16_t { stem, layer, head };

class FbNet final : public Space {
  public:
    std::string_view name() const override { return "fbnet"; }
    std::vector<int> options() const override { return std::vector<int>(layer_count, skip + 1); }

    /// The measured latencies (nas_fbnet.csv) add up layer by layer: layers of late stages cost their host time at
    /// batch 64 too, where an asynchronous device would still be busy with early ones.
    bool waits_after_blocks() const override { return true; }

    /// "7-8-1-…", 22 candidate numbers from 0 to 8.
    void parse(std::string_view text, std::vector<int>& choices) const override {
        choices.clear();
        parse_integers(name(), text, '-', choices);
        if (choices.size() != layer_count)
            throw_error(ErrorCode::usage, "fbnet: expected {} numbers, not {}, in '{}'", layer_count, choices.size(),
                        excerpt(text));
        for (const int choice : choices)
            if (choice < 0 || choice > skip)
                throw_error(ErrorCode::usage, "fbnet: expected numbers from 0 to {}, not {}, in '{}'", skip, choice,
                            excerpt(text));
    }

    void blocks(std::span<const int> choices, std::vector<Block>& chain) const override {
        chain.push_back({{stem}});
        std::int16_t channels = stem_channels;
        std::int16_t side = image_side;
        std::size_t at = 0;
        for (const Stage& stage : stages) {
            for (int i = 0; i < stage.layers; ++i) {
                const std::int16_t stride = i == 0 ? stage.stride : std::int16_t{1};
                chain.push_back(
                    {{layer, channels, stage.channels, stride, side, static_cast<std::int16_t>(choices[at++])}});
                channels = stage.channels;
                side = static_cast<std::int16_t>(side / stride);
            }
        }
        chain.push_back({{head}});
    }

    std::vector<TensorId> inputs(GraphBuilder& net, std::span<const int>) const override {
        return {net.input("x", {"batch", "3", "32", "32"})};
    }

    void build(GraphBuilder& net, const Block& block, std::vector<TensorId>& live) const override {
        const int kind = block.fields[0];
        if (kind == stem) live = {conv_norm_relu(net, live[0], stem_channels, {.kernel = 3, .pad = 1})};
        if (kind == layer) live = {build_layer(net, block, live[0])};
        if (kind == stem || kind == layer) return;
        const TensorId features = net.global_average_pool(conv_norm_relu(net, live[0], head_channels, {}));
        live = {net.linear(net.flatten(features, 1), 100)};
    }

  private:
    static TensorId conv_norm_relu(GraphBuilder& net, TensorId x, std::int64_t channels, Window window) {
        return net.relu(net.batch_norm(net.conv(x, channels, window)));
    }

    static TensorId build_layer(GraphBuilder& net, const Block& block, TensorId x) {
        const auto [kind, in, out, stride, side, choice, unused, unused_too] = block.fields;
        const bool same_shape = in == out && stride == 1;
        if (choice == skip) return same_shape ? x : conv_norm_relu(net, x, out, {.stride = stride});
        const auto [kernel, expansion, groups] = candidates[static_cast<std::size_t>(choice)];
        const std::int64_t wide = in * expansion;
        TensorId y = conv_norm_relu(net, x, wide, {.groups = groups});
        if (groups > 1) y = shuffle_channels(net, y, wide, groups, side);
        const std::int64_t pad = (kernel - stride + 1) / 2;
        y = conv_norm_relu(net, y, wide, {.kernel = kernel, .stride = stride, .pad = pad, .groups = wide});
        y = net.batch_norm(net.conv(y, out, {.groups = groups}));
        return same_shape ? net.add(y, x) : y;
    }

    /// view, permute, contiguous, view
    static TensorId shuffle_channels(GraphBuilder& net, TensorId x, std::int64_t channels, std::int64_t groups,
                                     std::int64_t side) {
        const auto text = [](std::int64_t value) { return std::to_string(value); };
        const TensorId split = net.reshape(x, {"batch", text(groups), text(channels / groups), text(side), text(side)});
        const TensorId permuted = net.transpose(split, {0, 2, 1, 3, 4});
        Tensor contiguous = net.graph().tensors[permuted];
        contiguous.name.clear();
        const TensorId copied = net.op(OpKind::copy, "aten::contiguous", {permuted}, {}, {contiguous})[0];
        return net.reshape(copied, {"batch", text(channels), text(side), text(side)});
    }
};

}  // namespace

const Space& fbnet_space() {
    static const FbNet space;
    return space;
}

}  // namespace ftax::nas
