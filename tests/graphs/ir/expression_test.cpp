#include "ftax/expression.hpp"

#include <doctest/doctest.h>

#include <array>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ftax/error.hpp"
#include "tests/failure.hpp"

using namespace ftax;

namespace {

constexpr std::array<std::array<std::int64_t, 3>, 6> sizes{
    {{1, 1, 1}, {2, 3, 5}, {7, 1, 4}, {1, 6, 2}, {12, 8, 6}, {5, 5, 9}}};

/// An expression over a, b and c with the values that it has for each of `sizes`, computed beside the pool.
struct Computed {
    Expression e;
    std::array<std::int64_t, sizes.size()> values{};
};

/// A random expression of at most this depth; divisors are sizes or numbers, hence positive.
Computed random_expression(ExpressionPool& pool, std::mt19937& random, int depth) {
    const auto draw = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
    Computed result;
    const auto leaf = [&](bool positive) {
        Computed of;
        if (const int which = draw(5); which < 3) {
            of.e = pool.symbol(std::string(1, static_cast<char>('a' + which)));
            for (std::size_t i = 0; i < sizes.size(); ++i) of.values[i] = sizes[i][static_cast<std::size_t>(which)];
        } else {
            const std::int64_t number = draw(6) + (positive ? 1 : -2);
            of.e = pool.constant(number);
            of.values.fill(number);
        }
        return of;
    };
    if (depth == 0) return leaf(false);
    const int kind = draw(8);
    const Computed x = random_expression(pool, random, depth - 1);
    const bool divides = kind >= 3 && kind < 6;
    const Computed y = divides ? leaf(true) : random_expression(pool, random, depth - 1);
    const auto floor_of = [](std::int64_t p, std::int64_t q) { return (p - ((p % q + q) % q)) / q; };
    const auto of = [&](std::int64_t p, std::int64_t q) {
        switch (kind) {
            case 0:
                return p + q;
            case 1:
                return p - q;
            case 2:
                return p * q;
            case 3:
                return floor_of(p, q);
            case 4:
                return -floor_of(-p, q);
            case 5:
                return p - q * floor_of(p, q);
            case 6:
                return std::min(p, q);
            default:
                return std::max(p, q);
        }
    };
    using Make = Expression (ExpressionPool::*)(Expression, Expression);
    constexpr std::array<Make, 8> make{&ExpressionPool::add,         &ExpressionPool::subtract,
                                       &ExpressionPool::multiply,    &ExpressionPool::floor_divide,
                                       &ExpressionPool::ceil_divide, &ExpressionPool::modulo,
                                       &ExpressionPool::minimum,     &ExpressionPool::maximum};
    result.e = (pool.*make[static_cast<std::size_t>(kind)])(x.e, y.e);
    for (std::size_t i = 0; i < sizes.size(); ++i) result.values[i] = of(x.values[i], y.values[i]);
    return result;
}

}  // namespace

TEST_CASE(
    "3,000 random expressions have the values of their operations however they are simplified, and print as such") {
    std::mt19937 random(1);
    for (int round = 0; round < 300; ++round) {
        ExpressionPool pool;
        for (const char* name : {"a", "b", "c"}) static_cast<void>(pool.symbol(name));
        std::vector<Computed> made;
        for (int i = 0; i < 10; ++i) made.push_back(random_expression(pool, random, 1 + i % 4));
        for (const Computed& one : made)
            CHECK_MESSAGE(pool.parse(pool.to_string(one.e)) == one.e, pool.to_string(one.e));
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            std::vector<std::int64_t> values;
            pool.evaluate(sizes[i], values);
            for (const Computed& one : made)
                CHECK_MESSAGE(values[one.e.id] == one.values[i], pool.to_string(one.e), " for ", sizes[i][0], ", ",
                              sizes[i][1], " and ", sizes[i][2]);
        }
    }
}

