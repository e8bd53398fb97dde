#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>

#include "ftax/work.hpp"
#include "graphs/aten/aten_call.hpp"
#include "tests/graphs/onnx/model_files.hpp"

// Convolutions and pools of random windows, in ONNX and in ATen, against windows counted one by one.

using namespace ftax;
using namespace ftax::test;

namespace {

using Sizes = std::vector<std::int64_t>;

struct Window {
    std::int64_t in, kernel, stride, dilation, begin, end;
    bool ceil_mode;

    [[nodiscard]] std::int64_t reach() const { return dilation * (kernel - 1) + 1; }

    /// Places of the window, from the left of the padding on. With ceil_mode one more may reach over the end, but has
    /// to begin in the input or in the padding before it. Source: PyTorch's and ONNX's documentation of pools.
    [[nodiscard]] std::int64_t places() const {
        std::int64_t count = 0, at = 0;
        for (; at + reach() <= begin + in + end; at += stride) ++count;
        const bool covered = at - stride + reach() == begin + in + end;
        return count + (ceil_mode && !covered && at < begin + in);
    }
};

struct Case {
    std::vector<Window> windows;
    std::int64_t batch, channels, filters, groups;

    explicit Case(std::mt19937& random, bool ceil_mode) {
        const auto draw = [&](int low, int high) {
            return std::int64_t{std::uniform_int_distribution<int>(low, high)(random)};
        };
        for (std::int64_t d = draw(1, 3); d > 0; --d) {
            Window w{draw(5, 12), draw(1, 4), draw(1, 3), draw(1, 2), 0, 0, ceil_mode};
            w.begin = draw(0, static_cast<int>(w.kernel) / 2);
            w.end = draw(0, static_cast<int>(w.kernel) / 2);
            w.in = std::max(w.in, w.reach());
            windows.push_back(w);
        }
        batch = draw(1, 3), groups = draw(1, 2), channels = groups * draw(1, 3), filters = groups * draw(1, 3);
    }

    [[nodiscard]] Sizes of(std::int64_t Window::*member) const {
        Sizes result;
        for (const Window& w : windows) result.push_back(w.*member);
        return result;
    }
    [[nodiscard]] Sizes input() const { return shape(channels, of(&Window::in)); }
    [[nodiscard]] Sizes output(std::int64_t out_channels) const {
        Sizes places;
        for (const Window& w : windows) places.push_back(w.places());
        return shape(out_channels, places);
    }
    [[nodiscard]] Sizes weight() const {
        Sizes result = of(&Window::kernel);
        result.insert(result.begin(), {filters, channels / groups});
        return result;
    }
    /// Two operations for each weight of each output.
    [[nodiscard]] std::int64_t flops() const {
        return 2 * product(output(filters)) * product(of(&Window::kernel)) * channels / groups;
    }

    static std::int64_t product(const Sizes& sizes) {
        std::int64_t result = 1;
        for (const std::int64_t size : sizes) result *= size;
        return result;
    }

  private:
    [[nodiscard]] Sizes shape(std::int64_t channel_count, Sizes spatial) const {
        spatial.insert(spatial.begin(), {batch, channel_count});
        return spatial;
    }
};

Sizes sizes_of(const Graph& graph, const std::vector<Expression>& shape) {
    Sizes result;
    for (const Expression dim : shape) result.push_back(graph.expressions.constant_value(dim).value_or(-1));
    return result;
}

std::vector<std::string> texts(const Sizes& sizes) {
    std::vector<std::string> result;
    for (const std::int64_t size : sizes) result.push_back(std::to_string(size));
    return result;
}

Sizes list(std::span<const std::int64_t> values) {
    return {values.begin(), values.end()};
}

void check_pads(const Op& op, const Case& c) {
    CHECK(list(op.integers("pad_begin")) == c.of(&Window::begin));
    CHECK(list(op.integers("pad_end")) == c.of(&Window::end));
    CHECK(list(op.integers("stride")) == c.of(&Window::stride));
}

Graph onnx_graph(const Case& c, const std::string& kind, const std::string& auto_pad) {
    OnnxModel model;
    model.input("x", texts(c.input())).output("y");
    if (kind == "Conv") model.weight("w", c.weight());
    auto& node =
        model.node(kind, kind == "Conv" ? std::vector<std::string>{"x", "w"} : std::vector<std::string>{"x"}, {"y"});
    Sizes pads = c.of(&Window::begin);
    for (const std::int64_t end : c.of(&Window::end)) pads.push_back(end);
    OnnxModel::attribute(node, "kernel_shape", c.of(&Window::kernel));
    OnnxModel::attribute(node, "strides", c.of(&Window::stride));
    OnnxModel::attribute(node, "dilations", c.of(&Window::dilation));
    if (kind == "Conv") OnnxModel::attribute(node, "group", c.groups);
    if (kind != "Conv") OnnxModel::attribute(node, "ceil_mode", std::int64_t{c.windows[0].ceil_mode});
    if (auto_pad.empty()) {
        OnnxModel::attribute(node, "pads", pads);
    } else {
        auto* attribute = node.add_attribute();
        attribute->set_name("auto_pad");
        attribute->set_type(::onnx::AttributeProto::STRING);
        attribute->set_s(auto_pad);
    }
    return model.import();
}

struct AtenGraph {
    Graph graph;
    AtenCall call;

