#include <doctest/doctest.h>

#include "tests/recorded/recorded.hpp"
#include "tests/recorded/reports/outcome.hpp"

using namespace ftax::test;

TEST_CASE("random combinations of options give what is recorded") {
    check_recorded(
        "combined.tsv", 1, [](std::span<const std::string> row) { return outcome(row[0]); }, 1e-6, 9);
}
