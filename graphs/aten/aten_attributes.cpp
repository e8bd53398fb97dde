#include "graphs/aten/aten_attributes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ftax::aten_attributes {
namespace {

const Tensor& required(const Graph& graph, const AtenCall& call, std::string_view argument) {
    const TensorId id = call.tensor(argument);
    if (id == no_tensor) call.fail(fmt::format("argument '{}' is missing", argument));
    return graph.tensors[id];
}

const Tensor& first_output(const Graph& graph, const AtenCall& call) {
    if (call.outputs.empty()) call.fail("it has no output");
    return graph.tensors[call.outputs[0]];
}

/// One value per spatial dimension: ATen takes a single number for all of them.
Integers per_dimension(const Context& c, std::string_view argument, std::size_t dimensions, const Integers& fallback) {
    const auto given = c.call.integers(argument);
    Integers values(given.begin(), given.end());
    if (values.empty()) values = fallback;
    if (values.size() == 1) values.resize(dimensions, values[0]);
    if (values.size() != dimensions)
        c.call.fail(fmt::format("'{}' has {} values for {} dimensions", argument, values.size(), dimensions));
    return values;
}

void require_at_least(const Context& c, std::string_view argument, const Integers& values, std::int64_t least) {
    for (const std::int64_t value : values) {
        if (value < least) c.call.fail(fmt::format("'{}' must be at least {}, not {}", argument, least, value));
    }
}

void read_axis(const Context& c, std::string_view argument, std::int64_t fallback) {
    c.add("axis", c.call.axis(c.call.integer(argument, fallback), c.input_rank()));
}

void read_swap(const Context& c, std::int64_t first, std::int64_t second) {
    const std::size_t rank = c.input_rank();
    Integers perm(rank);
    for (std::size_t i = 0; i < rank; ++i) perm[i] = static_cast<std::int64_t>(i);
    if (rank > 1) std::swap(perm[c.call.axis(first, rank)], perm[c.call.axis(second, rank)]);
    c.add("perm", perm);
}

}  // namespace

std::size_t Context::input_rank() const {
    for (const AtenArgument& argument : call.arguments) {
        if (!argument.tensors.empty() && argument.tensors[0] != no_tensor)
            return graph.tensors[argument.tensors[0]].shape.size();
    }
    call.fail("it reads no tensor");
}

void no_attributes(const Context&) {}

void read_conv(const Context& c) {
    const Tensor& weight = required(c.graph, c.call, "weight");
    if (weight.shape.size() < 3) c.call.fail("the weight needs at least three dimensions");
    const std::size_t dimensions = weight.shape.size() - 2;
    const Integers stride = per_dimension(c, "stride", dimensions, {1});
    const Integers dilation = per_dimension(c, "dilation", dimensions, {1});
    const std::int64_t groups = c.call.integer("groups", 1);
    require_at_least(c, "stride", stride, 1);
    require_at_least(c, "dilation", dilation, 1);
    require_at_least(c, "groups", {groups}, 1);
    const auto out_channels = c.graph.expressions.constant_value(weight.shape[0]);
    if (out_channels && *out_channels % groups != 0)
        c.call.fail(fmt::format("{} groups do not divide {} channels", groups, *out_channels));
    Integers begin(dimensions, 0), end(dimensions, 0);
    const AtenArgument* padding = c.call.find("padding");
    if (padding && padding->text == "same") {
        for (std::size_t i = 0; i < dimensions; ++i) {
            const auto kernel = c.graph.expressions.constant_value(weight.shape[i + 2]);
            const std::int64_t total = dilation[i] * (kernel.value_or(1) - 1);
            begin[i] = total / 2, end[i] = total - total / 2;
        }
    } else if (!padding || padding->text.empty()) {
        begin = end = per_dimension(c, "padding", dimensions, {0});
        require_at_least(c, "padding", begin, 0);
    }
    c.add("stride", stride), c.add("pad_begin", begin), c.add("pad_end", end), c.add("dilation", dilation);
    c.add("groups", groups);
}

void read_pool(const Context& c) {
    const Integers kernel_size(c.call.integers("kernel_size").begin(), c.call.integers("kernel_size").end());
    if (kernel_size.empty()) c.call.fail("argument 'kernel_size' is missing");
    const std::string_view name = c.call.target;
    const auto dimensions = static_cast<std::size_t>(name[name.find('d', name.find("pool")) - 1] - '0');
    const Integers kernel = per_dimension(c, "kernel_size", dimensions, {});
    const Integers stride = per_dimension(c, "stride", dimensions, kernel);
    const Integers pad = per_dimension(c, "padding", dimensions, {0});
    require_at_least(c, "kernel_size", kernel, 1);
    require_at_least(c, "stride", stride, 1);
    require_at_least(c, "padding", pad, 0);
    c.add("kernel", kernel), c.add("stride", stride), c.add("pad_begin", pad), c.add("pad_end", pad);
}

void read_dim(const Context& c) {
    read_axis(c, "dim", -1);
}

void read_first_dim(const Context& c) {
    read_axis(c, "dim", 0);
}

