#include <algorithm>

#include "graphs/aten/aten_table.hpp"

namespace ftax::aten_shapes {
namespace {

/// Groups of torch's promotion, in order. Source: c10/core/ScalarType.h, promoteTypes.
int category(DType type) {
    if (type == DType::boolean) return 0;
    if (type == DType::c64 || type == DType::c128) return 3;
    return is_float(type) ? 2 : 1;
}

DType wider(DType a, DType b) {
    if (a == b || a == DType::unknown) return b;
    const bool complex = category(a) == 3 || category(b) == 3;
    if (complex && (std::max(bits_of(a), bits_of(b)) == 128 || a == DType::f64 || b == DType::f64)) return DType::c128;
    if (category(a) != category(b)) return category(a) > category(b) ? a : b;
    if (bits_of(a) == bits_of(b)) return category(a) == 2 ? DType::f32 : DType::i16;  // f16 with bf16, i8 with u8
    return bits_of(a) > bits_of(b) ? a : b;
}

Shape broadcast_shape(const Call& c) {
    Shape shape;
    for (const Tensor* tensor : c.tensors()) shape = c.broadcast(shape, tensor->shape);
    return shape;
}

DType at_least_float(DType type) {
    return category(type) < 2 ? DType::f32 : type;
}

Shape reduced_shape(const Call& c) {
    return c.reduced(c.first().shape, c.reduced_axes(), c.integer("keepdim", 0) != 0);
}

}  // namespace

DType promoted(const Call& c) {
    // Tensors with dimensions decide before those without, and those before numbers.
    DType result = DType::unknown, scalars = DType::unknown;
    for (const Tensor* tensor : c.tensors()) {
        DType& type = tensor->shape.empty() ? scalars : result;
        type = wider(type, tensor->dtype);
    }
    if (result == DType::unknown) result = scalars;
    if (scalars != DType::unknown && category(scalars) > category(result)) result = scalars;
    const bool real_number =
        std::ranges::any_of(c.call().arguments, [](const AtenArgument& a) { return a.number.has_value(); });
    return real_number ? at_least_float(result) : result;
}

Outputs same(const Call& c) {
    return c.with_shape(c.first().shape);
}

Outputs same_cast(const Call& c) {
    const bool sums = c.name().starts_with("cum") && category(c.first().dtype) < 2;
    return {{c.dtype(sums ? DType::i64 : c.first().dtype), c.first().shape}};
}

/// The same shape; integers become f32.
Outputs same_float(const Call& c) {
    return {{at_least_float(c.first().dtype), c.first().shape}};
}

Outputs pointwise(const Call& c) {
    DType type = promoted(c);
    if (c.name().starts_with("masked_fill")) type = c.first().dtype;
    if (type == DType::boolean && !c.name().starts_with("bitwise") && !c.name().starts_with("__") &&
        c.tensors().size() == 1) {
        type = DType::i64;  // a boolean and an integer
    }
    return {{type, broadcast_shape(c)}};
}

Outputs division(const Call& c) {
    const AtenArgument* rounding = c.call().find("rounding_mode");
    const bool rounded = rounding && !rounding->text.empty();
    return {{rounded ? promoted(c) : at_least_float(promoted(c)), broadcast_shape(c)}};
}

Outputs where(const Call& c) {
    const std::vector<const Tensor*> values = c.tensors();
    DType type = DType::unknown;
    for (std::size_t i = 1; i < values.size(); ++i) type = wider(type, values[i]->dtype);
    return {{type == DType::unknown ? DType::f32 : type, broadcast_shape(c)}};
}

Outputs convert(const Call& c) {
    const AtenArgument* other = c.call().find("other");
    return {{c.dtype(other && !other->tensors.empty() ? c.tensor("other").dtype : c.first().dtype), c.first().shape}};
}

Outputs fill(const Call& c) {
    const DType usual = c.name() == "randint" ? DType::i64 : DType::f32;
    return {{c.dtype(c.name().starts_with("new_") ? c.first().dtype : usual), c.sizes("size")}};
}

Outputs arange(const Call& c) {
    if (c.name() == "linspace") return {{c.dtype(DType::f32), c.sizes("steps")}};
    const auto number = [&](std::string_view argument) {
        const AtenArgument* found = c.call().find(argument);
        return found ? found->number : std::nullopt;
    };
    if (number("start") || number("end") || number("step")) {  // real numbers: an element is as good as known
        const auto integer = [&](std::string_view argument, std::int64_t fallback) {
            return number(argument).value_or(static_cast<double>(c.integer(argument, fallback)));
        };
        const double step = integer("step", 1);
        if (step == 0) c.fail("a step of 0");
        const double count = (integer("end", 0) - integer("start", 0)) / step;
        constexpr double most = 1e15;
        if (!(count >= 0 && count < most)) c.fail("no range");
        const auto whole = static_cast<std::int64_t>(count);
        return {{c.dtype(DType::f32), {c.constant(whole + (static_cast<double>(whole) < count ? 1 : 0))}}};
    }
    ExpressionPool& pool = c.pool();
    const Shape start = c.sizes("start"), end = c.sizes("end"), step = c.sizes("step");
    if (end.size() != 1) return {{c.dtype(DType::i64), {}, false}};
    Expression length = start.empty() ? end[0] : pool.subtract(end[0], start[0]);
    if (!step.empty()) {
        if (c.is(step[0], 0)) c.fail("a step of 0");
        length = pool.ceil_divide(length, step[0]);
    }
    return {{c.dtype(DType::i64), {length}}};
}

Outputs eye(const Call& c) {
    const Shape n = c.sizes("n"), m = c.sizes("m");
    if (n.size() != 1) c.fail("argument 'n' is missing");
    return {{c.dtype(DType::f32), {n[0], m.empty() ? n[0] : m[0]}}};
}

Outputs reduce(const Call& c) {
    const DType held = c.first().dtype;
    const bool sums = (c.name().starts_with("sum") || c.name().starts_with("prod")) && category(held) < 2;
    if (c.name() == "cosine_similarity") {
        Shape shape = broadcast_shape(c);
        shape.erase(place(shape, c.axis("dim", 1, shape.size())));
        return {{held, std::move(shape)}};
    }
    return {{c.dtype(sums ? DType::i64 : held), reduced_shape(c)}};
}

/// max(x), max(x, other) and max(x, dim) → (values, indices)
Outputs extremum(const Call& c) {
    if (c.has("other")) return pointwise(c);
    if (!c.has("dim")) return {{c.first().dtype, {}}};
    return {{c.first().dtype, reduced_shape(c)}, {DType::i64, reduced_shape(c)}};
}

Outputs moments(const Call& c) {
    return {{c.first().dtype, reduced_shape(c)}, {c.first().dtype, reduced_shape(c)}};
}

Outputs sort(const Call& c) {
    return {{c.first().dtype, c.first().shape}, {DType::i64, c.first().shape}};
}

/// histc(x, bins=100): one count per bin, with the type of the input
Outputs histogram(const Call& c) {
    return {{c.first().dtype, {c.constant(c.integer("bins", 100))}}};
}

Outputs topk(const Call& c) {
    Shape shape = c.first().shape;
    const Shape k = c.sizes("k");
    if (k.size() != 1) c.fail("argument 'k' is missing");
    if (!shape.empty()) shape[c.axis("dim", -1, shape.size())] = k[0];
    return {{c.first().dtype, shape}, {DType::i64, shape}};
}

Outputs polar(const Call& c) {
    return {{c.first().dtype == DType::f64 ? DType::c128 : DType::c64, broadcast_shape(c)}};
}

Outputs outer(const Call& c) {
    const auto vectors = c.tensors();
    if (vectors.size() != 2 || vectors[0]->shape.size() != 1 || vectors[1]->shape.size() != 1)
        c.fail("needs two vectors");
    return {{promoted(c), {vectors[0]->shape[0], vectors[1]->shape[0]}}};
}

/// Gated activation over two halves of a dimension.
void halved(const Call& c, Shape& shape) {
    Expression& dim = shape[c.along("dim", -1).axis];
    const auto size = c.pool().constant_value(dim);
    if (size && *size % 2 != 0) c.fail("an odd size has no halves");
    dim = c.pool().floor_divide(dim, c.constant(2));
}

}  // namespace ftax::aten_shapes
