#include "predictors/kernels/tiles.hpp"

#include <doctest/doctest.h>

#include "tests/approx.hpp"

using namespace ftax::kernels;

TEST_CASE("counts round up without error at whole quotients") {
    CHECK(round_up(0 / 128.0) == 0);
    CHECK(round_up(1 / 128.0) == 1);
    CHECK(round_up(128 / 128.0) == 1);
    CHECK(round_up(129 / 128.0) == 2);
    CHECK(round_up(27, 8) == 32);
    CHECK(round_up(9e15 / 3.0) == 3e15);
    CHECK(tiles_over(0, 128) == 0);
    CHECK(tiles_over(1, 128) == 1);
    CHECK(tiles_over(128, 128) == 1);
    CHECK(tiles_over(129, 128) == 2);
    CHECK(tiles_over(9e15, 64) == 140625e9);
}

TEST_CASE("sharp waves are steps and blunt ones are their mean") {
    CHECK(wave_time(0.1, 1, 0.0, 1.0) == 1);
    CHECK(wave_time(1.0, 1, 0.0, 1.0) == 1);
    CHECK(wave_time(1.01, 1, 0.0, 1.0) == 2);
    CHECK(wave_time(2.5, 1, 0.0, 0.0) == 2.5);
    CHECK(wave_time(0.5, 1, 0.0, 0.0) == 1);
}

TEST_CASE("an incomplete wave takes no less than a lone block, however blunt") {
    CHECK(wave_time(0.5, 4, 3.0, 0.0) == approx(3.1623).epsilon(1e-4));  // √(1 + 3²), not 5 / 8
    CHECK(wave_time(3.0, 4, 3.0, 0.0) == approx(3.75));                  // 3 / 4 of √(4² + 3²)
}

TEST_CASE("blocks that wait for each other's memory hide behind more resident blocks") {
    // One block alone takes √(1 + 3²), four together √(16 + 9): 1.6 times as long for four times the work.
    CHECK(wave_time(1, 4, 3.0, 1.0) == approx(3.1623).epsilon(1e-4));
    CHECK(wave_time(4, 4, 3.0, 1.0) == approx(5.0));
    CHECK(wave_time(8, 4, 3.0, 1.0) == approx(10.0));
}
