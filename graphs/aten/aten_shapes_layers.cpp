#include <algorithm>
#include <map>

#include "graphs/aten/aten_table.hpp"
#include "graphs/ir/einsum.hpp"

namespace ftax::aten_shapes {
namespace {

/// Rank of the tensor that is one sample: ATen's layers accept samples without a batch.
std::size_t spatial_begin(const Call& c, const Shape& input, std::size_t dimensions) {
    if (input.size() != dimensions + 2 && input.size() != dimensions + 1)
        c.fail("the input has the wrong number of dimensions");
    return input.size() - dimensions;
}

}  // namespace

Outputs conv(const Call& c) {
    const bool transposed = c.name().starts_with("conv_transpose");
    const Tensor& input = c.tensor("input");
    const Shape& weight = c.tensor("weight").shape;
    const auto windows = c.conv_windows();
    const std::size_t begin = spatial_begin(c, input.shape, windows.size());
    const Shape extra = transposed ? c.per_dimension("output_padding", windows.size(), {c.constant(0)}) : Shape{};
    Shape shape = input.shape;
    shape[begin - 1] = transposed ? c.math().multiply(weight[1], c.integer("groups", 1)) : weight[0];
    for (std::size_t i = 0; i < windows.size(); ++i) {
        Expression& dim = shape[begin + i];
        dim = transposed ? c.math().add(c.window_input(dim, windows[i]), extra[i]) : c.window_count(dim, windows[i]);
    }
    return {{input.dtype, std::move(shape)}};
}

Outputs linear(const Call& c) {
    const Tensor& input = c.tensor("input");
    const Tensor& weight = c.tensor("weight");
    if (input.shape.empty() || weight.shape.empty()) c.fail("needs matrices");
    const auto in = c.pool().constant_value(input.shape.back()), k = c.pool().constant_value(weight.shape.back());
    if (in && k && *in != *k) c.fail("the input is not as wide as the weight");
    Shape shape = input.shape;
    shape.pop_back();
    if (weight.shape.size() > 1) shape.push_back(weight.shape[0]);
    return {{input.dtype, std::move(shape)}};
}

Outputs matmul(const Call& c) {
    const auto operands = c.tensors();
    if (operands.size() != 2 || operands[0]->shape.empty() || operands[1]->shape.empty()) c.fail("needs two matrices");
    return {{promoted(c), c.multiplied(operands[0]->shape, operands[1]->shape)}};
}

Outputs tensordot(const Call& c) {
    Shape shape;
    const std::pair<std::string_view, std::string_view> operands[] = {{"self", "dims_self"}, {"other", "dims_other"}};
    for (const auto& [operand, dims] : operands) {
        const Shape& all = c.tensor(operand).shape;
        const Shape kept = c.reduced(all, c.call().axes(dims, all.size()), false);
        shape.insert(shape.end(), kept.begin(), kept.end());
    }
    return {{promoted(c), std::move(shape)}};
}

/// Differences of neighbours, `n` times; tensors prepended or appended compensate for some.
Outputs differences(const Call& c) {
    const Tensor& x = c.tensor("self");
    if (x.shape.empty()) c.fail("needs a dimension");
    const std::size_t axis = c.axis(c.integer("dim", -1), x.shape.size());
    Expression length = c.pool().subtract(x.shape[axis], c.constant(c.integer("n", 1)));
    for (const std::string_view joined : {"prepend", "append"}) {
        const auto other = c.has(joined) ? c.tensors(joined) : std::vector<const Tensor*>{};
        if (!other.empty() && axis < other[0]->shape.size()) length = c.pool().add(length, other[0]->shape[axis]);
    }
    if (const auto known = c.pool().constant_value(length); known && *known < 0) length = c.constant(0);
    Shape shape = x.shape;
    shape[axis] = length;
    return {{x.dtype, std::move(shape)}};
}

/// Rows that are sorted by group, each multiplied with the matrix of its own.
Outputs grouped_matmul(const Call& c) {
    const Shape& a = c.tensor("self").shape;
    const Shape& b = c.tensor("mat2").shape;
    if (a.size() != 2 || b.size() != 3) c.fail("needs a matrix and one for each group");
    return {{c.tensor("self").dtype, {a[0], b[2]}}};
}

Outputs matmul_added(const Call& c) {
    const bool batched = c.name().starts_with("ba");
    const Shape& a = c.tensor(batched ? "batch1" : "mat1").shape;
    const Shape& b = c.tensor(batched ? "batch2" : "mat2").shape;
    if (a.size() < 2 || b.size() < 2) c.fail("needs two matrices");
    return {{promoted(c), with_last(a, b.back())}};
}

Outputs einsum(const Call& c) {
    const AtenArgument* equation = c.call().find("equation");
    const auto operands = c.tensors();
    if (!equation) c.fail("has no equation");
    const auto ranks = mapped(operands, [](const Tensor* operand) { return operand->shape.size(); });
    const EinsumEquation read = read_einsum(equation->text, ranks);
    if (!read.problem.empty()) c.fail(read.problem);
    std::map<char, Expression> sizes;
    for (std::size_t i = 0; i < operands.size(); ++i)
        for (std::size_t d = 0; d < ranks[i]; ++d) sizes[read.operands[i][d]] = operands[i]->shape[d];
    return {{promoted(c), mapped(read.result, [&](char label) { return sizes.at(label); })}};
}

Outputs attention(const Call& c) {
    const Tensor& query = c.tensor("query");
    const Tensor& value = c.tensor("value");
    if (query.shape.size() < 2 || value.shape.size() < 2) c.fail("needs matrices");
    return {{query.dtype, with_last(query.shape, value.shape.back())}};
}

/// Like the first tensor; attention weights, which are not computed.
Outputs same_with_weights(const Call& c) {
    return {{c.first().dtype, c.first().shape}, {c.first().dtype, {c.constant(0)}}};
}

/// Returns the sequence and the last states. Packed sequences, whose data come first, keep their form.
Outputs recurrent(const Call& c) {
    const Tensor& input = c.first();
    if (input.shape.size() < 2) return {};
    const auto states = c.tensors("hx");
    if (states.empty() || states[0]->shape.empty()) c.fail("has no initial state");
    const std::int64_t directions = 1 + c.integer("bidirectional", 0);
    const Expression width = c.pool().multiply(states[0]->shape.back(), c.constant(directions));
    Outputs result{{input.dtype, with_last(input.shape, width)}};
    for (const Tensor* state : states) result.push_back({state->dtype, state->shape});
    return result;
}

Outputs recurrent_cell(const Call& c) {
    return mapped(c.tensors("hx"), [](const Tensor* state) { return AtenOutput{state->dtype, state->shape}; });
}

/// The normalised tensor, then mean and reciprocal deviation of each group of elements.
Outputs normalized(const Call& c) {
    const Shape& shape = c.first().shape;
    Shape statistics;
    if (c.name() == "native_layer_norm") {
        const std::size_t normal = std::min(c.sizes("normalized_shape").size(), shape.size());
        statistics.assign(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(normal));
        statistics.resize(shape.size(), c.constant(1));
    } else if (c.name() == "native_group_norm") {
        statistics = {shape.at(0), c.constant(c.integer("group", 1))};
    } else {
        statistics = {c.constant(0)};  // batch norm in evaluation has none
    }
    return {{c.first().dtype, shape}, {DType::f32, statistics}, {DType::f32, statistics}};
}

Outputs pool(const Call& c) {
    const Shape& input = c.first().shape;
    const std::size_t dimensions = c.spatial_dimensions();
    const std::size_t begin = spatial_begin(c, input, dimensions);
    const auto windows = c.pool_windows();
    const bool ceil_mode = c.integer("ceil_mode", 0) != 0;
    Shape shape = input;
    for (std::size_t i = 0; i < dimensions; ++i)
        shape[begin + i] = c.window_count(input[begin + i], windows[i], ceil_mode);
    Outputs result{{c.first().dtype, shape}};
    if (c.name().ends_with("with_indices")) result.push_back({DType::i64, shape});
    return result;
}

Outputs adaptive_pool(const Call& c) {
    const std::size_t dimensions = c.spatial_dimensions();
    Shape shape = c.first().shape;
    const std::size_t begin = spatial_begin(c, shape, dimensions);
    // None keeps a size and arrives as no number.
    const Shape wanted = c.sizes("output_size");
    for (std::size_t i = 0; i < dimensions && !wanted.empty(); ++i)
        shape[begin + i] = wanted[std::min(i, wanted.size() - 1)];
    Outputs result{{c.first().dtype, shape}};
    if (c.name().starts_with("adaptive_max")) result.push_back({DType::i64, shape});
    return result;
}

Outputs resize(const Call& c) {
    Shape shape = c.first().shape;
    if (shape.size() < 3) c.fail("needs at least three dimensions");
    const Shape wanted = c.sizes("output_size");
    if (!wanted.empty()) {
        for (std::size_t i = 2; i < shape.size(); ++i) shape[i] = wanted[std::min(i - 2, wanted.size() - 1)];
        return c.with_shape(std::move(shape));
    }
    const AtenArgument* factors = c.call().find("scale_factors");
    if (!factors || factors->integers.empty()) return {{c.first().dtype, {}, false}};
    for (std::size_t i = 2; i < shape.size(); ++i) {
        const std::size_t at = std::min(i - 2, factors->integers.size() - 1);
        shape[i] = c.pool().multiply(shape[i], c.constant(factors->integers[at]));
    }
    return c.with_shape(std::move(shape));
}

Outputs grid_sample(const Call& c) {
    Shape shape = c.tensor("input").shape;
    const Shape& grid = c.tensor("grid").shape;
    if (grid.size() != shape.size() || shape.size() < 3) c.fail("the grid does not fit the input");
    for (std::size_t i = 2; i < shape.size(); ++i) shape[i] = grid[i - 1];
    return c.with_shape(std::move(shape));
}

Outputs fft(const Call& c) {
    Shape shape = c.first().shape;
    if (shape.empty()) c.fail("needs a dimension");
    const auto axes = c.call().integers("dim");
    const std::size_t last = axes.empty() ? shape.size() - 1 : c.axis(axes.back(), shape.size());
    const Shape sizes = c.sizes(c.name().ends_with("fft") ? "n" : "s");  // those of the last dimensions
    for (std::size_t i = 1; i <= std::min(sizes.size(), axes.empty() ? shape.size() : axes.size()); ++i) {
        const std::size_t axis = axes.empty() ? shape.size() - i : c.axis(axes[axes.size() - i], shape.size());
        shape[axis] = sizes[sizes.size() - i];
    }
    const std::string_view name = c.name();
    const bool half = name.starts_with("fft_rfft"), back = name.starts_with("fft_irfft");
    if (half) shape[last] = c.math().add(c.math().floor_divide(shape[last], 2), 1);
    if (back && sizes.empty()) shape[last] = c.math().multiply(c.math().add(shape[last], -1), 2);
    return {{back ? DType::f32 : DType::c64, std::move(shape)}};
}

/// im2col: [N, C·kernel, windows]
Outputs unfold_windows(const Call& c) {
    const Shape& input = c.first().shape;
    if (input.size() != 4) c.fail("needs four dimensions");
    const Shape kernel = c.per_dimension("kernel_size", 2, {});
    const auto windows = c.windows(kernel, {c.constant(1)});
    const Shape counts{c.window_count(input[2], windows[0]), c.window_count(input[3], windows[1])};
    return c.with_shape({input[0], c.math().multiply(input[1], c.math().product(kernel)), c.math().product(counts)});
}

Outputs pairwise_distance(const Call& c) {
    const Shape &shape = c.tensor("x1").shape, &other = c.tensor("x2").shape;
    if (shape.size() < 2 || other.size() < 2) c.fail("needs two matrices");
    return {{promoted(c), with_last(shape, other[other.size() - 2])}};
}

}  // namespace ftax::aten_shapes
