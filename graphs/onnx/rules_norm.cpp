#include <fmt/format.h>

#include "graphs/onnx/rules.hpp"

namespace ftax::onnx_import {

void batch_norm(Node& n) {
    if (n.rank(0) < 2 && n.opset >= 9) n.fail("input must have a channel axis");
    n.output(0, n.dtype(0), n.dims(0));
    for (std::size_t i = 1; i < n.output_count(); ++i) n.output(i, n.dtype(3), n.dims(3));
    n.set("axis", std::int64_t{1});
}

void layer_norm(Node& n) {
    const Dims& input = n.dims(0);
    const std::size_t axis = n.axis(n.integer("axis", -1), input.size());
    n.output(0, n.dtype(0), input);
    Dims statistics = input;
    for (std::size_t i = axis; i < statistics.size(); ++i) statistics[i] = n.math().constant(1);
    n.output(1, DType::f32, statistics);
    n.output(2, DType::f32, statistics);
    n.set("axis", static_cast<std::int64_t>(axis));
}

void group_norm(Node& n) {
    const Dims& input = n.dims(0);
    if (input.size() < 2) n.fail("input must have a channel axis");
    const std::int64_t groups = n.attribute("num_groups") ? n.integer("num_groups", 0) : n.required_integer("groups");
    const bool channels_last = n.integer("channels_last", 0) == 1;
    const auto channels = n.math().constant_value(channels_last ? input.back() : input[1]);
    if (groups < 1 || (channels && *channels % groups != 0)) {
        n.fail(fmt::format("{} groups do not divide {} channels", groups, channels.value_or(0)));
    }
    n.set("groups", groups);
    n.output(0, n.dtype(0), input);
}

void channel_norm(Node& n) {
    if (n.rank(0) < 2) n.fail("input must have a channel axis");
    n.output(0, n.dtype(0), n.dims(0));
}

void lp_norm(Node& n) {
    n.set("axis", static_cast<std::int64_t>(n.axis(n.integer("axis", -1), n.rank(0))));
    n.output(0, n.dtype(0), n.dims(0));
}

void softmax(Node& n) {
    const std::size_t rank = n.rank(0);
    if (rank > 0) {
        n.set("axis", static_cast<std::int64_t>(n.axis(n.integer("axis", n.opset >= 13 || rank == 1 ? -1 : 1), rank)));
    }
    n.output(0, n.dtype(0), n.dims(0));
}

}  // namespace ftax::onnx_import
