#include <algorithm>
#include <numeric>

#include "graphs/onnx/rules.hpp"

namespace ftax::onnx_import {
namespace {

using Sizes = std::vector<std::int64_t>;

/// Dimensions as numbers: evaluation runs only where all are constants and the tensors small.
Sizes sizes_of(const Node& n, const Dims& dims) {
    return mapped(dims, [&](Expression dim) { return n.math().constant_value(dim).value_or(0); });
}

Sizes output_sizes(const Node& n, std::size_t output) {
    return sizes_of(n, n.outputs[output].dims.value_or(Dims{}));
}

std::int64_t count_of(const Sizes& sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>{});
}

/// Row-major position of a multi-index in a tensor whose shape is broadcast (aligned at the end) to the index's.
std::size_t position(const Sizes& index, const Sizes& sizes) {
    std::size_t at = 0;
    const std::size_t shift = index.size() - sizes.size();
    for (std::size_t d = 0; d < sizes.size(); ++d)
        at = at * static_cast<std::size_t>(sizes[d]) + static_cast<std::size_t>(sizes[d] == 1 ? 0 : index[shift + d]);
    return at;
}

/// Element of an input at a multi-index of its dimensions; unknown outside of them.
Scalar element(const Node& n, std::size_t input, const Sizes& index, const Sizes& sizes) {
    const Scalars& scalars = *n.value(input);
    const std::size_t at = index.size() < sizes.size() ? scalars.size() : position(index, sizes);
    return at < scalars.size() ? scalars[at] : Scalar{};
}

/// The next multi-index in row-major order.
void advance(Sizes& index, const Sizes& sizes) {
    for (std::size_t d = sizes.size(); d-- > 0;) {
        if (++index[d] < sizes[d]) break;
        index[d] = 0;
    }
}

/// Fills output `o` by asking `element` for each multi-index in row-major order.
template <class Element>
void fill(Node& n, std::size_t o, const Sizes& sizes, Element element) {
    Scalars result;
    const std::int64_t count = count_of(sizes);
    result.reserve(static_cast<std::size_t>(count));
    Sizes index(sizes.size(), 0);
    for (std::int64_t i = 0; i < count; ++i) {
        result.push_back(element(index));
        advance(index, sizes);
    }
    n.outputs[o].value = std::move(result);
}

/// Fills the first output with elements of the first input: source(index, sizes of the input) says which.
template <class Source>
void rearrange(Node& n, Source source) {
    const Sizes input = sizes_of(n, n.dims(0));
    fill(n, 0, output_sizes(n, 0), [&](const Sizes& index) { return element(n, 0, source(index, input), input); });
}

template <class T>
T attribute(const Node& n, std::string_view name) {
    const auto found = std::ranges::find(n.op_attributes, name, &Attribute::name);
    return found == n.op_attributes.end() ? T{} : std::get<T>(found->value);
}

}  // namespace

void evaluate_elementwise(Node& n) {
    const Sizes sizes = output_sizes(n, 0);
    const bool integral = !is_float(n.dtype(0));
    std::vector<Sizes> input_sizes;
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
        input_sizes.push_back(sizes_of(n, n.dims(i)));
        if (input_sizes.back().size() > sizes.size()) return;
    }
    std::vector<Scalar> operands(n.inputs.size());
    fill(n, 0, sizes, [&](const Sizes& index) {
        for (std::size_t i = 0; i < operands.size(); ++i) operands[i] = element(n, i, index, input_sizes[i]);
        const Scalar result = n.math().apply(n.function, operands, integral);
        // 1 / 0.2 is 5 in f32 and a little less in f64.
        const bool rounds = result.kind == Scalar::Kind::real && n.outputs[0].dtype == DType::f32;
        return rounds ? n.math().from(static_cast<double>(static_cast<float>(result.real))) : result;
    });
}

