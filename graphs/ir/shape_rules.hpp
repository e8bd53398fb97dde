#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ftax/expression.hpp"
#include "graphs/base/checked_math.hpp"
#include "graphs/base/mapped.hpp"

namespace ftax {

using Dims = std::vector<Expression>;

/// Represents a dimension that is unknown without running the model. Pools never use this id.
inline constexpr Expression unknown_dim{~std::uint32_t{0}};
[[nodiscard]] inline bool is_known(Expression e) noexcept {
    return e != unknown_dim;
}

/// The dimensions with another last one.
[[nodiscard]] inline Dims with_last(Dims dims, Expression last) {
    dims.back() = last;
    return dims;
}
/// The numbers of the axes of a tensor, in order.
[[nodiscard]] inline std::vector<std::int64_t> all_axes(std::size_t rank) {
    std::vector<std::int64_t> axes(rank);
    std::iota(axes.begin(), axes.end(), 0);
    return axes;
}

/// Removes the dimensions that both have, so that the products of the others are short expressions.
inline void cancel(Dims& a, Dims& b) {
    std::erase_if(b, [&](Expression dim) {
        const auto same = std::ranges::find(a, dim);
        const bool shared = is_known(dim) && same != a.end();
        if (shared) a.erase(same);
        return shared;
    });
}

/// Arithmetic on dimensions of one pool; unknown operands give unknown results.
class DimensionMath {
  public:
    explicit DimensionMath(ExpressionPool& pool) : pool_(pool) {}

    [[nodiscard]] ExpressionPool& pool() const noexcept { return pool_; }

    Expression constant(std::int64_t value) const { return pool_.constant(value); }
    [[nodiscard]] std::optional<std::int64_t> constant_value(Expression e) const {
        return is_known(e) ? pool_.constant_value(e) : std::nullopt;
    }
    [[nodiscard]] bool is_constant(Expression e, std::int64_t value) const { return constant_value(e) == value; }

    Expression add(Expression a, Expression b) const { return of_known(&ExpressionPool::add, a, b); }
    Expression subtract(Expression a, Expression b) const { return of_known(&ExpressionPool::subtract, a, b); }
    Expression multiply(Expression a, Expression b) const { return of_known(&ExpressionPool::multiply, a, b); }
    Expression floor_divide(Expression a, Expression b) const { return of_known(&ExpressionPool::floor_divide, a, b); }
    Expression ceil_divide(Expression a, Expression b) const { return of_known(&ExpressionPool::ceil_divide, a, b); }
    Expression minimum(Expression a, Expression b) const { return of_known(&ExpressionPool::minimum, a, b); }
    Expression maximum(Expression a, Expression b) const { return of_known(&ExpressionPool::maximum, a, b); }
    Expression add(Expression a, std::int64_t b) const { return add(a, constant(b)); }
    Expression multiply(Expression a, std::int64_t b) const { return multiply(a, constant(b)); }
    Expression floor_divide(Expression a, std::int64_t b) const { return floor_divide(a, constant(b)); }
    Expression product(const Dims& dims, std::size_t begin, std::size_t end) const {
        Expression result = constant(1);
        for (std::size_t i = begin; i < end; ++i) result = multiply(result, dims[i]);
        return result;
    }
    Expression product(const Dims& dims) const { return product(dims, 0, dims.size()); }
    /// Number of elements if every dimension is constant.
    [[nodiscard]] std::optional<std::int64_t> static_count(const Dims& dims) const {
        return constant_value(product(dims));
    }
    /// True when a ≥ b for all values of the symbols; false means not proved.
    bool at_least(Expression a, Expression b) const { return maximum(a, b) == a && is_known(a); }
    /// Strides of row-major memory, in elements.
    [[nodiscard]] Dims contiguous_strides(const Dims& dims) const {
        Dims strides(dims.size());
        Expression step = constant(1);
        for (std::size_t i = dims.size(); i-- > 0; step = multiply(step, dims[i])) strides[i] = step;
        return strides;
    }
    /// Drops strides that are row-major; dimensions of length 1 may have any stride.
    [[nodiscard]] Dims unless_contiguous(const Dims& dims, Dims strides) const {
        Expression step = constant(1);
        for (std::size_t i = dims.size(); i-- > 0; step = multiply(step, dims[i]))
            if (!is_constant(dims[i], 1) && strides[i] != step) return strides;
        return {};
    }
    [[nodiscard]] std::string print(Expression e) const { return is_known(e) ? pool_.to_string(e) : "?"; }
    /// "[batch,3,224,224]"
    [[nodiscard]] std::string print(const Dims& dims) const {
        return fmt::format("[{}]", fmt::join(mapped(dims, [&](Expression dim) { return print(dim); }), ","));
    }

