#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "calibration/fit/operator_fit.hpp"
#include "predictors/operator_model.hpp"
#include "tests/approx.hpp"

namespace {

using namespace ftax;

OperatorMeasurement measured(std::string op, std::int64_t b, std::int64_t h) {
    OperatorMeasurement m;
    m.op = std::move(op);
    m.shape = {{"b", b}, {"h", h}};
    return m;
}

/// Rows as a card with these parameters would give them.
std::vector<fit::OperatorRow> synthetic_rows(const DeviceSpec& device, std::vector<Parameter> parameters,
                                             double host_scale = 1) {
    DeviceProfile profile;
    profile.device = device;
    profile.parameters = std::move(parameters);
    FrameworkProfile host;
    host.parameters = {{"operator.host_scale", host_scale, 0, ""}};
    const OperatorModel truth(profile, host);
    std::vector<fit::OperatorRow> rows;
    for (const char* op : {"add", "tanh", "softmax", "ln"}) {
        for (std::int64_t b = 16; b < 200'000; b = b * 3 / 2) {
            OperatorMeasurement m = measured(op, b, 256 + b % 13 * 128);
            m.latency_s = truth.predict(m)->latency_s;
            rows.push_back(*fit::operator_row(m, device));
            rows.back().measured = nullptr;  // gone with this turn
        }
    }
    return rows;
}

double value(const std::vector<ScopedParameter>& parameters, std::string_view name, std::string_view key) {
    const auto at = std::find_if(parameters.begin(), parameters.end(),
                                 [&](const ScopedParameter& p) { return p.parameter.name == name && p.key == key; });
    REQUIRE(at != parameters.end());
    return at->parameter.value;
}

const fit::ClassFitOptions one_start{.fit = fit::FitOptions{.starts = 1, .iterations = 40, .row_log_stddev = 0.05},
                                     .folds = false};

}  // namespace

TEST_CASE("the fit recovers bandwidth and host of every device from synthetic rows") {
    const DeviceSpec t4 = device_spec("t4");
    const DeviceSpec v100 = device_spec("v100-pcie-32gb");
    auto rows = synthetic_rows(t4, {{"bandwidth", 0.68, 0, ""}});
    const auto more = synthetic_rows(v100, {{"bandwidth", 0.97, 0, ""}}, 1.5);
    rows.insert(rows.end(), more.begin(), more.end());

    const fit::FitReport report = fit::fit_memory(rows, one_start);
    CHECK(value(report.parameters, "bandwidth", "t4") == approx(0.68).epsilon(0.01));
    CHECK(value(report.parameters, "bandwidth", "v100-pcie-32gb") == approx(0.97).epsilon(0.01));
    CHECK(value(report.nuisance, "operator.host_scale", "v100-pcie-32gb") /
              value(report.nuisance, "operator.host_scale", "t4") ==
          approx(1.5).epsilon(0.01));
    for (const fit::Fold& fold : report.folds) CHECK(fold.mean < 0.01);
    // No row holds a power: its cost is not written.
    CHECK(std::none_of(report.parameters.begin(), report.parameters.end(),
                       [](const ScopedParameter& p) { return p.parameter.name == "memory.power_flops"; }));
}

TEST_CASE("rows at the idle clock are scored but not fitted") {
    const DeviceSpec t4 = device_spec("t4");
    auto rows = synthetic_rows(t4, {});
    const std::size_t clean = rows.size();
    for (std::size_t i = 0; i < clean; ++i) {
        rows.push_back(rows[i]);
        rows.back().conditions = fit::Conditions::campaign_start;
        rows.back().latency_s *= 3;
    }
    const fit::FitReport report = fit::fit_memory(rows, one_start);
    for (const fit::Fold& fold : report.folds) {
        CAPTURE(fold.name);
        if (fold.name.ends_with("without rows at the idle clock")) {
            CHECK(fold.mean < 0.01);
        } else {
            CHECK(fold.mean == approx(0.5 * 2 / 3).epsilon(0.02));
        }
    }
}

TEST_CASE("operators of other classes give no memory row") {
    OperatorMeasurement bmm;
    bmm.op = "bmm";
    bmm.shape = {{"b", 1}, {"m", 2}, {"n", 3}, {"k", 4}};
    CHECK(fit::operator_row(bmm, device_spec("t4"))->of == fit::RowClass::gemm);
    bmm.op = "rms_norm";  // known as a kernel alone only
    CHECK_FALSE(fit::operator_row(bmm, device_spec("t4")));
}

TEST_CASE("the shorth is where most values agree") {
    CHECK(fit::shorth({7}) == 7);
    CHECK(fit::shorth({1.75, 1.0, 1.22, 0.98, 1.02}) == approx(1.0));
    CHECK(fit::shorth({1.0, 1.0, 1.0, 100.0}) == approx(1.0));
    CHECK(fit::shorth({10.0, 1.0, 9.0, 2.0}) == approx(4.0));  // of two as short the lower one
}
