#include <algorithm>
#include <cmath>

#include "graphs/onnx/rules.hpp"

namespace ftax::onnx_import {
namespace {

using Values = std::vector<std::int64_t>;

/// As many values as `fallback`, which holds in place of none, each at least `least`.
Values read_list(const Node& n, std::string_view key, Values fallback, std::size_t spatial, std::int64_t least) {
    Values values = n.integers(key).value_or(Values{});
    if (values.empty()) return fallback;
    if (values.size() != fallback.size()) n.fail("{} has {} values for {} spatial axes", key, values.size(), spatial);
    for (const std::int64_t value : values)
        if (value < least || value > largest_window) n.fail("{} contains {}", key, value);
    return values;
}

}  // namespace

WindowShape read_window(const Node& n, const Dims& weight_kernel) {
    WindowShape window;
    window.kernel = weight_kernel;
    if (auto given = n.constants("kernel_shape"); given && !given->empty()) {
        if (!weight_kernel.empty() && weight_kernel.size() != given->size())
            n.fail("kernel_shape does not fit the weight's rank");
        window.kernel = std::move(*given);
    }
    if (window.kernel.empty()) n.fail("required attribute 'kernel_shape' is missing");
    for (const Expression size : window.kernel) {
        const auto constant = n.math().constant_value(size);
        if (constant && (*constant < 1 || *constant > largest_window)) n.fail("kernel of size {}", *constant);
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
    if (n.kind == OpKind::pool)
        n.set("kernel", mapped(kernel, [&](Expression size) { return n.math().constant_value(size).value_or(0); }));
    n.set("stride", stride);
    n.set("pad_begin", begin);
    n.set("pad_end", end);
    if (n.kind != OpKind::pool || std::ranges::any_of(dilation, [](auto d) { return d != 1; }))
        n.set("dilation", dilation);
}

void pool(Node& n) {
    const Dims& input = n.dims(0);
    if (input.size() < 3) n.fail("input of rank {}; pooling needs 3 or more", input.size());
    const WindowShape window = read_window(n, {});
    if (window.kernel.size() != input.size() - 2) n.fail("kernel_shape does not fit the input's rank");
    const bool ceil_mode = n.integer("ceil_mode", 0) != 0;
    Dims result{input[0], input[1]};
    for (std::size_t i = 0; i < window.kernel.size(); ++i)
        result.push_back(window.output(n, input[i + 2], i, ceil_mode));
    window.write(n, input);
    n.output(0, n.dtype(0), result);
    n.output(1, DType::i64, result);
}

void global_pool(Node& n) {
    Dims& result = n.result();
    if (result.size() < 3) n.fail("input of rank {}; pooling needs 3 or more", result.size());
    for (std::size_t i = 2; i < result.size(); ++i) result[i] = n.math().constant(1);
}

void max_unpool(Node& n) {
    const Dims& input = n.dims(0);
    if (n.has(2)) return n.output(0, n.dtype(0), n.expressions(2).value_or(Dims(input.size(), unknown_dim)));
    const WindowShape window = read_window(n, {});
    if (input.size() != window.kernel.size() + 2) n.fail("kernel_shape does not fit the input's rank");
    Dims result{input[0], input[1]};
    for (std::size_t i = 0; i < window.kernel.size(); ++i) {
        WindowAxis axis = window.axis(n, i);
        axis.dilation = n.math().constant(1);
        result.push_back(n.window_input(input[i + 2], axis));
    }
    n.output(0, n.dtype(0), std::move(result));
}

void roi_pool(Node& n) {
    if (n.rank(0) < 2 || n.rank(1) < 1) n.fail("ranks of input and regions do not fit");
    const Values whole{n.integer("output_height", 1), n.integer("output_width", 1)};
    Dims result{n.dims(1)[0], n.dims(0)[1]};
    for (const std::int64_t size : n.integers("pooled_shape").value_or(whole))
        result.push_back(n.math().constant(size));
    n.output(0, n.dtype(0), std::move(result));
}

namespace {

void set_interpolation(Node& n) {
    const std::string_view mode = n.text("mode", "nearest");
    const bool linear = mode == "linear" || mode == "bilinear";
    n.function = linear ? "bilinear" : mode == "cubic" || mode == "bicubic" ? "bicubic" : "nearest";
}

/// dims scaled by factors that may be known as rationals or reals, rounded down.
Expression scaled(const Node& n, Expression dim, const Scalar& scale) {
    if (!is_known(dim)) return unknown_dim;
    ShapeMath& math = n.math();
    return ShapeMath::expression(math.apply("floor", {math.apply("mul", {math.from(dim), scale}, false)}, false));
}

/// One scale for all axes, where the aspect ratio is kept; nullopt where it is not, or depends on symbols.
std::optional<double> kept_ratio(const Node& n, const Dims& sizes, const std::vector<std::size_t>& axes) {
    const std::string_view policy = n.text("keep_aspect_ratio_policy", "stretch");
    std::optional<double> ratio;
    for (std::size_t i = 0; i < axes.size() && policy != "stretch"; ++i) {
        const auto in = n.math().constant_value(n.dims(0)[axes[i]]), out = n.math().constant_value(sizes[i]);
        if (!in || !out || *in == 0) continue;
        const double r = static_cast<double>(*out) / static_cast<double>(*in);
        if (!ratio || (policy == "not_larger" ? r < *ratio : r > *ratio)) ratio = r;
    }
    return ratio;
}

}  // namespace

void resize(Node& n) {
    set_interpolation(n);
    const Dims& input = n.dims(0);
    const std::size_t scales_at = n.opset >= 11 ? 2 : 1;  // regions of interest come before
    const auto axes = mapped(n.integers("axes").value_or(all_axes(input.size())),
                             [&](std::int64_t a) { return n.axis(a, input.size()); });
    Dims& result = n.result();
    ShapeMath& math = n.math();
    const bool empty_scales = !n.has(scales_at) || (n.ranked(scales_at) && math.static_count(n.dims(scales_at)) == 0);
    if (empty_scales && !n.has(3)) n.fail("neither scales nor sizes is given");
    if (empty_scales) {
        const auto sizes = n.expressions(3);
        if (sizes && sizes->size() != axes.size()) n.fail("sizes does not have one value per axis");
        const std::optional<double> ratio = sizes ? kept_ratio(n, *sizes, axes) : std::nullopt;
        for (std::size_t i = 0; i < axes.size(); ++i) {
            Expression& dim = result[axes[i]];
            if (!ratio) {
                dim = sizes ? (*sizes)[i] : unknown_dim;
            } else if (const auto in = math.constant_value(dim)) {
                dim = ShapeMath::expression(math.from(std::floor(static_cast<double>(*in) * *ratio + 0.5)));
            }
        }
    } else {
        const Scalars* scales = n.value(scales_at);
        if (scales && scales->size() != axes.size()) n.fail("scales does not have one value per axis");
        for (std::size_t i = 0; i < axes.size(); ++i)
            result[axes[i]] = scales ? scaled(n, result[axes[i]], (*scales)[i]) : unknown_dim;
    }
}

void upsample(Node& n) {
    set_interpolation(n);
    Dims& result = n.result();
    Scalars scales(result.size());
    if (const AttributeRecord* given = n.attribute("scales")) {
        scales.clear();
        for (const float scale : given->reals) scales.push_back(n.math().from(static_cast<double>(scale)));
    } else if (const Scalars* values = n.value(1)) {
        scales = *values;
    }
    if (scales.size() != result.size()) n.fail("scales does not have one value per axis");
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = scaled(n, result[i], scales[i]);
}

void grid_sample(Node& n) {
    const Dims& input = n.dims(0);
    const Dims& grid = n.dims(1);
    if (input.size() < 3 || grid.size() != input.size()) n.fail("ranks of input and grid do not fit");
    Dims result{input[0], input[1]};
    result.insert(result.end(), grid.begin() + 1, grid.end() - 1);
    n.output(0, n.dtype(0), std::move(result));
}

void affine_grid(Node& n) {
    const auto size = n.expressions(1);
    if (!size || size->size() < 4) return n.unknown_output(0, n.dtype(0));
    Dims result{(*size)[0]};
    result.insert(result.end(), size->begin() + 2, size->end());
    result.push_back(n.math().constant(static_cast<std::int64_t>(size->size()) - 2));
    n.read_first(1);
    n.output(0, n.dtype(0), std::move(result));
}

void col2im(Node& n) {
    const Dims& input = n.dims(0);
    const auto image = n.expressions(1);
    const auto block = n.expressions(2);
    if (input.size() != 3) n.fail("input must have rank 3");
    if (!image || !block) return n.unknown_output(0, n.dtype(0));
    Dims result{input[0], n.math().floor_divide(input[1], n.math().product(*block))};
    result.insert(result.end(), image->begin(), image->end());
    n.output(0, n.dtype(0), std::move(result));
}

}  // namespace ftax::onnx_import
