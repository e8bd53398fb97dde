#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/throw_error.hpp"
#include "predictors/nas/spaces.hpp"

namespace ftax::nas {
namespace {

/// NAS-Bench-201: 6 edges of a 4-node cell with 5 operations each, 3 stages of 5 cells, CIFAR images.
/// Source: Dong and Yang, "NAS-Bench-201", ICLR 2020, arXiv 2001.00326, section 2.
constexpr std::array<std::string_view, 5> operations{"none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3",
                                                     "avg_pool_3x3"};
enum Operation : int { none, skip_connect, nor_conv_1x1, nor_conv_3x3, avg_pool_3x3 };
constexpr int cells_per_stage = 5;

enum Kind : std::int16_t { stem, edge, reduction, head };
struct Edge {
    std::int16_t from, to;
};
constexpr std::array<Edge, 6> edges{{{0, 1}, {0, 2}, {1, 2}, {0, 3}, {1, 3}, {2, 3}}};

TensorId relu_conv_norm(GraphBuilder& net, TensorId x, std::int64_t channels, Window window) {
    return net.batch_norm(net.conv(net.relu(x), channels, window));
}

class NasBench201 final : public Space {
  public:
    std::string_view name() const override { return "nasbench201"; }
    std::vector<int> options() const override {
        return std::vector<int>(edges.size(), static_cast<int>(operations.size()));
    }

    /// "|op~0|+|op~0|op~1|+|op~0|op~1|op~2|"
    void parse(std::string_view text, std::vector<int>& choices) const override {
        choices.clear();
        std::size_t at = 0;
        const auto expect = [&](std::string_view token) {
            if (text.substr(at, token.size()) != token)
                throw_error(ErrorCode::usage, "nasbench201: expected '{}' at character {} of '{}'", token, at + 1,
                            excerpt(text));
            at += token.size();
        };
        for (const Edge& e : edges) {
            if (e.from == 0 && e.to > 1) expect("+");
            if (e.from == 0) expect("|");
            const std::size_t tilde = std::min(text.find('~', at), text.size());
            const auto found = std::ranges::find(operations, text.substr(at, tilde - at));
            if (found == operations.end())
                throw_error(ErrorCode::usage, "nasbench201: expected one of {} at character {} of '{}'",
                            fmt::join(operations, ", "), at + 1, excerpt(text));
            choices.push_back(static_cast<int>(found - operations.begin()));
            at = tilde;
            expect(fmt::format("~{}|", e.from));
        }
        if (at != text.size())
            throw_error(ErrorCode::usage, "nasbench201: unexpected text at character {} of '{}'", at + 1,
                        excerpt(text));
    }

    void blocks(std::span<const int> choices, std::vector<Block>& chain) const override {
        chain.push_back({{stem}});
        for (std::int16_t channels = 16; channels <= 64; channels = static_cast<std::int16_t>(channels * 2)) {
            if (channels > 16) chain.push_back({{reduction, channels}});
            for (int cell = 0; cell < cells_per_stage; ++cell)
                for (std::size_t i = 0; i < edges.size(); ++i)
                    chain.push_back(
                        {{edge, channels, static_cast<std::int16_t>(choices[i]), static_cast<std::int16_t>(i)}});
        }
        chain.push_back({{head}});
    }

    std::vector<TensorId> inputs(GraphBuilder& net, std::span<const int>) const override {
        return {net.input("x", {"batch", "3", "32", "32"})};
    }

    void build(GraphBuilder& net, const Block& block, std::vector<TensorId>& live) const override {
        if (block.fields[0] == stem) {
            live = {net.batch_norm(net.conv(live[0], 16, {.kernel = 3, .pad = 1}))};
        } else if (block.fields[0] == edge) {
            build_edge(net, block, live);
        } else if (block.fields[0] == reduction) {
            const std::int64_t channels = block.fields[1];
            const TensorId a = relu_conv_norm(net, live[0], channels, {.kernel = 3, .stride = 2, .pad = 1});
            const TensorId b = relu_conv_norm(net, a, channels, {.kernel = 3, .pad = 1});
            const TensorId shortcut = net.conv(net.average_pool(live[0], {.kernel = 2, .stride = 2}), channels);
            live = {net.add(shortcut, b)};
        } else {
            live = {net.linear(net.flatten(net.global_average_pool(net.relu(net.batch_norm(live[0]))), 1), 10)};
        }
    }

  private:
    /// live[0] is the input of the cell, live[1] to live[3] its nodes.
    static void build_edge(GraphBuilder& net, const Block& block, std::vector<TensorId>& live) {
        const std::int64_t channels = block.fields[1];
        const Edge& e = edges[static_cast<std::size_t>(block.fields[3])];
        if (e.to == 1) live.resize(1);
        const TensorId x = live[static_cast<std::size_t>(e.from)];
        TensorId y = x;
        const int operation = block.fields[2];
        if (operation == none) y = net.pointwise("mul", {x});  // the reference code multiplies by zero
        if (operation == nor_conv_1x1) y = relu_conv_norm(net, x, channels, {.kernel = 1});
        if (operation == nor_conv_3x3) y = relu_conv_norm(net, x, channels, {.kernel = 3, .pad = 1});
        if (operation == avg_pool_3x3) y = net.average_pool(x, {.kernel = 3, .stride = 1, .pad = 1});
        // Python's sum() adds every term to a running total that starts at the number 0.
        if (e.from == 0) {
            live.push_back(net.pointwise("add", {y}));
        } else {
            live[static_cast<std::size_t>(e.to)] = net.add(live[static_cast<std::size_t>(e.to)], y);
        }
        if (e.from == 2) live = {live[3]};
    }
};

}  // namespace

const Space& nasbench201_space() {
    static const NasBench201 space;
    return space;
}

}  // namespace ftax::nas