  private:
    Expression of_known(Expression (ExpressionPool::*function)(Expression, Expression), Expression a,
                        Expression b) const {
        return is_known(a) && is_known(b) ? (pool_.*function)(a, b) : unknown_dim;
    }

    ExpressionPool& pool_;
};

/// A window along one dimension.
struct WindowAxis {
    Expression kernel, stride, dilation, pad_begin, pad_end;
};

/// Shape rules of operators, shared by all importers. `Context` derives from it and has math(), the DimensionMath of
/// its graph, and fail(text), which throws an Error that names the operator. `symbols_match`: symbols of sizes that
/// must be equal must be identical; otherwise they are assumed to be equal.
template <class Context, bool symbols_match = false>
class ShapeRules {
  public:
    [[noreturn]] void fail(std::string_view what) const { static_cast<const Context&>(*this).fail(what); }
    template <class First, class... Others>
    [[noreturn]] void fail(fmt::format_string<First, Others...> what, First&& first, Others&&... others) const {
        fail(fmt::format(what, std::forward<First>(first), std::forward<Others>(others)...));
    }
    /// Maps an axis to [0, rank). Fails outside [-rank, rank).
    [[nodiscard]] std::size_t axis(std::int64_t value, std::size_t rank) const {
        const auto dimensions = static_cast<std::int64_t>(rank);
        if (value < -dimensions || value >= dimensions) fail("axis {} of {} dimensions", value, rank);
        return static_cast<std::size_t>(value < 0 ? value + dimensions : value);
    }

    /// Sizes aligned from the right; 1 stretches.
    [[nodiscard]] Dims broadcast(const Dims& a, const Dims& b) const {
        const Dims& longer = a.size() >= b.size() ? a : b;
        const Dims& shorter = a.size() >= b.size() ? b : a;
        Dims result = longer;
        for (std::size_t i = 0; i < shorter.size(); ++i) {
            Expression& dim = result[longer.size() - shorter.size() + i];
            if (!math().is_constant(dim, 1) && !math().is_constant(shorter[i], 1) && differ(dim, shorter[i]))
                fail("{} and {} do not broadcast", math().print(a), math().print(b));
            dim = broadcast(dim, shorter[i]);
        }
        return result;
    }

    /// A symbol paired with a number other than 1 must equal it, or be 1.
    [[nodiscard]] Expression broadcast(Expression a, Expression b) const {
        if (a == b || math().is_constant(b, 1)) return a;
        if (math().is_constant(a, 1)) return b;
        if (math().constant_value(a)) return a;
        return math().constant_value(b) ? b : math().maximum(a, b);
    }

    /// Batch dimensions and the product's m × n, with the vector forms of numpy.matmul.
    [[nodiscard]] Dims multiplied(Dims a, Dims b) const {
        if (a.empty() || b.empty()) fail("an operand is a scalar");
        const bool row = a.size() == 1, column = b.size() == 1;
        if (row) a.insert(a.begin(), math().constant(1));
        if (column) b.push_back(math().constant(1));
        if (differ(a.back(), b[b.size() - 2]))
            fail("inner dimensions of {} and {} differ", math().print(a), math().print(b));
        Dims result = broadcast(Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2));
        if (!row) result.push_back(a[a.size() - 2]);
        if (!column) result.push_back(b.back());
        return result;
    }

