#include "graphs/ir/work_polynomial.hpp"

#include <doctest/doctest.h>

#include "ftax/text_graph.hpp"
#include "ftax/work.hpp"
#include "tests/approx.hpp"

namespace {

using namespace ftax;

double coefficient(const std::vector<PolynomialTerm>& terms, const std::vector<int>& powers) {
    for (const PolynomialTerm& term : terms) {
        if (term.powers == powers) return term.coefficient;
    }
    return 0;
}

}  // namespace

TEST_CASE("the work of open dimensions is a polynomial of them, exact") {
    const Graph graph = parse_text_graph(R"(graph g
input %x f32[batch,seq,64]
weight %w f32[64,64]
%1 f32[batch,seq,64] = linear(%x, %w)
%t f32[batch,64,seq] = transpose(%x) {perm=[0,2,1]}
%2 f32[batch,seq,seq] = matmul(%1, %t)
output %2
)");
    const auto work = work_polynomial(graph, {});
    REQUIRE(work);
    CHECK(work->everywhere);
    CHECK(work->symbols == std::vector<std::string>{"batch", "seq"});
    REQUIRE(work->flops.size() == 2);
    CHECK(work->flops[0].powers == std::vector<int>{1, 2});  // highest first
    CHECK(work->flops[0].coefficient == approx(2 * 64));
    CHECK(coefficient(work->flops, {1, 1}) == approx(2 * 64 * 64));
    // Read x and w, then the product and x again; written: the product and the scores.
    CHECK(coefficient(work->bytes, {0, 0}) == approx(4 * 64 * 64));
    CHECK(coefficient(work->bytes, {1, 1}) == approx(4 * 64 * 4));
    CHECK(coefficient(work->bytes, {1, 2}) == approx(4));

    const auto one = work_polynomial(graph, {{"seq", 128}});
    REQUIRE(one);
    REQUIRE(one->flops.size() == 1);
    CHECK(one->flops[0].coefficient == approx(2.0 * 64 * 64 * 128 + 2.0 * 64 * 128 * 128));
    CHECK_FALSE(work_polynomial(graph, {{"batch", 1}, {"seq", 128}}));
}

TEST_CASE("work that rounds holds for multiples of a size, and work that is none has no polynomial") {
    const auto pooled = [](const std::string& size) {
        return work_polynomial(parse_text_graph("graph g\ninput %x f32[side]\n%1 f32[" + size +
                                                "] = pointwise(%x) {function=\"relu\"}\noutput %1\n"),
                               {});
    };
    const auto halved = pooled("side//2");
    REQUIRE(halved);
    CHECK_FALSE(halved->everywhere);
    CHECK(halved->step == 64);
    CHECK(coefficient(halved->bytes, {1}) == approx(4 + 2));
    CHECK_FALSE(pooled("min(side,100)"));
}

TEST_CASE("an operator reads each of its operands and writes each of its results once") {
    const std::pair<const char*, std::int64_t> cases[] = {
        {"%v f32[4,3], %i i64[4,3] = sort(%x) {axis=1}", 4 * 8 * 4 + 4 * 3 * 4 + 4 * 3 * 8},
        {"%v f32[4], %i i64[4] = reduce(%x) {function=\"max\" axes=[1]}", 4 * 8 * 4 + 4 * 4 + 4 * 8},
        {"%v f32[4,8], %m f32[4,1], %s f32[4,1] = layer_norm(%x) {axis=1}", 2 * 4 * 8 * 4 + 2 * 4 * 4},
        {"%v f32[4,16] = concat(%x,%x) {axis=1}", 2 * 4 * 8 * 4 + 4 * 16 * 4},
        {"%v f16[4,8] = cast(%x)", 4 * 8 * 4 + 4 * 8 * 2},
        {"%a f32[4,2], %v f32[4,6] = split(%x) {axis=1}", 0}};
    for (const auto& [op, bytes] : cases) {
        const std::string text = std::string("graph g\ninput %x f32[4,8]\n") + op + "\noutput %v\n";
        const Graph graph = parse_text_graph(text, "g");
        const Work work = work_of(graph, graph.ops[0], bind(graph, {}));
        CHECK_MESSAGE(work.read_bytes + work.write_bytes == bytes, text);
    }
}
