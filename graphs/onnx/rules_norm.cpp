#include <algorithm>

#include "graphs/onnx/rules.hpp"

namespace ftax::onnx_import {

void batch_norm(Node& n) {
    if (n.rank(0) < 2 && n.opset >= 9) n.fail("input must have a channel axis");
    for (std::size_t i = 1; i < n.output_count(); ++i) n.output(i, n.dtype(3), n.dims(3));
    n.set("axis", std::int64_t{1});
}

void layer_norm(Node& n) {
    Dims statistics = n.dims(0);
    const std::size_t axis = n.set_axis(n.integer("axis", -1), statistics.size());
    for (std::size_t i = axis; i < statistics.size(); ++i) statistics[i] = n.math().constant(1);
    n.output(1, DType::f32, statistics);
    n.output(2, DType::f32, statistics);
}

void group_norm(Node& n) {
    const Dims& input = n.dims(0);
    if (input.size() < 2) n.fail("input must have a channel axis");
    const std::int64_t groups = n.attribute("num_groups") ? n.integer("num_groups", 0) : n.required_integer("groups");
    const bool channels_last = n.integer("channels_last", 0) == 1;
    const auto channels = n.math().constant_value(channels_last ? input.back() : input[1]);
    if (groups < 1 || (channels && *channels % groups != 0))
        n.fail("{} groups do not divide {} channels", groups, channels.value_or(0));
    n.set("groups", groups);
}

/// Instance norm, LRN: same shape.
void channel_norm(Node& n) {
    if (n.rank(0) < 2) n.fail("input must have a channel axis");
}

void lp_norm(Node& n) {
    n.set_axis(n.integer("axis", -1), n.rank(0));
}

void softmax(Node& n) {
    const std::size_t rank = n.rank(0);
    if (rank > 0) n.set_axis(n.integer("axis", n.opset >= 13 || rank == 1 ? -1 : 1), rank);
}

void reduce(Node& n) {
    const Dims& input = n.dims(0);
    const Node::List given = n.list("axes", 1);
    const bool keep = n.integer("keepdims", 1) != 0;
    if (given.given && !given.values) return n.unknown_output(0, n.dtype(0));
    std::vector<std::int64_t> axes;
    if (given.values)
        for (const std::int64_t a : *given.values) axes.push_back(static_cast<std::int64_t>(n.axis(a, input.size())));
    if (axes.empty()) {
        if (n.integer("noop_with_empty_axes", 0) != 0) {
            n.kind = OpKind::identity;
            return alias_first(n);
        }
        axes = all_axes(input.size());
    }
    std::ranges::sort(axes);
    n.output(0, n.dtype(0), n.reduced(input, axes, keep));
    n.set("axes", std::move(axes));
    n.set("keepdims", std::int64_t{keep});
}

void arg_reduce(Node& n) {
    const std::vector axes{static_cast<std::int64_t>(n.axis(n.integer("axis", 0), n.rank(0)))};
    const bool keep = n.integer("keepdims", 1) != 0;
    n.set("axes", axes);
    n.set("keepdims", std::int64_t{keep});
    n.output(0, DType::i64, n.reduced(n.dims(0), axes, keep));
}

void cumulative(Node& n) {
    if (const auto axis = n.integers_of(1); axis && axis->size() == 1) n.set_axis(axis->front(), n.rank(0));
}

void top_k(Node& n) {
    Dims result = n.dims(0);
    const std::size_t axis = n.set_axis(n.integer("axis", -1), result.size());
    result[axis] = n.opset < 10 ? n.math().constant(n.required_integer("k")) : n.only(1);
    n.output(0, n.dtype(0), result);
    n.output(1, DType::i64, result);
}

void unique(Node& n) {
    const Dims counts{unknown_dim};
    if (n.attribute("axis")) {
        n.result()[n.axis(n.integer("axis", 0), n.rank(0))] = unknown_dim;
    } else {
        n.output(0, n.dtype(0), counts);
    }
    for (std::size_t i = 1; i < 4; ++i) n.output(i, DType::i64, counts);
}

void det(Node& n) {
    if (n.rank(0) < 2) n.fail("input must be matrices");
    n.output(0, n.dtype(0), Dims(n.dims(0).begin(), n.dims(0).end() - 2));
}

}  // namespace ftax::onnx_import