void evaluate_cast(Node& n) {
    Scalars result = *n.value(0);
    const DType to = n.outputs[0].dtype;
    if (!is_float(to) && (is_float(n.dtype(0)) || to == DType::boolean)) {
        const std::string_view step = to == DType::boolean ? "cast_to_boolean" : "cast_to_integer";
        for (Scalar& scalar : result) scalar = n.math().apply(step, {scalar}, false);
    }
    n.outputs[0].value = std::move(result);
}

/// Same elements in the same order.
void evaluate_copy(Node& n) {
    n.outputs[0].value = *n.value(0);
}

void evaluate_transpose(Node& n) {
    const auto& perm = std::get<Sizes>(n.op_attributes.front().value);
    rearrange(n, [&](const Sizes& index, const Sizes&) {
        Sizes source(index.size());
        for (std::size_t d = 0; d < index.size(); ++d) source[static_cast<std::size_t>(perm[d])] = index[d];
        return source;
    });
}

void evaluate_slice(Node& n) {
    const Sizes input = sizes_of(n, n.dims(0));
    const Sizes starts = n.opset < 10 ? n.integers("starts").value_or(Sizes{}) : n.integers_of(1).value_or(Sizes{});
    const Sizes axes = attribute<Sizes>(n, "axes"), steps = attribute<Sizes>(n, "step");
    if (starts.size() != axes.size()) return;
    Sizes begin(input.size(), 0), step(input.size(), 1);
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const auto d = static_cast<std::size_t>(axes[i]);
        if (!steps.empty()) step[d] = steps[i];
        const std::int64_t size = input[d];
        const std::int64_t wrapped = starts[i] < 0 ? std::max(starts[i], -size) + size : starts[i];
        begin[d] = std::clamp<std::int64_t>(wrapped, 0, std::max<std::int64_t>(0, step[d] < 0 ? size - 1 : size));
    }
    rearrange(n, [&](Sizes index, const Sizes&) {
        for (std::size_t d = 0; d < index.size(); ++d) index[d] = begin[d] + index[d] * step[d];
        return index;
    });
}

void evaluate_concat(Node& n) {
    const auto axis = static_cast<std::size_t>(attribute<std::int64_t>(n, "axis"));
    std::vector<Sizes> parts;
    for (std::size_t i = 0; i < n.inputs.size(); ++i) parts.push_back(sizes_of(n, n.dims(i)));
    fill(n, 0, output_sizes(n, 0), [&](Sizes index) {
        std::size_t part = 0;
        for (; part + 1 < parts.size() && index[axis] >= parts[part][axis]; ++part) index[axis] -= parts[part][axis];
        return element(n, part, index, parts[part]);
    });
}

void evaluate_expand(Node& n) {
    rearrange(n, [](const Sizes& index, const Sizes&) { return index; });
}

void evaluate_tile(Node& n) {
    rearrange(n, [](Sizes index, const Sizes& input) {
        for (std::size_t d = 0; d < index.size(); ++d) index[d] %= input[d];
        return index;
    });
}

void evaluate_gather(Node& n) {
    const Sizes data = sizes_of(n, n.dims(0)), shape = sizes_of(n, n.dims(1));
    const auto indices = n.integers_of(1);
    if (!indices) return;
    const auto axis = static_cast<std::size_t>(attribute<std::int64_t>(n, "axis"));
    const std::int64_t size = data[axis];
    for (const std::int64_t i : *indices)
        if (i < -size || i >= size) return;
    fill(n, 0, output_sizes(n, 0), [&](const Sizes& index) {
        const auto first = index.begin() + static_cast<std::ptrdiff_t>(axis);
        const auto last = first + static_cast<std::ptrdiff_t>(shape.size());
        const std::int64_t picked = (*indices)[position(Sizes(first, last), shape)];
        Sizes source(index.begin(), first);
        source.push_back(picked < 0 ? picked + size : picked);
        source.insert(source.end(), last, index.end());
        return element(n, 0, source, data);
    });
}