    /// Number of window positions in `in`: (in + pads − dilation·(kernel − 1) − 1) / stride + 1, rounded down or up.
    /// Source: aten/src/ATen/native/Pool.h; ONNX, Conv and MaxPool.
    [[nodiscard]] Expression window_count(Expression in, const WindowAxis& w, bool ceil_mode = false) const {
        check_window(w);
        const auto size = math().constant_value(in), step = math().constant_value(w.stride), reach = reach_of(w);
        const auto begin = math().constant_value(w.pad_begin);
        if (size && step && reach) {  // fast path for numbers: networks are built by the thousand
            if (*size < *reach) does_not_fit(in, w);
            const std::int64_t room = checked_add(*size, checked_multiply(*reach, -1));
            const std::int64_t last = checked_add(*size, checked_add(*begin, -1));
            const std::int64_t up = std::min(ceil_quotient(room, *step), floor_quotient(last, *step));
            return math().constant(1 + (ceil_mode ? up : floor_quotient(room, *step)));
        }
        const Expression room = math().subtract(in, unpadded_reach(w));
        if (math().constant_value(room).value_or(0) < 0) does_not_fit(in, w);
        if (!ceil_mode) return math().add(math().floor_divide(room, w.stride), 1);
        // The last window must start inside the input or its left padding.
        const Expression last = math().add(math().add(in, w.pad_begin), -1);
        return math().add(math().minimum(math().ceil_divide(room, w.stride), math().floor_divide(last, w.stride)), 1);
    }

    /// Input size for which a window gives `out`: (out − 1)·stride + dilation·(kernel − 1) + 1 − pads.
    [[nodiscard]] Expression window_input(Expression out, const WindowAxis& w) const {
        return math().add(math().multiply(math().add(out, -1), w.stride), unpadded_reach(w));
    }

    [[nodiscard]] std::vector<std::int64_t> permutation(std::span<const std::int64_t> given, std::size_t rank) const {
        std::vector<std::int64_t> perm(given.begin(), given.end()), sorted;
        for (std::int64_t& at : perm) sorted.push_back(at += at < 0 ? static_cast<std::int64_t>(rank) : 0);
        std::ranges::sort(sorted);
        if (sorted != all_axes(rank)) fail("[{}] is not a permutation of {} axes", fmt::join(given, ","), rank);
        return perm;
    }

    [[nodiscard]] Dims permuted(const Dims& dims, std::span<const std::int64_t> perm) const {
        return mapped(permutation(perm, dims.size()), [&](auto at) { return dims[static_cast<std::size_t>(at)]; });
    }

    /// Removes the axes, or replaces them by 1.
    [[nodiscard]] Dims reduced(const Dims& dims, std::span<const std::int64_t> axes, bool keep) const {
        Dims result;
        for (std::size_t i = 0; i < dims.size(); ++i) {
            if (std::ranges::find(axes, static_cast<std::int64_t>(i)) == axes.end()) {
                result.push_back(dims[i]);
            } else if (keep) {
                result.push_back(math().constant(1));
            }
        }
        return result;
    }

    [[nodiscard]] Dims joined(const std::vector<const Dims*>& parts, std::size_t along) const {
        Dims result = *parts.front();
        for (auto part = parts.begin() + 1; part != parts.end(); ++part) {
            const Dims& next = **part;
            for (std::size_t i = 0; i < result.size() && next.size() == result.size(); ++i) {
                if (i == along) continue;
                if (differ(result[i], next[i])) break_off(*parts.front(), next, along);
                if (math().constant_value(next[i])) result[i] = next[i];
            }
            if (next.size() != result.size()) break_off(*parts.front(), next, along);
            result[along] = math().add(result[along], next[along]);
        }
        return result;
    }

