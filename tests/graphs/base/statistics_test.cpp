#include "graphs/base/statistics.hpp"

#include <doctest/doctest.h>

#include <array>

#include "tests/approx.hpp"

using namespace ftax;

TEST_CASE("the median of an even count is the mean of the two in the middle") {
    CHECK(median(std::array{3.0, 1.0, 2.0}) == approx(2));
    CHECK(median(std::array{4.0, 1.0, 2.0, 3.0}) == approx(2.5));
    CHECK(median({}) == 0);
}

TEST_CASE("repetitions that other load lengthened exceed the fastest by over a quarter") {
    CHECK(undisturbed({1.2, 2.4, 1.0, 1.25, 1.3}) == std::vector<double>{1.2, 1.0, 1.25});
    CHECK(undisturbed({}).empty());
}

TEST_CASE("the upper median is one of the values") {
    CHECK(upper_median({3, 1, 2}) == 2);
    CHECK(upper_median({4, 1, 2, 3}) == 3);
}

TEST_CASE("a quantile is one of the values, rounded down") {
    CHECK(quantile({4, 1, 3, 2}, 0) == 1);
    CHECK(quantile({4, 1, 3, 2}, 0.5) == 2);
    CHECK(quantile({4, 1, 3, 2}, 0.9) == 3);
    CHECK(quantile({4, 1, 3, 2}, 1) == 4);
}
