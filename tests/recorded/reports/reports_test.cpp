#include <doctest/doctest.h>

#include "tests/recorded/recorded.hpp"
#include "tests/recorded/reports/outcome.hpp"

// Whole commands, run in this process: every form of their results, and what they print.

using namespace ftax::test;

TEST_CASE("commands give the reports that are recorded") {
    check_recorded("reports.tsv", 1, [](std::span<const std::string> row) { return outcome(row[0]); });
}

TEST_CASE("every option of every verb, with values that hold and that do not, gives what is recorded") {
    check_recorded(
        "options.tsv", 1, [](std::span<const std::string> row) { return outcome(row[0]); }, 1e-6, 9);
}
