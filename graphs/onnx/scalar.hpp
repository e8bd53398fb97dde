#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "graphs/ir/shape_rules.hpp"
#include "graphs/onnx/records.hpp"

namespace ftax::onnx_import {

/// One element of a tensor that shape arithmetic follows: an exact rational with a symbolic numerator (exporters take
/// detours through floats), a real number, or unknown. Booleans are 0 and 1.
struct Scalar {
    enum class Kind : std::uint8_t { unknown, rational, real } kind = Kind::unknown;
    Expression numerator;
    std::int64_t denominator = 1;
    double real = 0;
};

/// Computes with dimensions and scalars of one pool. What depends on something unknown is unknown.
class ShapeMath : public DimensionMath {
  public:
    using DimensionMath::DimensionMath;

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
    Scalar rational(Expression numerator, std::int64_t denominator);
    Scalar rounded(const Scalar& s, bool up);
    Scalar unary(std::string_view function, const Scalar& x);
    Scalar binary(std::string_view function, const Scalar& a, const Scalar& b, bool integral);
    std::optional<Scalar> exact(std::string_view function, const Scalar& a, const Scalar& b, bool integral);
    std::optional<Scalar> quotient(const Scalar& a, const Scalar& b, bool integral);
    Scalar compare(std::string_view function, const Scalar& a, const Scalar& b);
    std::optional<bool> is_greater(const Scalar& a, const Scalar& b);
};

}  // namespace ftax::onnx_import
