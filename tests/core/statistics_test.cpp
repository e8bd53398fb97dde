#include "src/core/statistics.hpp"

#include <doctest/doctest.h>

#include <array>

#include "tests/approx.hpp"

using namespace ftax;

TEST_CASE("the median of an even count is the mean of the two in the middle") {
    CHECK(median(std::array{3.0, 1.0, 2.0}) == approx(2));
    CHECK(median(std::array{4.0, 1.0, 2.0, 3.0}) == approx(2.5));
    CHECK(median({}) == 0);
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

TEST_CASE("Kendall's tau counts the pairs that two lists order alike") {
    const std::array measured{1.0, 2.0, 3.0, 3.0};
    const auto all = [](std::size_t, std::size_t) { return true; };
    CHECK(kendall_tau(measured, std::array{10.0, 20.0, 40.0, 30.0}, all) == 1);
    CHECK(kendall_tau(measured, std::array{4.0, 3.0, 2.0, 1.0}, all) == -1);
    CHECK(kendall_tau(measured, std::array{2.0, 1.0, 3.0, 4.0}, all) == approx(3.0 / 5));
    const auto first_two = [](std::size_t i, std::size_t j) { return i + j == 1; };
    CHECK(kendall_tau(measured, std::array{2.0, 1.0, 3.0, 4.0}, first_two) == -1);
}
