#include "calibration/fit/scoped_fit.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "tests/approx.hpp"

// The engine of the fits on a model of two factors, of which the truth is known.

using namespace ftax;
using namespace ftax::fit;

namespace {

const DeviceSpec& t4() {
    static const DeviceSpec device = device_spec("t4");
    return device;
}
const DeviceSpec& v100() {
    static const DeviceSpec device = device_spec("v100-pcie-32gb");
    return device;
}
const DeviceSpec& a100() {
    static const DeviceSpec device = device_spec("a100-pcie-40gb");
    return device;
}

Unknown factor(const char* name, double value, double log_stddev) {
    return {name, value, value / 1000, value * 1000, log_stddev};
}

/// Rows of 1 s times shared factor and device's factor; `true_s` is what each row measured.
ScopedFit two_factors(const std::vector<std::pair<const DeviceSpec*, double>>& rows) {
    ScopedFit fit{.kernel_class = "toy", .options = {.starts = 1, .iterations = 50, .row_log_stddev = 0.01}};
    fit.shared = {factor("shared", 1, 0.01)};
    fit.device = [](const DeviceSpec&) { return LogFit::Block{factor("own", 1, 10)}; };
    for (const auto& row : rows) fit.rows.push_back({.device = row.first, .latency_s = row.second});
    fit.latency_s = [](std::size_t, const ScopedValues& values, bool) { return values.shared[0] * values.device[0]; };
    fit.folds = false;
    return fit;
}

}  // namespace

TEST_CASE("as many rows of each stratum are fitted as asked for, evenly, and none that is scored only") {
    ScopedFit fit = two_factors(std::vector<std::pair<const DeviceSpec*, double>>(10, {&t4(), 2}));
    for (std::size_t i = 0; i < 10; ++i) fit.rows[i].stratum = i < 6 ? "a" : "b";
    fit.rows_per_stratum = 3;
    fit.rows[7].fitted = false;
    std::set<std::size_t> fitted, scored;
    fit.latency_s = [&](std::size_t i, const ScopedValues& values, bool is_scored) {
        (is_scored ? scored : fitted).insert(i);
        return values.shared[0] * values.device[0];
    };
    const ScopedResult result = solve(fit);
    CHECK(fitted == std::set<std::size_t>{0, 2, 4, 6, 8, 9});
    CHECK(scored.size() == 10);
    CHECK(result.unknowns.devices.at("t4")[0].value == approx(2).epsilon(0.02));
}

TEST_CASE("what other rows determine of a device is held there, and on no other device") {
    ScopedFit fit = two_factors({{&t4(), 2}, {&t4(), 2}, {&v100(), 2}, {&v100(), 2}});
    fit.held = {{{"own", 3, 0, "test"}, ParameterScope::device, "t4"},
                {{"own", 5, 0, "test"}, ParameterScope::architecture, "volta"},
                {{"own", 7, 0, "test"}, ParameterScope::device, "l4"}};
    const ScopedResult result = solve(fit);
    CHECK(result.unknowns.devices.at("t4")[0].value == 3);
    CHECK(result.unknowns.devices.at("v100-pcie-32gb")[0].value == approx(2).epsilon(0.05));
}

TEST_CASE("errors are of all rows, and of those under the usual conditions apart") {
    ScopedFit fit = two_factors({{&t4(), 2}, {&t4(), 2}, {&t4(), 2}, {&t4(), 4}});
    fit.rows[3].usual = fit.rows[3].fitted = false;
    fit.usual_suffix = "usual";
    const ScopedResult result = solve(fit);
    REQUIRE(result.report.folds.size() == 2);
    CHECK(result.report.folds[0].all.rows == 4);
    CHECK(result.report.folds[0].all.mean == approx(0.5 / 4).epsilon(0.05));
    CHECK(result.report.folds[1].all.rows == 3);
    CHECK(result.report.folds[1].all.mean < 0.01);
}

TEST_CASE("a device that is left out is expected to differ from its datasheet as the others do") {
    // All take twice what their datasheets say: 1, 3 and 5.
    for (const bool of_others : {true, false}) {
        ScopedFit fit = two_factors({{&t4(), 2}, {&t4(), 2}, {&v100(), 6}, {&v100(), 6}, {&a100(), 10}, {&a100(), 10}});
        fit.device = [](const DeviceSpec& device) {
            return LogFit::Block{factor("own", device.slug == "t4" ? 1 : device.slug == "a100-pcie-40gb" ? 5 : 3, 10)};
        };
        fit.folds = true;
        fit.left_out_folds = {{"left out"}};
        fit.expects_device_of_others = of_others;
        const ErrorSummary errors = left_out_errors(solve(fit).report);
        CHECK(errors.rows == 6);
        CHECK(errors.mean == approx(of_others ? 0 : 0.5).epsilon(0.02).scale(1));
    }
}

TEST_CASE("the centre of generations is that of their rows: what rows say nothing about does not count") {
    std::map<Architecture, LogFit::Block> fitted;
    const auto add = [&](Architecture generation, double value, double stddev) {
        Unknown u = factor("p", value, 0.5);
        u.relative_stddev = stddev;
        fitted[generation] = {u};
    };
    add(Architecture::turing, 2, 0.01);
    add(Architecture::volta, 8, 0.01);
    add(Architecture::ada, 1000, 0.5);  // as its prior: no row
    CHECK(centre_of(Centre::mean, fitted)[0].value == approx(4).epsilon(0.01));
    CHECK(centre_of(Centre::median, fitted)[0].value == approx(8));
}

TEST_CASE("priors of shared unknowns stay where they are declared, unless each round centres them on the last") {
    const auto fitted = [](bool centred) {
        ScopedFit fit = two_factors({{&t4(), 4}});
        fit.device = {};
        fit.shared = {factor("shared", 1, 0.1)};
        fit.options.row_log_stddev = 0.1;
        fit.latency_s = [](std::size_t, const ScopedValues& values, bool) { return values.shared[0]; };
        fit.rounds = 2;
        fit.centre_shared = centred;
        return solve(fit).unknowns.shared[0].value;
    };
    CHECK(fitted(false) < 1.15);
    CHECK(fitted(true) > 1.05 * fitted(false));
}

TEST_CASE("a left-out device on a host of unknown speed is predicted with that of the others, else with its own") {
    // Every device takes what its datasheet says; the T4's host takes three times as long as the others'.
    ScopedFit fit = two_factors({{&t4(), 3}, {&t4(), 3}, {&v100(), 1}, {&v100(), 1}, {&a100(), 1}, {&a100(), 1}});
    fit.device = {};
    fit.host = {factor("operator.host", 1, 10)};
    fit.latency_s = [](std::size_t, const ScopedValues& values, bool) { return values.shared[0] * values.host[0]; };
    fit.folds = true;
    fit.left_out_folds = {{.name = "blind"}, {.name = "known", .host_known = true}};
    const FitReport report = solve(fit).report;
    const auto errors = [&](const std::string& name) {
        return std::ranges::find(report.folds, name, &Fold::name)->all.mean;
    };
    CHECK(errors("known") < 0.01);
    CHECK(errors("blind") > 0.3);
}