    AtenGraph(const Case& c, const std::string& target) {
        call.target = target;
        call.name = "call";
        const bool conv = target.find("conv") != std::string::npos;
        tensor(conv ? "input" : "self", c.input());
        if (conv) tensor("weight", c.weight());
        if (!conv) numbers("kernel_size", c.of(&Window::kernel));
        numbers("stride", c.of(&Window::stride));
        numbers("dilation", c.of(&Window::dilation));
        if (conv) numbers("groups", {c.groups});
        if (!conv) numbers("ceil_mode", {c.windows[0].ceil_mode});
    }
    void tensor(const std::string& name, const Sizes& sizes) {
        graph.tensors.push_back({name, DType::f32, TensorRole::activation, true, expressions(sizes), {}, no_op});
        call.arguments.push_back({name, {static_cast<TensorId>(graph.tensors.size() - 1)}, {}, {}, {}, {}});
    }
    void numbers(const std::string& name, const Sizes& sizes) {
        call.arguments.push_back({name, {}, sizes, expressions(sizes), {}, {}});
    }
    std::vector<Expression> expressions(const Sizes& sizes) {
        std::vector<Expression> result;
        for (const std::int64_t size : sizes) result.push_back(graph.expressions.constant(size));
        return result;
    }
    /// Appends the operator; its output has the inferred shape.
    Sizes append() {
        const auto outputs = infer_aten(graph, call);
        REQUIRE(outputs);
        for (const AtenOutput& output : *outputs) {
            graph.tensors.push_back({"y", output.dtype, TensorRole::activation, true, output.shape, {}, no_op});
            call.outputs.push_back(static_cast<TensorId>(graph.tensors.size() - 1));
        }
        append_aten(graph, call);
        return sizes_of(graph, outputs->front().shape);
    }
};

}  // namespace

TEST_CASE("random convolutions of ONNX and ATen have an output for each place of their window, and its FLOPs") {
    std::mt19937 random(1);
    for (int i = 0; i < 200; ++i) {
        Case c(random, false);
        CAPTURE(i);
        const Graph graph = onnx_graph(c, "Conv", "");
        CHECK(sizes_of(graph, graph.tensors[graph.outputs[0]].shape) == c.output(c.filters));
        CHECK(work_of(graph, graph.ops.back(), bind(graph, {})).flops == c.flops());
        check_pads(graph.ops.back(), c);

        for (Window& w : c.windows) w.end = w.begin;  // ATen pads both sides alike
        AtenGraph aten(c, fmt::format("aten::conv{}d", c.windows.size()));
        aten.numbers("padding", c.of(&Window::begin));
        CHECK(aten.append() == c.output(c.filters));
        CHECK(work_of(aten.graph, aten.graph.ops.back(), bind(aten.graph, {})).flops == c.flops());
        check_pads(aten.graph.ops.back(), c);
    }
}

TEST_CASE("random pools of ONNX and ATen have an output for each place of their window, with ceil_mode or without") {
    std::mt19937 random(2);
    std::size_t rounded = 0;
    for (int i = 0; i < 300; ++i) {
        Case c(random, i % 3 != 0);
        CAPTURE(i);
        const Graph graph = onnx_graph(c, "MaxPool", "");
        CHECK(sizes_of(graph, graph.tensors[graph.outputs[0]].shape) == c.output(c.channels));
        check_pads(graph.ops.back(), c);

        for (Window& w : c.windows) w.end = w.begin;
        AtenGraph aten(c, fmt::format("aten::max_pool{}d", c.windows.size()));
        aten.numbers("padding", c.of(&Window::begin));
        const Sizes with = c.output(c.channels);
        CHECK(aten.append() == with);
        for (Window& w : c.windows) w.ceil_mode = false;
        rounded += with != c.output(c.channels);
    }
    CHECK(rounded > 50);
}

TEST_CASE("SAME_UPPER and padding=same put the odd element at the end, SAME_LOWER at the beginning") {
    std::mt19937 random(3);
    std::size_t odd = 0;
    for (int i = 0; i < 200; ++i) {
        Case c(random, false);
        CAPTURE(i);
        const auto pad = [&](bool lower) {
            for (Window& w : c.windows) {
                const std::int64_t places = (w.in + w.stride - 1) / w.stride;
                const std::int64_t total = std::max<std::int64_t>(0, (places - 1) * w.stride + w.reach() - w.in);
                w.begin = lower ? (total + 1) / 2 : total / 2;
                w.end = total - w.begin;
                odd += total % 2;
            }
        };
        for (const bool lower : {false, true}) {
            pad(lower);
            const Graph graph = onnx_graph(c, i % 2 == 0 ? "Conv" : "AveragePool", lower ? "SAME_LOWER" : "SAME_UPPER");
            check_pads(graph.ops.back(), c);
            Sizes places = sizes_of(graph, graph.tensors[graph.outputs[0]].shape);
            for (std::size_t d = 0; d < c.windows.size(); ++d)
                CHECK(places[d + 2] == (c.windows[d].in + c.windows[d].stride - 1) / c.windows[d].stride);
        }
        for (Window& w : c.windows) w.stride = 1;
        pad(false);
        AtenGraph aten(c, fmt::format("aten::conv{}d", c.windows.size()));
        aten.call.arguments.push_back({"padding", {}, {}, {}, {}, "same"});
        CHECK(aten.append() == [&] {
            Sizes same = c.input();
            same[1] = c.filters;
            return same;
        }());
        check_pads(aten.graph.ops.back(), c);
    }
    CHECK(odd > 100);
}
