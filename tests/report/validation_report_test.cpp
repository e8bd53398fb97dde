#include "src/report/validation_report.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "tests/approx.hpp"
#include "tests/recorded/transcripts.hpp"

using namespace ftax;
using namespace ftax::report;

namespace {

ValidatedRow row(double measured_ms, double predicted_ms, const std::string& gpu) {
    const double s = predicted_ms * 1e-3;
    return {.measured_s = measured_ms * 1e-3,
            .prediction = RowPrediction{.latency_s = s, .low_s = 0.9 * s, .high_s = 1.1 * s, .bound = Bound::memory},
            .group = {gpu}};
}

ValidatedRow skipped(const std::string& why) {
    return {.measured_s = 1, .skipped = why, .group = {"T4"}};
}

}  // namespace

TEST_CASE("error statistics of four rows, by hand") {
    // Errors +10 %, -20 %, +50 %, 0 %: sorted 0, 10, 20, 50.
    const std::array rows{row(10, 11, "T4"), row(10, 8, "T4"), row(10, 15, "T4"), row(10, 10, "T4")};
    const std::array<const ValidatedRow*, 4> pointers{&rows[0], &rows[1], &rows[2], &rows[3]};
    const auto errors = error_statistics(pointers);
    REQUIRE(errors);
    CHECK(errors->rows == 4);
    CHECK(errors->median == approx(0.15));
    CHECK(errors->mean == approx(0.2));
    CHECK(errors->p90 == approx(0.2 + 0.7 * 0.3));
    CHECK(errors->bias == approx(0.1));
    CHECK(errors->inside == approx(0.5));  // 9.9 to 12.1 and 9 to 11 hold the measured 10
    CHECK_FALSE(error_statistics({}));
}

TEST_CASE("a validation report groups what was predicted and lists what was not") {
    const CsvTable table("gpu,model,note\nT4,a,x\nT4,b,=1\nV100,a,\nT4,c,\nT4,d,\nT4,e,\n", "rows.csv");
    const std::array rows{row(10, 11, "T4"),        row(10, 8, "T4"),         row(10, 15, "V100"),
                          skipped("no such model"), skipped("no such model"), skipped("training is not modelled")};
    ValidationReport report = summarise(table, {"gpu"}, rows);
    report.profiles = {{"device", "t4", "2026.1", ""}, {"framework", "pytorch-eager", "1.12", "reference"}};
    REQUIRE(report.groups.size() == 2);
    CHECK(report.groups[0].errors.rows == 2);
    CHECK(report.groups[1].errors.mean == approx(0.5));
    CHECK(report.overall->rows == 3);
    test::check_report("validation.txt", to_table(report, {}));
    test::check_report("validation.json", to_json(report));
    test::check_report("validation.csv", predictions_csv(table, rows));
}

TEST_CASE("P90 is the error that nine rows of ten stay below") {
    std::vector<ValidatedRow> rows;
    for (int i = 0; i <= 1000; ++i) rows.push_back(row(10, 10 * (1 + 1e-3 * ((i * 617) % 1001)), "T4"));
    std::vector<const ValidatedRow*> pointers;
    for (const ValidatedRow& one : rows) pointers.push_back(&one);
    const auto errors = error_statistics(pointers);
    const auto below = std::count_if(rows.begin(), rows.end(), [&](const ValidatedRow& one) {
        return std::abs(one.prediction->latency_s / one.measured_s - 1) <= errors->p90;
    });
    CHECK(std::abs(static_cast<double>(below) / 1001 - 0.9) < 0.005);
    CHECK(errors->median == approx(0.5).epsilon(0.01));
}