TEST_CASE("equal expressions have equal handles however they are written") {
    ExpressionPool pool;
    CHECK(pool.parse("2*(batch+seq)*3") == pool.parse("seq*6 + 6*batch"));
    CHECK(pool.parse("batch*seq*768//(seq*768)") == pool.symbol("batch"));
    CHECK(pool.parse("(4*batch*seq+8*seq)//(4*seq)") == pool.parse("batch+2"));
    CHECK(pool.parse("(batch+6-3)//1") == pool.parse("batch+3"));
    CHECK(pool.parse("(s0+1)*7//(s0+1)") == pool.constant(7));
    CHECK(pool.parse("s0//(9*s0)") == pool.constant(0));
    CHECK(pool.parse("s0**2 - s0*s0") == pool.constant(0));
    CHECK(pool.parse("(2*s0+1)//2") == pool.symbol("s0"));
    CHECK(pool.parse("Mod(6*s0, 3)") == pool.constant(0));
    CHECK(pool.parse("Max(1, s0)") == pool.symbol("s0"));
    CHECK(pool.parse("Min(s0, s0+1)") == pool.symbol("s0"));
}

TEST_CASE("expressions evaluate to what they say, and print so that they parse back") {
    ExpressionPool pool;
    const char* texts[] = {
        "(h+2*3-7)//2+1", "batch*seq+-3*batch",          "ceildiv(seq,512)*512",   "min(seq,512)*max(h,20)%7",
        "-h + 5",         "CeilToInt(IntTrueDiv(h, 4))", "((h-1)//2)*((seq-1)//2)"};
    const auto floor_div = [](std::int64_t a, std::int64_t b) { return (a - ((a % b + b) % b)) / b; };
    for (const std::int64_t h : {1, 5, 13, 224}) {
        const std::int64_t batch = 3, seq = 640;
        const std::int64_t expected[] = {floor_div(h + 6 - 7, 2) + 1,
                                         batch * seq - 3 * batch,
                                         1024,
                                         512 * std::max<std::int64_t>(h, 20) % 7,
                                         5 - h,
                                         (h + 3) / 4,
                                         floor_div(h - 1, 2) * floor_div(seq - 1, 2)};
        for (std::size_t i = 0; i < std::size(texts); ++i) {
            const Expression e = pool.parse(texts[i]);
            CHECK(pool.parse(pool.to_string(e)) == e);
            std::vector<std::int64_t> symbol_values, values;
            for (const std::string& name : pool.symbols()) {
                symbol_values.push_back(name == "h" ? h : name == "batch" ? batch : seq);
            }
            pool.evaluate(symbol_values, values);
            CHECK_MESSAGE(values[e.id] == expected[i], texts[i], " printed ", pool.to_string(e));
        }
    }
}

TEST_CASE("an expression prints the same in every pool, highest powers first") {
    for (const char* first : {"a", "b", "c"}) {
        CAPTURE(first);
        ExpressionPool pool;
        static_cast<void>(pool.symbol(first));
        CHECK(pool.to_string(pool.parse("1 + c - b + 3*a*b + c*c")) == "3*a*b+c*c-b+c+1");
        CHECK(pool.to_string(pool.parse("max(c, a) * (b//2)")) == "((b)//(2))*max(a,c)");
        CHECK(pool.parse("(a*c + b*c)//(a + b)") == pool.symbol("c"));
    }
}

TEST_CASE("BAD_INPUTS 16: a product beyond int64 is a limit, never a wrapped number") {
    ExpressionPool pool;
    CHECK_THROWS_AS(pool.parse("4611686018427387904*4"), Error);
    const Expression e = pool.parse("batch*batch*batch*1000000");
    std::vector<std::int64_t> values;
    const std::int64_t large[] = {std::int64_t{1} << 31};
    CHECK_THROWS_AS(pool.evaluate(large, values), Error);
    const std::int64_t small[] = {4};
    pool.evaluate(small, values);
    CHECK(values[e.id] == 64'000'000);
}

TEST_CASE("BAD_INPUTS 20: the expression parser is bounded and says where it stopped") {
    ExpressionPool pool;
    const auto code_of = [&](const std::string& text) {
        return static_cast<int>(test::failure_of([&] { return pool.parse(text); }).code);
    };
    CHECK(code_of("2*s0+1") == 0);
    CHECK(code_of("") == 3);
    CHECK(code_of("2*") == 3);
    CHECK(code_of("s0 $ 1") == 3);
    CHECK(code_of("system(1,2)") == 3);
    CHECK(code_of("s0//0") == 3);
    CHECK(code_of("99999999999999999999") == 4);
    CHECK(code_of(std::string(100, '(') + "1" + std::string(100, ')')) == 4);
    CHECK(code_of(std::string(100, '-') + "1") == 4);
    CHECK(code_of(std::string(5000, '1')) == 4);
}