void evaluate_reduce(Node& n) {
    if (n.outputs[0].alias != no_tensor) return;
    const std::string_view step = n.function == "prod" ? "mul" : n.function == "sum" ? "add" : n.function;
    if (step != "mul" && step != "add" && step != "min" && step != "max") return;
    const Sizes input = sizes_of(n, n.dims(0));
    Sizes reduced = input;  // the output's shape with keepdims
    for (const std::int64_t axis : attribute<Sizes>(n, "axes")) reduced[static_cast<std::size_t>(axis)] = 1;
    std::vector<std::optional<Scalar>> sums(static_cast<std::size_t>(count_of(reduced)));
    Sizes index(input.size(), 0);
    for (const Scalar& scalar : *n.value(0)) {
        auto& sum = sums[position(index, reduced)];
        sum = sum ? n.math().apply(step, {*sum, scalar}, !is_float(n.dtype(0))) : scalar;
        advance(index, input);
    }
    const Scalar of_none = n.math().integer(step == "mul" ? 1 : 0);
    n.outputs[0].value = mapped(sums, [&](const std::optional<Scalar>& sum) { return sum.value_or(of_none); });
}

void evaluate_split(Node& n) {
    const Sizes input = sizes_of(n, n.dims(0));
    const auto axis = static_cast<std::size_t>(attribute<std::int64_t>(n, "axis"));
    std::int64_t begin = 0;
    for (std::size_t o = 0; o < n.output_count(); ++o) {
        const Sizes sizes = output_sizes(n, o);
        fill(n, o, sizes, [&](const Sizes& index) {
            Sizes source = index;
            source[axis] += begin;
            return element(n, 0, source, input);
        });
        begin += sizes[axis];
    }
}

void evaluate_cumulative(Node& n) {
    if (n.rank(0) != 1 || n.function != "sum") return;
    const bool exclusive = n.integer("exclusive", 0) != 0, reverse = n.integer("reverse", 0) != 0;
    Scalars result = *n.value(0);
    if (reverse) std::ranges::reverse(result);
    Scalar sum = n.math().integer(0);
    for (Scalar& scalar : result) {
        const Scalar before = sum;
        sum = n.math().apply("add", {sum, scalar}, !is_float(n.dtype(0)));
        scalar = exclusive ? before : sum;
    }
    if (reverse) std::ranges::reverse(result);
    n.outputs[0].value = std::move(result);
}

void evaluate_nonzero(Node& n) {
    const Sizes input = sizes_of(n, n.dims(0));
    std::vector<Sizes> found;
    Sizes index(input.size(), 0);
    for (const Scalar& scalar : *n.value(0)) {
        const auto known = n.math().number(n.math().apply("cast_to_boolean", {scalar}, false));
        if (!known) return;
        if (*known != 0) found.push_back(index);
        advance(index, input);
    }
    Scalars result;
    for (std::size_t d = 0; d < input.size(); ++d)
        for (const Sizes& at : found) result.push_back(n.math().integer(at[d]));
    n.outputs[0].dims = Dims{n.math().constant(std::ssize(input)), n.math().constant(std::ssize(found))};
    n.outputs[0].value = std::move(result);
}

void evaluate_range(Node& n) {
    if (n.value(0)->empty() || n.value(2)->empty()) return;
    const Scalar start = n.value(0)->front();
    const Scalar step = n.value(2)->front();
    fill(n, 0, output_sizes(n, 0), [&](const Sizes& index) {
        return n.math().apply("add", {start, n.math().apply("mul", {n.math().integer(index[0]), step}, false)}, false);
    });
}

void evaluate_scatter_nd(Node& n) {
    // Exporters patch single entries of a shape vector.
    const auto indices = n.integers_of(1);
    if (n.rank(0) != 1 || !indices || n.value(2)->size() != indices->size()) return;
    Scalars result = *n.value(0);
    for (std::size_t i = 0; i < indices->size(); ++i) {
        const std::int64_t at = (*indices)[i] < 0 ? (*indices)[i] + std::ssize(result) : (*indices)[i];
        if (at < 0 || at >= std::ssize(result)) return;
        result[static_cast<std::size_t>(at)] = (*n.value(2))[i];
    }
    n.outputs[0].value = std::move(result);
}

}  // namespace ftax::onnx_import
