#include "graphs/onnx/scalar.hpp"

#include <cmath>
#include <map>
#include <numeric>

#include "graphs/base/near_names.hpp"

namespace ftax::onnx_import {
namespace {

/// Beyond this a float constant is not the ratio that a shape computation means.
constexpr std::int64_t largest_denominator = 1 << 20;

std::optional<double> real_function(std::string_view name, double x) {
    static const std::map<std::string_view, double (*)(double)> functions = {
        {"sqrt", std::sqrt},
        {"exp", std::exp},
        {"log", std::log},
        {"abs", std::fabs},
        {"floor", std::floor},
        {"ceil", std::ceil},
        {"round", std::nearbyint},
        {"neg", [](double v) { return -v; }},
        {"reciprocal", [](double v) { return 1 / v; }},
        {"relu", [](double v) { return std::fmax(v, 0.0); }}};
    const auto found = functions.find(name);
    return found == functions.end() ? std::nullopt : std::optional(found->second(x));
}

std::optional<double> real_function(std::string_view name, double a, double b) {
    if (name == "add") return a + b;
    if (name == "sub") return a - b;
    if (name == "mul") return a * b;
    if (name == "div" && b != 0) return a / b;
    if (name == "pow") return std::pow(a, b);
    if (name == "min") return std::fmin(a, b);
    if (name == "max") return std::fmax(a, b);
    if (name == "and") return a != 0 && b != 0;
    if (name == "or") return a != 0 || b != 0;
    return std::nullopt;
}

}  // namespace

Scalar ShapeMath::from(Expression e) {
    if (!is_known(e)) return {};
    return {Scalar::Kind::rational, e, 1, 0};
}

Scalar ShapeMath::from(double value) {
    for (std::int64_t denominator = 1; denominator <= largest_denominator; denominator *= 2) {
        const double scaled = value * static_cast<double>(denominator);
        if (std::fabs(scaled) >= 9e15) break;  // adjacent integers are no longer distinct in double
        if (scaled == std::floor(scaled)) return rational(constant(static_cast<std::int64_t>(scaled)), denominator);
    }
    return {Scalar::Kind::real, {}, 1, value};
}

Scalar ShapeMath::from(const Number& number) {
    if (const auto* integral = std::get_if<std::int64_t>(&number)) return integer(*integral);
    return from(std::get<double>(number));
}

Expression ShapeMath::expression(const Scalar& s) {
    return s.kind == Scalar::Kind::rational && s.denominator == 1 ? s.numerator : unknown_dim;
}

std::optional<double> ShapeMath::number(const Scalar& s) const {
    if (s.kind == Scalar::Kind::real) return s.real;
    if (s.kind == Scalar::Kind::unknown) return std::nullopt;
    const auto numerator = constant_value(s.numerator);
    if (!numerator) return std::nullopt;
    return static_cast<double>(*numerator) / static_cast<double>(s.denominator);
}

Scalar ShapeMath::rational(Expression numerator, std::int64_t denominator) {
    if (!is_known(numerator) || denominator > largest_denominator) return {};
    if (denominator > 1) {
        const Expression quotient = pool().floor_divide(numerator, constant(denominator));
        if (pool().multiply(quotient, constant(denominator)) == numerator) return from(quotient);
    }
    return {Scalar::Kind::rational, numerator, denominator, 0};
}

Scalar ShapeMath::rounded(const Scalar& s, bool up) {
    if (s.kind != Scalar::Kind::rational) return {};
    const Expression divisor = constant(s.denominator);
    return from(up ? pool().ceil_divide(s.numerator, divisor) : pool().floor_divide(s.numerator, divisor));
}

Scalar ShapeMath::unary(std::string_view function, const Scalar& x) {
    const auto value = number(x);
    if (function == "cast_to_integer") {
        return value ? rounded(from(std::trunc(*value)), false) : rounded(x, false);  // sizes are not negative
    }
    if (function == "cast_to_boolean") {
        if (value) return integer(*value != 0);
        return x.kind == Scalar::Kind::rational && at_least(x.numerator, constant(1)) ? integer(1) : Scalar{};
    }
    if (x.kind == Scalar::Kind::rational) {
        if (function == "floor") return rounded(x, false);
        if (function == "ceil") return rounded(x, true);
        if (function == "neg") return rational(multiply(x.numerator, -1), x.denominator);
        if (function == "relu" && x.denominator == 1) return from(maximum(x.numerator, constant(0)));
        if (function == "abs" && at_least(x.numerator, constant(0))) return x;
        if (function == "sign" && at_least(x.numerator, constant(1))) return integer(1);
        if (function == "not" && constant_value(x.numerator)) return integer(*constant_value(x.numerator) == 0);
        if (function == "round" && x.denominator == 1) return x;
    }
    if (!value) return {};
    const auto result = real_function(function, *value);
    return result ? from(*result) : Scalar{};
}

/// a > b, where it can be proved or disproved for all values of the symbols.
std::optional<bool> ShapeMath::is_greater(const Scalar& a, const Scalar& b) {
    if (a.kind == Scalar::Kind::rational && b.kind == Scalar::Kind::rational) {
        const Expression left = multiply(a.numerator, b.denominator), right = multiply(b.numerator, a.denominator);
        if (at_least(subtract(left, right), constant(1))) return true;
        return at_least(subtract(right, left), constant(0)) ? std::optional(false) : std::nullopt;
    }
    const auto x = number(a), y = number(b);
    return x && y ? std::optional(*x > *y) : std::nullopt;
}

Scalar ShapeMath::compare(std::string_view function, const Scalar& a, const Scalar& b) {
    const auto above = is_greater(a, b), below = is_greater(b, a);
    if (function == "equal")
        return above == true || below == true ? integer(0) : above && below ? integer(1) : Scalar{};
    // a < b is b > a; a ≥ b is not b > a
    const auto greater = function == "less" || function == "greater_or_equal" ? below : above;
    return greater ? integer(*greater != function.ends_with("_or_equal")) : Scalar{};
}

/// The quotient of two rationals where it is one.
std::optional<Scalar> ShapeMath::quotient(const Scalar& a, const Scalar& b, bool integral) {
    const auto divisor = constant_value(b.numerator);
    if (divisor == 0) return Scalar{};
    if (integral) return from(pool().floor_divide(a.numerator, b.numerator));  // sizes are not negative
    if (divisor && *divisor > 0 && *divisor <= largest_denominator)
        return rational(multiply(a.numerator, b.denominator), a.denominator * *divisor);
    if (a.denominator != 1 || b.denominator != 1) return std::nullopt;
    const Expression whole = pool().floor_divide(a.numerator, b.numerator);
    return pool().multiply(whole, b.numerator) == a.numerator ? std::optional(from(whole)) : std::nullopt;
}

/// The result for two rationals where that is exact.
std::optional<Scalar> ShapeMath::exact(std::string_view function, const Scalar& a, const Scalar& b, bool integral) {
    if (function == "add" || function == "sub") {
        const std::int64_t multiple = std::lcm(a.denominator, b.denominator);
        const Expression left = multiply(a.numerator, multiple / a.denominator);
        const Expression right = multiply(b.numerator, multiple / b.denominator);
        return rational(function == "add" ? add(left, right) : subtract(left, right), multiple);
    }
    if (function == "mul") return rational(multiply(a.numerator, b.numerator), a.denominator * b.denominator);
    if (function == "div") return quotient(a, b, integral);
    if (function == "mod" && integral && !is_constant(b.numerator, 0))
        return from(pool().modulo(a.numerator, b.numerator));
    if (a.denominator != 1 || b.denominator != 1) return std::nullopt;
    if (function == "min") return from(minimum(a.numerator, b.numerator));
    if (function == "max") return from(maximum(a.numerator, b.numerator));
    return std::nullopt;
}

Scalar ShapeMath::binary(std::string_view function, const Scalar& a, const Scalar& b, bool integral) {
    if (a.kind == Scalar::Kind::rational && b.kind == Scalar::Kind::rational)
        if (const auto result = exact(function, a, b, integral)) return *result;
    const auto x = number(a);
    const auto y = number(b);
    const auto result = x && y ? real_function(function, *x, *y) : std::nullopt;
    return result ? from(*result) : Scalar{};
}

Scalar ShapeMath::apply(std::string_view function, const std::vector<Scalar>& operands, bool integral) {
    if (function == "where") {
        const auto condition = number(operands[0]);
        if (condition) return *condition != 0 ? operands[1] : operands[2];
        const Expression yes = expression(operands[1]);
        return is_known(yes) && yes == expression(operands[2]) ? operands[1] : Scalar{};
    }
    if (has_word("equal greater less greater_or_equal less_or_equal", function))
        return compare(function, operands[0], operands[1]);
    if (operands.size() == 1) return unary(function, operands[0]);
    Scalar result = operands[0];
    for (std::size_t i = 1; i < operands.size(); ++i) result = binary(function, result, operands[i], integral);
    return result;
}

}  // namespace ftax::onnx_import
