#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "ftax/expression.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/base/throw_error.hpp"

namespace ftax {
namespace {

constexpr std::size_t max_length = 4096;
constexpr int max_depth = 64;

/// Recursive descent over: sum = product {(+|-) product}, product = factor {(*|//|/|%) factor},
/// factor = [-] primary [** integer], primary = integer | name | name(sum, …) | (sum).
class ExpressionParser {
  public:
    ExpressionParser(ExpressionPool& pool, std::string_view text) : pool_(pool), text_(text) {}

    Expression parse() {
        if (text_.size() > max_length)
            throw_error(ErrorCode::limit, "shape expression longer than {} characters", max_length);
        const Expression result = sum();
        if (position_ != text_.size()) fail("unexpected character");
        return result;
    }

  private:
    [[noreturn]] void fail(std::string_view what) const {
        throw_error(ErrorCode::model, "shape expression '{}': {} at character {}", excerpt(text_), what, position_ + 1);
    }

    void skip_spaces() {
        while (position_ < text_.size() && text_[position_] == ' ') ++position_;
    }

    bool accept(std::string_view token) {
        skip_spaces();
        if (!text_.substr(position_).starts_with(token)) return false;
        position_ += token.size();
        skip_spaces();
        return true;
    }

    void expect(std::string_view token) {
        if (!accept(token)) fail(fmt::format("expected '{}'", token));
    }

    void descend() {
        if (++depth_ > max_depth)
            throw_error(ErrorCode::limit, "shape expression nested deeper than {} levels", max_depth);
    }

    Expression sum() {
        descend();
        Expression result = product();
        for (bool plus = true; (plus = accept("+")) || accept("-");)
            result = plus ? pool_.add(result, product()) : pool_.subtract(result, product());
        --depth_;
        return result;
    }

    /// A sum and the parenthesis after it.
    Expression closed_sum() {
        const Expression inner = sum();
        expect(")");
        return inner;
    }

    Expression product() {
        Expression result = factor();
        while (true) {
            if (accept("//") || accept("/")) {
                result = pool_.floor_divide(result, factor());
            } else if (accept("*")) {
                result = pool_.multiply(result, factor());
            } else if (accept("%")) {
                result = pool_.modulo(result, factor());
            } else {
                return result;
            }
        }
    }

    Expression factor() {
        if (accept("-")) {
            descend();
            const Expression negated = pool_.multiply(pool_.constant(-1), factor());
            --depth_;
            return negated;
        }
        const Expression base = primary();
        if (!accept("**")) return base;
        return power(base, integer());
    }

    Expression power(Expression base, std::int64_t exponent) {
        if (exponent < 0 || exponent > 8) fail("exponent outside 0 to 8");
        Expression result = pool_.constant(1);
        for (std::int64_t i = 0; i < exponent; ++i) result = pool_.multiply(result, base);
        return result;
    }

    // The forms of sympy's srepr, which torch.export 2.7 and later write: Add(a, b, …), Mul(a, Rational(1, 2), …),
    // Integer(-3), Symbol('s77', positive=True, integer=True).

    Expression sympy_chain(bool product) {
        std::optional<Expression> result;
        std::int64_t divisor = 1;
        do {
            Expression term = pool_.constant(1);
            if (product && accept("Rational(")) {
                const bool negative = accept("-");
                term = pool_.constant(integer() * (negative ? -1 : 1));
                expect(",");
                divisor = integer();
                expect(")");
            } else {
                term = sum();
            }
            result = !result ? term : product ? pool_.multiply(*result, term) : pool_.add(*result, term);
        } while (accept(","));
        expect(")");
        return divisor == 1 ? *result : pool_.floor_divide(*result, pool_.constant(divisor));
    }

    Expression sympy_symbol() {
        expect("'");
        const Expression symbol = sum();
        expect("'");
        while (position_ < text_.size() && text_[position_] != ')') ++position_;  // assumptions such as positive=True
        expect(")");
        return symbol;
    }

    std::int64_t integer() {
        std::int64_t value = 0;
        const char* begin = text_.data() + position_;
        if (text_.substr(position_).starts_with('-')) fail("expected an integer without a sign");
        const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
        if (error == std::errc::result_out_of_range)
            throw_error(ErrorCode::limit, "shape expression '{}': integer out of range", excerpt(text_));
        if (error != std::errc{}) fail("expected an integer");
        position_ += static_cast<std::size_t>(end - begin);
        skip_spaces();
        return value;
    }

    Expression primary() {
        skip_spaces();
        if (accept("(")) return closed_sum();
        if (position_ >= text_.size()) fail("expected a number or a name");
        const char c = text_[position_];
        if (std::isdigit(static_cast<unsigned char>(c))) return pool_.constant(integer());
        if (!std::isalpha(static_cast<unsigned char>(c)) && c != '_') fail("expected a number or a name");
        const std::size_t begin = position_;
        const auto in_name = [](char ch) {
            return std::isalnum(static_cast<unsigned char>(ch)) || ch == '_' || ch == '.';
        };
        while (position_ < text_.size() && in_name(text_[position_])) ++position_;
        const std::string_view name = text_.substr(begin, position_ - begin);
        if (accept("(")) return call(name);
        return pool_.symbol(name);
    }

    Expression call(std::string_view name) {
        // Conversions that sympy prints around integers mean nothing here, but decide how a division rounds.
        static constexpr std::string_view conversions[] = {"CeilToInt", "ceiling", "Integer",   "FloorToInt",
                                                           "floor",     "ToFloat", "TruncToInt"};
        if ((name == "CeilToInt" || name == "ceiling") && accept("IntTrueDiv(")) {
            const auto [a, b] = pair();
            expect(")");
            return pool_.ceil_divide(a, b);
        }
        if (std::ranges::find(conversions, name) != std::end(conversions)) return closed_sum();
        if (name == "Add" || name == "Mul") return sympy_chain(name == "Mul");
        if (name == "Symbol") return sympy_symbol();
        if (name == "Pow") {
            const auto [base, exponent] = pair();
            return power(base, pool_.constant_value(exponent).value_or(-1));
        }
        if (name == "Max" || name == "max" || name == "Min" || name == "min") {
            const bool largest = name[1] == 'a';
            Expression result = sum();
            while (accept(",")) result = largest ? pool_.maximum(result, sum()) : pool_.minimum(result, sum());
            expect(")");
            return result;
        }
        const auto [a, b] = pair();
        if (name == "FloorDiv" || name == "CleanDiv" || name == "IntTrueDiv") return pool_.floor_divide(a, b);
        if (name == "ceildiv" || name == "CeilDiv") return pool_.ceil_divide(a, b);
        if (name == "Mod" || name == "PythonMod") return pool_.modulo(a, b);
        fail(fmt::format("unknown function {}", name));
    }

    std::pair<Expression, Expression> pair() {
        const Expression a = sum();
        expect(",");
        return {a, closed_sum()};
    }

    ExpressionPool& pool_;
    std::string_view text_;
    std::size_t position_ = 0;
    int depth_ = 0;
};

}  // namespace

Expression ExpressionPool::parse(std::string_view text) {
    return ExpressionParser(*this, text).parse();
}

}  // namespace ftax
