#include <algorithm>
#include <limits>
#include <utility>

#include "graphs/aten/aten_table.hpp"

namespace ftax::aten_shapes {
namespace {

/// Number of elements in [start, end) of a dimension, as slice() clips them.
Expression slice_length(const Call& c, Expression size, const Shape& start, const Shape& end) {
    ExpressionPool& pool = c.pool();
    const auto position = [&](const Shape& given, Expression fallback) {
        if (given.empty()) return fallback;
        const auto value = pool.constant_value(given[0]);
        if (value && *value == std::numeric_limits<std::int64_t>::max()) return size;
        Expression at = given[0];
        if (value && *value < 0) at = pool.maximum(pool.add(size, at), c.constant(0));
        return pool.minimum(at, size);
    };
    const Expression first = position(start, c.constant(0));
    const Expression length = pool.subtract(position(end, size), first);
    if (const auto known = pool.constant_value(length)) return c.constant(std::max<std::int64_t>(*known, 0));
    return pool.constant_value(first) == 0 ? length : pool.maximum(length, c.constant(0));
}

}  // namespace

Outputs view(const Call& c) {
    if (c.has("dtype") && !c.has("size") && !c.has("shape")) return {{c.dtype(c.first().dtype), c.first().shape}};
    return c.with_shape(c.reshaped(c.first().shape, c.sizes(c.has("size") ? "size" : "shape")));
}

Outputs flatten(const Call& c) {
    const Shape& before = c.first().shape;
    if (before.empty()) return c.with_shape({c.constant(1)});
    const std::size_t begin = c.axis("start_dim", 0, before.size()), end = c.axis("end_dim", -1, before.size()) + 1;
    if (begin >= end) c.fail("'start_dim' is behind 'end_dim'");
    return c.with_shape(c.flattened(before, begin, end));
}

void unflatten(const Call& c, Shape& shape) {
    const std::size_t axis = c.along("dim").axis;
    const Shape parts = c.reshaped({shape[axis]}, c.sizes("sizes"));
    shape.insert(shape.erase(place(shape, axis)), parts.begin(), parts.end());
}

void squeeze(const Call& c, Shape& shape) {
    const std::vector<std::int64_t> chosen = c.call().axes("dim", shape.size());
    for (std::size_t i = shape.size(); i-- > 0;) {
        const bool asked = !c.has("dim") || std::ranges::count(chosen, static_cast<std::int64_t>(i)) > 0;
        if (asked && c.is(shape[i], 1)) shape.erase(place(shape, i));
    }
}

void unsqueeze(const Call& c, Shape& shape) {
    shape.insert(place(shape, c.axis("dim", 0, shape.size() + 1)), c.constant(1));
}

void permute(const Call& c, Shape& shape) {
    shape = c.name() == "numpy_T" ? Shape(shape.rbegin(), shape.rend()) : c.permuted(shape, c.call().integers("dims"));
}

void transpose(const Call& c, Shape& shape) {
    shape = c.permuted(shape, c.swapped(shape.size()));
}

Outputs movedim(const Call& c) {
    const Shape& before = c.first().shape;
    const auto from = c.call().axes("source", before.size()), to = c.call().axes("destination", before.size());
    if (from.size() != to.size()) c.fail("'source' and 'destination' differ in length");
    if (before.empty()) return c.with_shape({});  // of a scalar: axis 0 and -1 are allowed
    std::vector<std::optional<Expression>> placed(before.size());
    std::vector<bool> taken(before.size(), false);
    for (std::size_t i = 0; i < from.size(); ++i) placed[to[i]] = before[from[i]], taken[from[i]] = true;
    Shape shape;
    std::size_t next = 0;
    for (const auto& dim : placed) {
        while (!dim && next < before.size() && taken[next]) ++next;
        if (!dim && next == before.size()) c.fail("a dimension is moved twice");
        shape.push_back(dim ? *dim : before[next++]);
    }
    return c.with_shape(std::move(shape));
}

void expand(const Call& c, Shape& shape) {
    const Shape before = std::exchange(shape, c.sizes("size"));
    if (shape.size() < before.size()) c.fail("fewer sizes than dimensions");
    const std::size_t added = shape.size() - before.size();
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (!c.is(shape[i], -1)) continue;
        if (i < added) c.fail("a new dimension of size -1");
        shape[i] = before[i - added];
    }
    static_cast<void>(c.broadcast(before, shape));  // checks that they fit
}

