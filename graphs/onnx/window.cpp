#include "graphs/onnx/window.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ftax::onnx_import {
namespace {

using Values = std::vector<std::int64_t>;

/// As many values as `fallback`, which holds in place of none, each at least `least`.
Values read_list(const Node& n, std::string_view key, Values fallback, std::size_t spatial, std::int64_t least) {
    Values values = n.integers(key).value_or(Values{});
    if (values.empty()) return fallback;
    if (values.size() != fallback.size())
        n.fail(fmt::format("{} has {} values for {} spatial axes", key, values.size(), spatial));
    for (const std::int64_t value : values) {
        if (value < least || value > largest_window) n.fail(fmt::format("{} contains {}", key, value));
    }
    return values;
}

}  // namespace

WindowShape read_window(const Node& n, const Dims& weight_kernel) {
    WindowShape window;
    window.kernel = weight_kernel;
    if (const auto given = n.integers("kernel_shape"); given && !given->empty()) {
        if (!weight_kernel.empty() && weight_kernel.size() != given->size())
            n.fail("kernel_shape does not fit the weight's rank");
        window.kernel.clear();
        for (const std::int64_t size : *given) window.kernel.push_back(n.math().constant(size));
    }
    if (window.kernel.empty()) n.fail("required attribute 'kernel_shape' is missing");
    for (const Expression size : window.kernel) {
        const auto constant = n.math().constant_value(size);
        if (constant && (*constant < 1 || *constant > largest_window))
            n.fail(fmt::format("kernel of size {}", *constant));
    }
    const std::size_t spatial = window.kernel.size();
    window.stride = read_list(n, "strides", Values(spatial, 1), spatial, 1);
    window.dilation = read_list(n, "dilations", Values(spatial, 1), spatial, 1);
    const std::string_view auto_pad = n.text("auto_pad", "NOTSET");
    window.same_upper = auto_pad == "SAME_UPPER";
    window.same_lower = auto_pad == "SAME_LOWER";
    Values pads(2 * spatial, 0);
    if (n.integers("pads") && auto_pad == "NOTSET")
        pads = read_list(n, "pads", std::move(pads), spatial, -largest_window);
    const auto half = pads.begin() + static_cast<std::ptrdiff_t>(spatial);
    window.pad_begin.assign(pads.begin(), half);
    window.pad_end.assign(half, pads.end());
    return window;
}

Expression WindowShape::output(const Node& n, Expression in, std::size_t i, bool ceil_mode) const {
    if (same_upper || same_lower) return n.math().ceil_divide(in, n.math().constant(stride[i]));
    return n.window_count(in, axis(n, i), ceil_mode);
}

WindowAxis WindowShape::axis(const Node& n, std::size_t i) const {
    const auto constant = [&](std::int64_t value) { return n.math().constant(value); };
    return {kernel[i], constant(stride[i]), constant(dilation[i]), constant(pad_begin[i]), constant(pad_end[i])};
}

void WindowShape::write(Node& n, const Dims& input) const {
    Values begin = pad_begin, end = pad_end;
    if (same_upper || same_lower) {
        // SAME padding gives an output of ceil(in / stride); dynamic sizes use the padding of stride 1.
        for (std::size_t i = 0; i < kernel.size() && i + 2 < input.size(); ++i) {
            const std::int64_t reach = (n.math().constant_value(kernel[i]).value_or(1) - 1) * dilation[i] + 1;
            std::int64_t total = reach - 1;
            if (const auto in = n.math().constant_value(input[i + 2]); in && *in < std::int64_t{1} << 60) {
                const std::int64_t out = (*in + stride[i] - 1) / stride[i];
                total = std::max<std::int64_t>(0, (out - 1) * stride[i] + reach - *in);
            }
            begin[i] = same_upper ? total / 2 : total - total / 2;
            end[i] = total - begin[i];
        }
    }
    Values sizes;
    for (const Expression size : kernel) sizes.push_back(n.math().constant_value(size).value_or(0));
    if (n.kind == OpKind::pool) n.set("kernel", sizes);
    n.set("stride", stride);
    n.set("pad_begin", begin);
    n.set("pad_end", end);
    if (n.kind != OpKind::pool || std::ranges::any_of(dilation, [](auto d) { return d != 1; })) {
        n.set("dilation", dilation);
    }
}

}  // namespace ftax::onnx_import
