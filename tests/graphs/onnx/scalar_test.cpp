#include "graphs/onnx/scalar.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

using namespace ftax;
using onnx_import::Scalar;
using onnx_import::ShapeMath;

namespace {

constexpr std::array<std::array<std::int64_t, 2>, 4> sizes{{{1, 1}, {2, 7}, {12, 5}, {96, 64}}};
using Values = std::array<double, sizes.size()>;

Values values_of(const ExpressionPool& pool, const Scalar& scalar) {
    Values values;
    values.fill(scalar.real);
    if (scalar.kind == Scalar::Kind::real) return values;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        std::vector<std::int64_t> results;
        pool.evaluate(sizes[i], results);
        values[i] = static_cast<double>(results[scalar.numerator.id]) / static_cast<double>(scalar.denominator);
    }
    return values;
}

double computed(std::string_view function, double a, double b) {
    if (function == "add") return a + b;
    if (function == "sub") return a - b;
    if (function == "mul") return a * b;
    if (function == "div") return b == 0 ? -1 : a / b;
    if (function == "min") return std::min(a, b);
    if (function == "max") return std::max(a, b);
    if (function == "equal") return a == b;
    if (function == "greater") return a > b;
    if (function == "less") return a < b;
    if (function == "greater_or_equal") return a >= b;
    if (function == "less_or_equal") return a <= b;
    if (function == "floor" || function == "cast_to_integer") return std::floor(a);
    if (function == "ceil") return std::ceil(a);
    if (function == "sign" || function == "cast_to_boolean") return a > 0;
    return a;  // abs, relu
}

}  // namespace

TEST_CASE("arithmetic on sizes, through floats and back, is what numbers give, or unknown") {
    constexpr std::array unary{"floor", "ceil", "sign", "abs", "relu", "cast_to_integer", "cast_to_boolean"};
    constexpr std::array binary{
        "add", "sub", "mul", "div", "min", "max", "less", "greater", "less_or_equal", "greater_or_equal", "equal"};
    std::mt19937 random(5);
    const auto below = [&](std::size_t n) { return random() % n; };
    std::size_t known = 0, drawn = 0;
    for (int graph = 0; graph < 300; ++graph) {
        ExpressionPool pool;
        ShapeMath math(pool);
        std::vector<Scalar> scalars{math.from(pool.symbol("s")),
                                    math.from(pool.symbol("t")),
                                    math.integer(2),
                                    math.from(0.5),
                                    math.integer(3),
                                    math.from(0.3)};
        for (int step = 0; step < 12; ++step) {
            const Scalar a = scalars[below(scalars.size())], b = scalars[below(scalars.size())];
            const bool one = below(3) == 0;
            const std::string_view function = one ? unary[below(unary.size())] : binary[below(binary.size())];
            const Scalar result = math.apply(function, one ? std::vector{a} : std::vector{a, b}, false);
            const Values x = values_of(pool, a), y = values_of(pool, b);
            Values expected{};
            for (std::size_t i = 0; i < sizes.size(); ++i) expected[i] = computed(function, x[i], y[i]);
            // Sizes are not negative, and those of a network stay below 2^31.
            if (!std::ranges::all_of(expected, [](double v) { return v >= 0 && v < 1e9; })) continue;
            ++drawn;
            if (result.kind == Scalar::Kind::unknown) continue;
            ++known;
            scalars.push_back(result);
            const Values got = values_of(pool, result);
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                INFO(function, " of ", x[i], " and ", y[i]);
                CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-9));
            }
        }
    }

    CHECK(known > drawn * 8 / 10);
}

TEST_CASE("a size doubled and halved, or multiplied and divided, is a size again") {
    ExpressionPool pool;
    ShapeMath math(pool);
    const Scalar s = math.from(pool.symbol("s"));
    const auto twice = math.apply("mul", {s, math.integer(2)}, false);
    for (const Scalar& again :
         {math.apply("mul", {twice, math.from(0.5)}, false), math.apply("div", {twice, math.integer(2)}, false),
          math.apply("add",
                     {math.apply("div", {s, math.integer(2)}, false), math.apply("mul", {s, math.from(0.5)}, false)},
                     false)}) {
        CHECK(ShapeMath::expression(again) == s.numerator);
    }
}