TEST_CASE("an expression moves to another pool with its symbols replaced") {
    ExpressionPool from, to;
    const Expression e = from.parse("max(2*n, m)//3 + n*m");
    const Expression moved = to.import(from, e, {{"n", to.parse("batch+1")}});
    CHECK(moved == to.parse("max(2*(batch+1), m)//3 + (batch+1)*m"));
    CHECK(from.symbols_of(e) == std::vector<std::string>{"n", "m"});
}

TEST_CASE("a minimum with a quotient keeps both sides") {
    ExpressionPool pool;
    const Expression e = pool.parse("min(64, seq//4)");
    CHECK_FALSE(pool.constant_value(e).has_value());
    CHECK_FALSE(pool.constant_value(pool.parse("max(2, batch*(seq//4))")).has_value());
    CHECK(pool.parse("max(seq//4 + seq, 1)") == pool.parse("seq//4 + seq"));
}

TEST_CASE("sympy's srepr reads like its plain print") {
    ExpressionPool pool;
    const auto symbol = [](const std::string& name) { return "Symbol('" + name + "', positive=True, integer=True)"; };
    CHECK(pool.parse(symbol("s77")) == pool.symbol("s77"));
    CHECK(pool.parse("Mul(Integer(12), Pow(" + symbol("seq") + ", Integer(2)))") == pool.parse("12*seq*seq"));
    CHECK(pool.parse("Add(" + symbol("batch") + ", Mul(Integer(-1), " + symbol("seq") + "), Integer(-3))") ==
          pool.parse("batch-seq-3"));
    CHECK(pool.parse("Mul(Rational(1, 2), " + symbol("seq") + ")") == pool.parse("seq//2"));
    CHECK(pool.parse("FloorDiv(Add(" + symbol("h") + ", Integer(1)), Integer(2))") == pool.parse("(h+1)//2"));
    CHECK_THROWS_AS(pool.parse("Pow(" + symbol("s0") + ", Integer(-1))"), Error);
    CHECK_THROWS_AS(pool.parse("Symbol('s0"), Error);
}

TEST_CASE("the least integer divided or negated by -1 is a limit, and no arithmetic wraps around") {
    for (const char* text : {"(n-9223372036854775807-1)//(-1)", "((-9223372036854775807-1)*n)//(-n)",
                             "(-9223372036854775807-1)//(-1)", "ceildiv((-9223372036854775807-1)*n,-1)",
                             "Integer(--9223372036854775808)", "((-9223372036854775807-1)*n+2*n)//(-2*n)",
                             "max(9223372036854775807*n,n-9223372036854775807-1)", "min(n-9223372036854775807-1,n)"}) {
        CAPTURE(text);
        ExpressionPool pool;
        try {
            static_cast<void>(pool.to_string(pool.parse(text)));
        } catch (const Error& error) {
            CHECK((error.code() == ErrorCode::limit || error.code() == ErrorCode::model));
        }
    }
    ExpressionPool pool;
    CHECK_THROWS_AS(static_cast<void>(pool.parse("((-9223372036854775807-1)*n)//(-n)")), Error);
    CHECK(pool.to_string(pool.parse("(4*n-8)//(-1)")) == "-4*n+8");
    CHECK(pool.to_string(pool.parse("(4*n)//(-2*n)")) == "-2");
}

