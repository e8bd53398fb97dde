#include "ftax/expression.hpp"

#include <doctest/doctest.h>

#include "ftax/error.hpp"
#include "tests/failure.hpp"

using namespace ftax;

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
