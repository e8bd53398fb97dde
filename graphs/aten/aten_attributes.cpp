#include <algorithm>

#include "graphs/aten/aten_table.hpp"

namespace ftax::aten_attributes {
namespace {

void require_at_least(const Context& c, std::string_view argument, std::int64_t value, std::int64_t least) {
    if (value < least) c.fail("'{}' must be at least {}, not {}", argument, least, value);
}

/// One number of each window; a symbol counts as the least that there may be.
Integers numbers(const Context& c, const std::vector<WindowAxis>& windows, Expression WindowAxis::*member,
                 std::string_view argument, std::int64_t least) {
    Integers values;
    for (const WindowAxis& window : windows) {
        values.push_back(c.math().constant_value(window.*member).value_or(least));
        require_at_least(c, argument, values.back(), least);
    }
    return values;
}

void read_axis(const Context& c, std::string_view argument, std::int64_t fallback) {
    c.add("axis", c.call().axis(c.integer(argument, fallback), c.input_rank()));
}

}  // namespace

void no_attributes(const Context&) {}

void read_conv(const Context& c) {
    const auto windows = c.conv_windows();
    c.add("stride", numbers(c, windows, &WindowAxis::stride, "stride", 1));
    c.add("pad_begin", numbers(c, windows, &WindowAxis::pad_begin, "padding", 0));
    c.add("pad_end", numbers(c, windows, &WindowAxis::pad_end, "padding", 0));
    c.add("dilation", numbers(c, windows, &WindowAxis::dilation, "dilation", 1));
    const std::int64_t groups = c.integer("groups", 1);
    require_at_least(c, "groups", groups, 1);
    const auto out_channels = c.math().constant_value(c.tensor("weight").shape[0]);
    if (out_channels && *out_channels % groups != 0)
        c.fail("{} groups do not divide {} channels", groups, *out_channels);
    c.add("groups", groups);
}

void read_pool(const Context& c) {
    if (c.call().integers("kernel_size").empty()) c.fail("argument 'kernel_size' is missing");
    const auto windows = c.pool_windows();
    c.add("kernel", numbers(c, windows, &WindowAxis::kernel, "kernel_size", 1));
    c.add("stride", numbers(c, windows, &WindowAxis::stride, "stride", 1));
    c.add("pad_begin", numbers(c, windows, &WindowAxis::pad_begin, "padding", 0));
    c.add("pad_end", numbers(c, windows, &WindowAxis::pad_end, "padding", 0));
}

void read_dim(const Context& c) {
    read_axis(c, "dim", -1);
}

void read_first_dim(const Context& c) {
    read_axis(c, "dim", 0);
}

/// A dimension of the result: empty vectors (an empty cache) may precede the parts that have it.
void read_joined_dim(const Context& c) {
    c.add("axis", c.call().axis(c.integer("dim", 0), std::max(c.input_rank(), c.output().shape.size())));
}

/// What a slice takes of its input, as strides need it.
void read_slice(const Context& c) {
    c.add("axes", Integers{c.call().axis(c.integer("dim", 0), c.input_rank())});
    c.add("step", Integers{c.integer("step", 1)});
}

void read_select(const Context& c) {
    read_first_dim(c);
    c.add("axes", Integers{c.call().axis(c.integer("dim", 0), c.input_rank())});
}

/// Without dimensions the flattened tensor is rolled.
void read_roll(const Context& c) {
    const auto shifts = c.call().integers("shifts");
    const auto dims = c.call().integers("dims");
    if (dims.empty() || dims.size() != shifts.size()) return;
    c.add("axes", c.call().axes("dims", c.input_rank()));
    c.add("shifts", Integers(shifts.begin(), shifts.end()));
}

void read_squeezed(const Context& c) {
    if (c.call().integers("dim").size() == 1) read_dim(c);
}

void read_normalized(const Context& c) {
    const auto count = static_cast<std::int64_t>(c.call().integers("normalized_shape").size());
    const auto rank = static_cast<std::int64_t>(c.input_rank());
    if (count < 1 || count > rank) c.fail("'normalized_shape' has {} of {} dimensions", count, rank);
    c.add("axis", rank - count);
}

void read_groups(const Context& c) {
    const std::int64_t groups = c.integer("num_groups", c.integer("group", 1));
    require_at_least(c, "num_groups", groups, 1);
    c.add("groups", groups);
}

/// A batch norm that computes its statistics.
void read_training(const Context& c) {
    if (c.integer("training", 0) != 0) c.add("training", 1);
}

void read_reduce(const Context& c) {
    c.add("axes", c.reduced_axes());
    c.add("keepdims", c.integer("keepdim", 0));
}

void read_permute(const Context& c) {
    c.add("perm", c.permutation(c.call().integers("dims"), c.input_rank()));
}

void read_transpose(const Context& c) {
    c.add("perm", c.swapped(c.input_rank()));
}

void read_causal(const Context& c) {
    c.add("causal", c.integer("is_causal", 0));
}

void read_recurrent(const Context& c) {
    const std::string_view target = c.call().target;
    const auto is_cell = [&](std::string_view name) { return target.find(name) != std::string_view::npos; };
    c.add("cell", std::string(is_cell("lstm") ? "lstm" : is_cell("gru") ? "gru" : "rnn"));
    const std::int64_t directions = c.integer("bidirectional", 0) != 0 ? 2 : 1;
    const aten_shapes::Shape& out = c.output().shape;
    if (out.empty() || !c.math().constant_value(out.back())) c.fail("the hidden size is symbolic");
    c.add("hidden", *c.math().constant_value(out.back()) / directions);
    const std::int64_t layers = c.integer("num_layers", 1);
    require_at_least(c, "num_layers", layers, 1);
    c.add("layers", layers);
    c.add("directions", directions);
    if (c.integer("batch_first", 0) != 0) c.add("batch_first", 1);
    if (c.call().find("batch_sizes") != nullptr) c.add("packed", 1);
}

/// Defaults: the last dimension, the last two of fft2, all of fftn or as many as there are sizes.
void read_fft(const Context& c) {
    const auto rank = static_cast<std::int64_t>(c.input_rank());
    const std::string_view name = c.name();
    const auto sizes = static_cast<std::int64_t>(c.sizes("s").size());
    const std::int64_t count = name.ends_with('2') ? 2 : !name.ends_with('n') ? 1 : sizes > 0 ? sizes : rank;
    Integers axes = c.call().axes("dim", c.input_rank());
    const bool given = !axes.empty();
    for (std::int64_t axis = std::max<std::int64_t>(0, rank - count); !given && axis < rank; ++axis)
        axes.push_back(axis);
    c.add("axes", std::move(axes));
}

void read_stft(const Context& c) {
    const std::int64_t frame = c.integer("n_fft", 1);
    require_at_least(c, "n_fft", frame, 1);
    c.add("frame", frame);
    const auto is_complex = [](const Tensor& tensor) {
        return tensor.dtype == DType::c64 || tensor.dtype == DType::c128;
    };
    c.add("bins", c.integer("onesided", is_complex(c.first()) ? 0 : 1) != 0 ? frame / 2 + 1 : frame);
    if (!is_complex(c.output())) c.add("pairs", 1);
}

/// Rows sorted by expert; how many experts each token has the operator does not say.
void read_experts(const Context& c) {
    const auto operands = c.tensors();
    if (operands.size() < 2) c.fail("needs two tensors");
    const aten_shapes::Shape& weights = operands[1]->shape;
    if (weights.size() != 3) return;  // groups of another dimension: a product like any other
    if (const auto experts = c.math().constant_value(weights[0])) c.add(std::string(experts_attribute), *experts);
}

}  // namespace ftax::aten_attributes