/// Empty vectors may stand before the parts that have the dimension: a cache that holds nothing yet.
void read_joined_dim(const Context& c) {
    const std::size_t rank = std::max(c.input_rank(), first_output(c.graph, c.call).shape.size());
    c.add("axis", c.call.axis(c.call.integer("dim", 0), rank));
}

/// What a slice takes of its input, as strides need it.
void read_slice(const Context& c) {
    c.add("axes", Integers{c.call.axis(c.call.integer("dim", 0), c.input_rank())});
    c.add("step", Integers{c.call.integer("step", 1)});
}

void read_select(const Context& c) {
    read_first_dim(c);
    c.add("axes", Integers{c.call.axis(c.call.integer("dim", 0), c.input_rank())});
}

/// Without dimensions the flattened tensor is rolled.
void read_roll(const Context& c) {
    const auto shifts = c.call.integers("shifts");
    const auto dims = c.call.integers("dims");
    if (dims.empty() || dims.size() != shifts.size()) return;
    Integers axes;
    for (const std::int64_t dim : dims) axes.push_back(c.call.axis(dim, c.input_rank()));
    c.add("axes", std::move(axes));
    c.add("shifts", Integers(shifts.begin(), shifts.end()));
}

void read_squeezed(const Context& c) {
    if (c.call.integers("dim").size() == 1) read_dim(c);
}

void read_new_dim(const Context& c) {
    c.add("axis", c.call.axis(c.call.integer("dim", 0), c.input_rank() + 1));
}

void read_normalized(const Context& c) {
    const auto count = static_cast<std::int64_t>(c.call.integers("normalized_shape").size());
    const auto rank = static_cast<std::int64_t>(c.input_rank());
    if (count < 1 || count > rank) c.call.fail(fmt::format("'normalized_shape' has {} of {} dimensions", count, rank));
    c.add("axis", rank - count);
}

void read_groups(const Context& c) {
    const std::int64_t groups = c.call.integer("num_groups", c.call.integer("group", 1));
    require_at_least(c, "num_groups", {groups}, 1);
    c.add("groups", groups);
}

void read_training(const Context& c) {
    if (c.call.integer("training", 0) != 0) c.add("training", 1);
}

void read_reduce(const Context& c) {
    Integers axes;
    for (const std::int64_t axis : c.call.integers("dim")) axes.push_back(c.call.axis(axis, c.input_rank()));
    if (axes.empty()) {
        for (std::size_t i = 0; i < c.input_rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
    }
    c.add("axes", axes);
    c.add("keepdims", c.call.integer("keepdim", 0));
}

void read_permute(const Context& c) {
    const auto dims = c.call.integers("dims");
    const std::size_t rank = c.input_rank();
    Integers perm;
    for (const std::int64_t axis : dims) perm.push_back(c.call.axis(axis, rank));
    Integers sorted = perm;
    std::sort(sorted.begin(), sorted.end());
    if (perm.size() != rank || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
        c.call.fail("'dims' is not a permutation");
    }
    c.add("perm", perm);
}

void read_transpose(const Context& c) {
    const std::int64_t first = c.call.integer("dim0", c.call.integer("axis0", 0));
    read_swap(c, first, c.call.integer("dim1", c.call.integer("axis1", 1)));
}

void read_matrix_transpose(const Context& c) {
    read_swap(c, -2, -1);
}

void read_causal(const Context& c) {
    c.add("causal", c.call.integer("is_causal", 0));
}

void read_recurrent(const Context& c) {
    const std::string_view target = c.call.target;
    const auto is_cell = [&](std::string_view name) { return target.find(name) != std::string_view::npos; };
    c.add("cell", std::string(is_cell("lstm") ? "lstm" : is_cell("gru") ? "gru" : "rnn"));
    const std::int64_t directions = 1 + c.call.integer("bidirectional", 0);
    const auto width = c.graph.expressions.constant_value(first_output(c.graph, c.call).shape.back());
    if (!width) c.call.fail("the hidden size is symbolic");
    c.add("hidden", *width / directions);
    const std::int64_t layers = c.call.integer("num_layers", 1);
    require_at_least(c, "num_layers", {layers}, 1);
    c.add("layers", layers);
    c.add("directions", directions);
    if (c.call.integer("batch_first", 0) != 0) c.add("batch_first", 1);
    if (c.call.find("batch_sizes") != nullptr) c.add("packed", 1);
}

/// Rows sorted by expert; how many experts each token has the operator does not say.
void read_experts(const Context& c) {
    const auto& arguments = c.call.arguments;
    if (arguments.size() < 2 || arguments[1].tensors.empty() || arguments[1].tensors[0] == no_tensor) {
        c.call.fail("needs two tensors");
    }
    const std::vector<Expression>& weights = c.graph.tensors[arguments[1].tensors[0]].shape;
    if (weights.size() != 3) return;  // groups of another dimension: a product like any other
    if (const auto experts = c.graph.expressions.constant_value(weights[0])) {
        c.add(std::string(experts_attribute), *experts);
    }
}

}  // namespace ftax::aten_attributes