    /// Depth to space with `factor` along each spatial dimension, or the inverse.
    [[nodiscard]] Dims shuffled(Dims dims, std::size_t channel, std::int64_t factor, bool to_space) const {
        const auto scaled = [&](Expression dim, std::int64_t by, bool up) {
            return up ? math().multiply(dim, by) : math().floor_divide(dim, by);
        };
        dims[channel] = scaled(dims[channel], checked_multiply(factor, factor), !to_space);
        for (std::size_t i = channel + 1; i < dims.size(); ++i) dims[i] = scaled(dims[i], factor, to_space);
        return dims;
    }

    [[nodiscard]] Dims flattened(const Dims& dims, std::size_t begin, std::size_t end) const {
        Dims result(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(begin));
        result.push_back(math().product(dims, begin, end));
        result.insert(result.end(), dims.begin() + static_cast<std::ptrdiff_t>(end), dims.end());
        return result;
    }

    /// Reshape; a -1 is inferred from the number of elements.
    [[nodiscard]] Dims reshaped(const Dims& before, Dims wanted) const {
        const Expression total = math().product(before), open = math().constant(-1);
        const auto inferred = std::ranges::find(wanted, open);
        if (inferred != wanted.end()) {
            if (std::count(inferred, wanted.end(), open) > 1) fail("two dimensions are -1");
            *inferred = math().constant(1);
            const Expression known = math().product(wanted);
            if (math().is_constant(known, 0)) fail("a dimension of 0 leaves -1 undetermined");
            *inferred = math().floor_divide(total, known);
        }
        if (differ(math().product(wanted), total))
            fail("{} and {} differ in size", math().print(before), math().print(wanted));
        return wanted;
    }

  private:
    [[nodiscard]] DimensionMath math() const { return static_cast<const Context&>(*this).math(); }

    [[nodiscard]] bool differ(Expression a, Expression b) const {
        return a != b && (symbols_match || (math().constant_value(a) && math().constant_value(b)));
    }
    [[noreturn]] void break_off(const Dims& a, const Dims& b, std::size_t along) const {
        fail("{} and {} differ outside of axis {}", math().print(a), math().print(b), along);
    }
    [[noreturn]] void does_not_fit(Expression in, const WindowAxis& w) const {
        fail("kernel {} does not fit into {} with pad {}", math().print(w.kernel), math().print(in),
             math().print(w.pad_begin));
    }
    /// dilation·(kernel − 1) + 1 − pads, if all are numbers.
    [[nodiscard]] std::optional<std::int64_t> reach_of(const WindowAxis& w) const {
        const auto kernel = math().constant_value(w.kernel), dilation = math().constant_value(w.dilation);
        const auto begin = math().constant_value(w.pad_begin), end = math().constant_value(w.pad_end);
        if (!kernel || !dilation || !begin || !end) return std::nullopt;
        return checked_add(checked_multiply(*dilation, *kernel - 1),
                           checked_add(1, checked_multiply(checked_add(*begin, *end), -1)));
    }
    [[nodiscard]] Expression unpadded_reach(const WindowAxis& w) const {
        if (const auto reach = reach_of(w)) return math().constant(*reach);
        const Expression kernel = math().add(math().multiply(math().add(w.kernel, -1), w.dilation), 1);
        return math().subtract(kernel, math().add(w.pad_begin, w.pad_end));
    }
    void check_window(const WindowAxis& w) const {
        for (const Expression size : {w.kernel, w.stride, w.dilation}) {
            if (math().constant_value(size).value_or(1) >= 1) continue;
            fail("kernel {}, stride {} and dilation {} must be at least 1", math().print(w.kernel),
                 math().print(w.stride), math().print(w.dilation));
        }
    }
};

}  // namespace ftax