Outputs broadcast_tensors(const Call& c) {
    Shape shape;
    for (const Tensor* tensor : c.tensors()) shape = c.broadcast(shape, tensor->shape);
    return mapped(c.tensors(), [&](const Tensor* tensor) { return AtenOutput{tensor->dtype, shape}; });
}

Outputs meshgrid(const Call& c) {
    Shape shape = mapped(c.tensors(), [&](const Tensor* tensor) { return c.math().product(tensor->shape); });
    const AtenArgument* indexing = c.call().find("indexing");
    if (indexing && indexing->text == "xy" && shape.size() > 1) std::swap(shape[0], shape[1]);
    return mapped(c.tensors(), [&](const Tensor* tensor) { return AtenOutput{tensor->dtype, shape}; });
}

void select(const Call& c, Shape& shape) {
    const std::size_t axis = c.along("dim").axis;
    const auto size = c.pool().constant_value(shape[axis]);
    const std::int64_t index = c.integer("index", 0);
    if (size && (index >= *size || index < -*size)) c.fail("the index is outside");
    shape.erase(place(shape, axis));
}

void slice(const Call& c, Shape& shape) {
    Expression& dim = shape[c.along("dim").axis];
    const Shape step = c.sizes("step");
    dim = slice_length(c, dim, c.sizes("start"), c.sizes("end"));
    if (step.empty()) return;
    if (c.is(step[0], 0)) c.fail("a step of 0");
    dim = c.pool().ceil_divide(dim, step[0]);
}

void narrow(const Call& c, Shape& shape) {
    const Shape length = c.sizes("length");
    if (shape.empty() || length.size() != 1) c.fail("needs a dimension and a length");
    shape[c.axis("dim", 0, shape.size())] = length[0];
}

/// Windows along one dimension become a new last one.
void unfold(const Call& c, Shape& shape) {
    const std::size_t axis = c.axis("dimension", 0, shape.size());
    const Shape size = c.sizes("size"), step = c.sizes("step");
    if (shape.empty() || size.size() != 1 || step.size() != 1 || c.is(step[0], 0)) c.fail("needs a size and a step");
    ExpressionPool& pool = c.pool();
    shape[axis] = pool.add(pool.floor_divide(pool.subtract(shape[axis], size[0]), step[0]), c.constant(1));
    shape.push_back(size[0]);
}

Outputs diagonal(const Call& c) {
    Shape shape = c.first().shape;
    if (shape.size() < 2) c.fail("needs two dimensions");
    if (c.integer("offset", 0) != 0) return {{c.first().dtype, {}, false}};
    const std::size_t a = c.axis("dim1", 0, shape.size()), b = c.axis("dim2", 1, shape.size());
    if (a == b) c.fail("'dim1' is 'dim2'");
    const Expression length = c.pool().minimum(shape[a], shape[b]);
    shape.erase(place(shape, std::max(a, b)));
    shape.erase(place(shape, std::min(a, b)));
    shape.push_back(length);
    return c.with_shape(std::move(shape));
}

namespace {

/// More parts than any model has; guards against sizes in hostile files.
constexpr std::int64_t most_parts = 100'000;

Outputs parts_of(const Call& c, std::size_t axis, const Shape& lengths) {
    Outputs result(lengths.size(), {c.first().dtype, c.first().shape});
    for (std::size_t i = 0; i < lengths.size(); ++i) result[i].shape[axis] = lengths[i];
    return result;
}

/// Parts of `size` along an axis, the last one with the remainder. Their number must be known.
Outputs parts_of(const Call& c, std::size_t axis, std::int64_t count, Expression size) {
    if (count < 1 || count > most_parts) c.fail("splits into no or too many parts");
    Shape lengths(static_cast<std::size_t>(count), size);
    lengths.back() = c.pool().subtract(c.first().shape[axis], c.pool().multiply(size, c.constant(count - 1)));
    return parts_of(c, axis, lengths);
}

}  // namespace

