#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ftax/expression.hpp"
#include "graphs/onnx/records.hpp"

namespace ftax::onnx_import {

/// Stands for a dimension that cannot be known without running the model. No pool ever hands out this id.
inline constexpr Expression unknown_dim{~std::uint32_t{0}};
[[nodiscard]] inline bool is_known(Expression e) noexcept {
    return e != unknown_dim;
}

using Dims = std::vector<Expression>;

/// One element of a tensor that shape arithmetic follows: an exact rational with a symbolic numerator (exporters take
/// detours through floats), a real number, or unknown. Booleans are 0 and 1.
struct Scalar {
    enum class Kind : std::uint8_t { unknown, rational, real } kind = Kind::unknown;
    Expression numerator;
    std::int64_t denominator = 1;
    double real = 0;
};

/// Computes with dimensions and scalars of one pool. What depends on something unknown is unknown.
class ShapeMath {
  public:
    explicit ShapeMath(ExpressionPool& pool) : pool_(pool) {}

    [[nodiscard]] ExpressionPool& pool() const noexcept { return pool_; }

    Expression constant(std::int64_t value) { return pool_.constant(value); }
    [[nodiscard]] std::optional<std::int64_t> constant_value(Expression e) const {
        return is_known(e) ? pool_.constant_value(e) : std::nullopt;
    }
    [[nodiscard]] bool is_constant(Expression e, std::int64_t value) const { return constant_value(e) == value; }

    Expression add(Expression a, Expression b) { return of_known(&ExpressionPool::add, a, b); }
    Expression subtract(Expression a, Expression b) { return of_known(&ExpressionPool::subtract, a, b); }
    Expression multiply(Expression a, Expression b) { return of_known(&ExpressionPool::multiply, a, b); }
    Expression floor_divide(Expression a, Expression b) { return of_known(&ExpressionPool::floor_divide, a, b); }
    Expression ceil_divide(Expression a, Expression b) { return of_known(&ExpressionPool::ceil_divide, a, b); }
    Expression minimum(Expression a, Expression b) { return of_known(&ExpressionPool::minimum, a, b); }
    Expression maximum(Expression a, Expression b) { return of_known(&ExpressionPool::maximum, a, b); }
    Expression add(Expression a, std::int64_t b) { return add(a, constant(b)); }
    Expression multiply(Expression a, std::int64_t b) { return multiply(a, constant(b)); }
    Expression floor_divide(Expression a, std::int64_t b) { return floor_divide(a, constant(b)); }
    /// Product of dims[begin, end).
    Expression product(const Dims& dims, std::size_t begin, std::size_t end);
    Expression product(const Dims& dims) { return product(dims, 0, dims.size()); }
    /// Number of elements when every dimension is a constant.
    [[nodiscard]] std::optional<std::int64_t> static_count(const Dims& dims);
    /// True when a ≥ b for all values of the symbols; false means not proved.
    bool at_least(Expression a, Expression b) { return maximum(a, b) == a && is_known(a); }

    Scalar integer(std::int64_t value) { return from(constant(value)); }
    Scalar from(Expression e);
    Scalar from(double value);
    Scalar from(const Number& number);
    /// The integer the scalar is, or unknown_dim.
    [[nodiscard]] static Expression expression(const Scalar& s);
    [[nodiscard]] std::optional<double> number(const Scalar& s) const;

    /// Applies an elementwise function by the name it has in the table of operators. `integral`: operands are integers.
    /// A function without a rule here yields an unknown scalar.
    Scalar apply(std::string_view function, const std::vector<Scalar>& operands, bool integral);

  private:
    Expression of_known(Expression (ExpressionPool::*function)(Expression, Expression), Expression a, Expression b) {
        return is_known(a) && is_known(b) ? (pool_.*function)(a, b) : unknown_dim;
    }
    Scalar rational(Expression numerator, std::int64_t denominator);
    Scalar rounded(const Scalar& s, bool up);
    Scalar unary(std::string_view function, const Scalar& x);
    Scalar binary(std::string_view function, const Scalar& a, const Scalar& b, bool integral);
    Scalar compare(std::string_view function, const Scalar& a, const Scalar& b);

    ExpressionPool& pool_;
};

}  // namespace ftax::onnx_import
