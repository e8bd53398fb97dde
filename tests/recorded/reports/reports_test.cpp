#include <doctest/doctest.h>

#include "tests/recorded/recorded.hpp"
#include "tests/recorded/reports/outcome.hpp"

// Whole commands, run in this process: every form of their results, and what they print.

using namespace ftax::test;

TEST_CASE("commands give the reports that are recorded") {
    check_recorded("reports.tsv", 1, [](std::span<const std::string> row) { return outcome(row[0]); });
}