Outputs chunk(const Call& c) {
    const auto [shape, axis] = c.along("dim");
    const std::int64_t count = c.integer("chunks", 0);
    if (count < 1) c.fail("splits into no parts");
    const Expression size = c.pool().ceil_divide(shape[axis], c.constant(count));
    const auto whole = c.pool().constant_value(shape[axis]), each = c.pool().constant_value(size);
    if (whole && each && *each > 0) return parts_of(c, axis, (*whole + *each - 1) / *each, size);
    return parts_of(c, axis, count, size);
}

/// Parts that differ by one at most, the longer ones first; or cut at indices.
Outputs tensor_split(const Call& c) {
    const auto [shape, axis] = c.along("dim");
    Shape lengths;
    if (c.has("indices")) {
        Shape start;
        for (const Expression cut : c.sizes("indices")) {
            lengths.push_back(slice_length(c, shape[axis], start, {cut}));
            start = {cut};
        }
        lengths.push_back(slice_length(c, shape[axis], start, {}));
        return parts_of(c, axis, lengths);
    }
    const std::int64_t count = c.integer("sections", 0);
    if (count < 1 || count > most_parts) c.fail("splits into no or too many parts");
    for (std::int64_t i = 0; i < count; ++i) {
        const Expression rounded = c.pool().add(shape[axis], c.constant(count - 1 - i));
        lengths.push_back(c.pool().floor_divide(rounded, c.constant(count)));
    }
    return parts_of(c, axis, lengths);
}

Outputs split(const Call& c) {
    const auto [shape, axis] = c.along("dim");
    const Shape sizes = c.sizes(c.has("split_sizes") ? "split_sizes" : c.has("split_size") ? "split_size" : "sizes");
    if (c.call().find("split_size") && sizes.size() == 1) {
        const auto known = c.pool().constant_value(c.pool().ceil_divide(shape[axis], sizes[0]));
        return known ? parts_of(c, axis, *known, sizes[0]) : Outputs{};
    }
    return parts_of(c, axis, sizes);
}

Outputs unbind(const Call& c) {
    auto [shape, axis] = c.along("dim");
    const auto count = c.pool().constant_value(shape[axis]);
    if (!count) return {};
    if (*count > most_parts) c.fail("splits into too many parts");
    shape.erase(place(shape, axis));
    return Outputs(static_cast<std::size_t>(std::max<std::int64_t>(*count, 0)), {c.first().dtype, shape});
}

Outputs concat(const Call& c) {
    const auto parts = c.tensors();
    if (parts.empty()) c.fail("joins nothing");
    // Empty vectors may be combined with tensors of any rank.
    std::vector<const Shape*> shapes;
    for (const Tensor* part : parts)
        if (part->shape.size() != 1 || !c.is(part->shape[0], 0)) shapes.push_back(&part->shape);
    if (shapes.empty()) shapes = {&parts[0]->shape};
    if (shapes[0]->empty()) c.fail("needs a dimension");
    return {{promoted(c), c.joined(shapes, c.axis("dim", 0, shapes[0]->size()))}};
}

Outputs stack(const Call& c) {
    const auto parts = c.tensors();
    if (parts.empty()) c.fail("joins nothing");
    Shape shape = parts[0]->shape;
    const std::size_t axis = c.axis("dim", 0, shape.size() + 1);
    shape.insert(place(shape, axis), c.constant(static_cast<std::int64_t>(parts.size())));
    return {{promoted(c), std::move(shape)}};
}

/// Pads come in pairs from the last dimension on.
void pad(const Call& c, Shape& shape) {
    const Shape pads = c.sizes(c.has("pad") ? "pad" : "padding");
    if (pads.size() % 2 != 0 || pads.size() / 2 > shape.size()) c.fail("the pads do not fit the input");
    for (std::size_t i = 0; i < pads.size(); ++i) {
        Expression& dim = shape[shape.size() - 1 - i / 2];
        dim = c.pool().add(dim, pads[i]);
    }
}

void repeat(const Call& c, Shape& shape) {
    Shape times = c.sizes(c.has("repeats") ? "repeats" : "dims");
    if (c.name() == "tile" && times.size() < shape.size())
        times.insert(times.begin(), shape.size() - times.size(), c.constant(1));
    if (times.size() < shape.size()) c.fail("fewer repeats than dimensions");
    shape.insert(shape.begin(), times.size() - shape.size(), c.constant(1));
    for (std::size_t i = 0; i < times.size(); ++i) shape[i] = c.pool().multiply(shape[i], times[i]);
}