TEST_CASE("a pool takes a thousand symbols") {
    ExpressionPool pool;
    const auto fill = [&] {
        for (int i = 0; i < 40'000; ++i) pool.symbol("n" + std::to_string(i));
    };
    CHECK_THROWS_AS(fill(), Error);
    CHECK(pool.symbols().size() == 1000);
}

TEST_CASE("quotients of 100 pairs of random sums have the values of their sums' quotients") {
    std::mt19937 random(2);
    const auto draw = [&](unsigned count) { return static_cast<std::int64_t>(random() % count); };
    for (int round = 0; round < 100; ++round) {
        ExpressionPool pool;
        const std::array<Expression, 3> symbols{pool.symbol("a"), pool.symbol("b"), pool.symbol("c")};
        const auto sum = [&] {
            Computed made{pool.constant(0), {}};
            for (std::int64_t terms = 1 + draw(3); terms > 0; --terms) {
                const auto factor = 1 + draw(3);
                const auto first = static_cast<std::size_t>(draw(3)), second = static_cast<std::size_t>(draw(4));
                Expression e = pool.multiply(pool.constant(factor), symbols[first]);
                if (second < 3) e = pool.multiply(e, symbols[second]);
                made.e = pool.add(made.e, e);
                for (std::size_t i = 0; i < sizes.size(); ++i)
                    made.values[i] += factor * sizes[i][first] * (second < 3 ? sizes[i][second] : 1);
            }
            return made;
        };
        const Computed q = sum();
        const std::int64_t times = 1 + draw(3), rest = draw(3);
        Computed p = sum();
        if (draw(2) == 0) {  // nearly a multiple
            p.e = pool.add(pool.multiply(pool.constant(times), q.e), pool.constant(rest));
            for (std::size_t i = 0; i < sizes.size(); ++i) p.values[i] = times * q.values[i] + rest;
        }
        const std::array<Expression, 3> made{pool.floor_divide(p.e, q.e), pool.ceil_divide(p.e, q.e),
                                             pool.modulo(p.e, q.e)};
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            std::vector<std::int64_t> values;
            pool.evaluate(sizes[i], values);
            const std::int64_t x = p.values[i], y = q.values[i];
            const std::array<std::int64_t, 3> right{x / y, (x + y - 1) / y, x % y};
            for (std::size_t k = 0; k < made.size(); ++k)
                CHECK_MESSAGE(values[made[k].id] == right[k], pool.to_string(p.e), " by ", pool.to_string(q.e));
        }
    }
}

TEST_CASE("1,000 random expressions have their values in another pool, with symbols renamed or replaced") {
    std::mt19937 random(17);
    for (int i = 0; i < 1000; ++i) {
        ExpressionPool from, to;
        to.parse("z*b+7");  // its numbers and symbols are others
        const Computed computed = random_expression(from, random, 4);
        const std::map<std::string, Expression, std::less<>> replace{{"a", to.parse("x-2*y")}, {"c", to.symbol("z")}};
        const Expression moved = to.import(from, computed.e, replace);
        const std::vector<std::string>& names = to.symbols();
        for (std::size_t k = 0; k < sizes.size(); ++k) {
            // a = x - 2y where y is k + 1.
            const auto& [a, b, c] = sizes[k];
            const auto y = static_cast<std::int64_t>(k) + 1;
            const std::map<std::string, std::int64_t> of_name{{"x", a + 2 * y}, {"y", y}, {"b", b}, {"z", c}};
            std::vector<std::int64_t> given, values;
            for (const std::string& name : names) given.push_back(of_name.at(name));
            to.evaluate(given, values);
            CHECK_MESSAGE(values[moved.id] == computed.values[k], to.to_string(moved));
        }
    }
}

TEST_CASE("a divisor that is zero for the sizes given ends the evaluation, with the expression") {
    for (const char* text : {"n//(m-3)", "n%(m-3)", "ceildiv(n,m-3)", "2+max(1,n//(m-3))*n"}) {
        CAPTURE(text);
        ExpressionPool pool;
        static_cast<void>(pool.symbol("n"));
        static_cast<void>(pool.parse(text));
        std::vector<std::int64_t> values;
        const std::int64_t good[] = {8, 5}, bad[] = {8, 3};
        pool.evaluate(good, values);
        const auto failure = test::failure_of([&] { pool.evaluate(bad, values); });
        CHECK(failure.code == ErrorCode::model);
        CHECK_MESSAGE(failure.says("division by zero in shape expression"), failure.message);
        CHECK_MESSAGE(failure.says("m-3"), failure.message);
    }
}
