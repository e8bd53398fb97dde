#include "calibration/fit/log_fit.hpp"

#include <doctest/doctest.h>

#include <utility>

#include "tests/approx.hpp"

using namespace ftax::fit;

namespace {

/// y = a·x + b
struct Line {
    double x;
    double operator()(double const* const* blocks) const { return blocks[0][0] * x + blocks[0][1]; }
};

LogFit::Block line_unknowns() {
    return {{"slope", 1, 0.01, 100, 0}, {"offset", 1, 0.01, 100, 0}};
}

}  // namespace

TEST_CASE("a fit recovers what made the rows") {
    LogFit fit({});
    const auto block = fit.add_block(line_unknowns());
    for (int x = 1; x <= 40; ++x) fit.add_row(Line{double(x)}, 3.0 * x + 7.0, {block});
    CHECK(fit.solve());
    CHECK(fit.block(block)[0].value == approx(3).epsilon(1e-4));
    CHECK(fit.block(block)[1].value == approx(7).epsilon(1e-4));
}

TEST_CASE("a few rows that are three times too slow move it little") {
    LogFit fit({});
    const auto block = fit.add_block(line_unknowns());
    for (int x = 1; x <= 100; ++x) fit.add_row(Line{double(x)}, (3.0 * x + 7.0) * (x % 20 == 0 ? 3 : 1), {block});
    fit.solve();
    CHECK(fit.block(block)[0].value == approx(3).epsilon(0.02));
    CHECK(fit.block(block)[1].value == approx(7).epsilon(0.05));
}

TEST_CASE("bounds hold, fixed unknowns stay, and a prior decides what the rows leave open") {
    LogFit fit({});
    LogFit::Block block = line_unknowns();
    block[0].upper = 2;
    block[1].fixed = true;
    const auto index = fit.add_block(block);
    const auto unseen = fit.add_block({{"elsewhere", 5, 0.1, 50, 0.3}});
    for (int x = 1; x <= 40; ++x) fit.add_row(Line{double(x)}, 3.0 * x + 1.0, {index, unseen});
    fit.solve();
    CHECK(fit.block(index)[0].value == approx(2));
    CHECK(fit.block(index)[1].value == 1);
    CHECK(fit.block(unseen)[0].value == approx(5));
    CHECK(fit.block(unseen)[0].relative_stddev == approx(0.3).epsilon(0.01));
}

TEST_CASE("an unknown at its bound does not hold up the others") {
    const auto rates_at = [](double bound, bool fixed) {
        LogFit fit({.starts = 1, .iterations = 50, .row_log_stddev = 0.05});
        const auto block = fit.add_block({{.name = "first",
                                           .value = fixed ? bound : 0.9,
                                           .lower = 0.2,
                                           .upper = bound,
                                           .prior_log_stddev = fixed ? 0 : 0.3,
                                           .fixed = fixed},
                                          {"second", 0.9, 0.2, 5, 0.3},
                                          {"third", 0.9, 0.2, 5, 0.3}});
        for (int i = 0; i < 30; ++i) {
            const double a = 1 + i % 3, b = 1 + i / 3 % 2, c = 1 + i % 5;
            const auto seconds = [=](double const* const* p) { return a / p[0][0] + b / p[0][1] + c / p[0][2]; };
            fit.add_row(seconds, a / 2 + b / 2 + c / 0.5, {block});
        }
        CHECK(fit.solve());
        return std::pair(fit.block(block)[1].value, fit.block(block)[2].value);
    };
    const auto [second, third] = rates_at(1.05, false);
    const auto [best_second, best_third] = rates_at(1.05, true);
    CHECK(second == approx(best_second).epsilon(1e-3));
    CHECK(third == approx(best_third).epsilon(1e-3));
}

TEST_CASE("the standard deviation shrinks with the square root of the rows") {
    const auto stddev = [](int rows) {
        LogFit fit({.row_log_stddev = 0.1});
        const auto block = fit.add_block({{"level", 1, 0.1, 10, 0}});
        for (int i = 0; i < rows; ++i)
            fit.add_row([](double const* const* blocks) { return blocks[0][0]; }, 2.0, {block});
        fit.solve();
        return fit.block(block)[0].relative_stddev;
    };
    CHECK(stddev(100) == approx(0.01).epsilon(0.01));
    CHECK(stddev(400) == approx(0.005).epsilon(0.01));
}