Outputs repeat_interleave(const Call& c) {
    Shape shape = c.first().shape;
    const Shape times = c.sizes("repeats");
    if (times.size() != 1) return {{c.first().dtype, {}, false}};
    if (!c.has("dim")) return c.with_shape({c.pool().multiply(c.math().product(shape), times[0])});
    const std::size_t axis = c.along("dim").axis;
    shape[axis] = c.pool().multiply(shape[axis], times[0]);
    return c.with_shape(std::move(shape));
}

void pixel_shuffle(const Call& c, Shape& shape) {
    const bool to_space = c.name() == "pixel_shuffle";
    const std::int64_t factor = c.integer(to_space ? "upscale_factor" : "downscale_factor", 1);
    if (shape.size() < 3 || factor < 1) c.fail("needs three dimensions and a factor");
    shape = c.shuffled(shape, shape.size() - 3, factor, to_space);
}

Outputs embedding(const Call& c) {
    const Tensor& table = c.tensor("weight");
    if (table.shape.size() != 2) c.fail("the table needs two dimensions");
    Shape shape = c.tensor("indices").shape;
    shape.push_back(table.shape[1]);
    return {{table.dtype, std::move(shape)}};
}

/// The shape of the second tensor.
Outputs shape_of_other(const Call& c) {
    return c.with_shape(c.tensor(c.has("other") ? "other" : c.has("index") ? "index" : "indices").shape);
}

/// x[i, j, …]: the indexed dimensions give way to the shape the indices broadcast to; apart from each other, to its
/// front. Masks have as many elements as the data decide.
Outputs index(const Call& c) {
    const Tensor& x = c.tensor("self");
    const AtenArgument* indices = c.call().find("indices");
    if (!indices || indices->tensors.size() > x.shape.size()) c.fail("more indices than dimensions");
    std::vector<bool> indexed(x.shape.size(), false);
    for (std::size_t i = 0; i < indices->tensors.size(); ++i) indexed[i] = indices->tensors[i] != no_tensor;
    Shape chosen;
    for (const Tensor* index : c.tensors("indices")) {
        if (index->dtype == DType::boolean) return {{x.dtype, {}, false}};
        chosen = c.broadcast(chosen, index->shape);
    }
    const auto begin = std::ranges::find(indexed, true);
    const auto end = std::find(begin, indexed.end(), false);
    const bool together = std::find(end, indexed.end(), true) == indexed.end();
    const std::size_t front = together ? static_cast<std::size_t>(begin - indexed.begin()) : 0;
    Shape shape;
    for (std::size_t i = 0; i < x.shape.size(); ++i)
        if (!indexed[i]) shape.push_back(x.shape[i]);
    shape.insert(place(shape, std::min(front, shape.size())), chosen.begin(), chosen.end());
    return {{x.dtype, std::move(shape)}};
}

void index_select(const Call& c, Shape& shape) {
    const Shape& chosen = c.tensor("index").shape;
    if (shape.empty() || chosen.size() > 1) c.fail("needs a dimension and a vector");
    shape[c.axis("dim", 0, shape.size())] = chosen.empty() ? c.constant(1) : chosen[0];
}

Outputs one_hot(const Call& c) {
    Shape shape = c.first().shape;
    const Shape classes = c.sizes("num_classes");
    if (classes.size() != 1 || c.is(classes[0], -1)) return {{DType::i64, {}, false}};
    shape.push_back(classes[0]);
    return {{DType::i64, std::move(shape)}};
}

Outputs real_view(const Call& c) {
    Shape shape = c.first().shape;
    if (c.name() == "view_as_real") shape.push_back(c.constant(2));
    const DType type = c.first().dtype;
    return {{type == DType::c64 ? DType::f32 : type == DType::c128 ? DType::f64 : type, std::move(shape)}};
}

Outputs complex_view(const Call& c) {
    Shape shape = c.first().shape;
    if (shape.empty()) c.fail("needs a dimension of two");
    shape.pop_back();
    return {{c.first().dtype == DType::f64 ? DType::c128 : DType::c64, std::move(shape)}};
}

}  // namespace ftax::aten_shapes
