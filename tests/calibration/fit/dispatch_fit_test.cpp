#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "calibration/fit/operator_fit.hpp"
#include "graphs/base/statistics.hpp"
#include "predictors/host/operator_host.hpp"
#include "predictors/kernels/kernel_models.hpp"
#include "predictors/operator_model.hpp"
#include "tests/approx.hpp"

using namespace ftax;

namespace {

double value_of(const fit::FitReport& report, std::string_view name, std::string_view key) {
    const auto at = std::find_if(report.nuisance.begin(), report.nuisance.end(),
                                 [&](const ScopedParameter& p) { return p.parameter.name == name && p.key == key; });
    REQUIRE(at != report.nuisance.end());
    return at->parameter.value;
}

}  // namespace

TEST_CASE("host time of matrix products and convolutions is recovered from synthetic rows") {
    const DeviceSpec t4 = device_spec("t4");
    const DeviceProfileFile file{.version = "test"};
    HostProfileFile hosts;
    hosts.parameters = {{{"operator.host_scale", 1.25, 0, "test"}, ParameterScope::device, "t4"}};
    const OperatorModel model(compose(file, t4), compose(hosts, "t4"));
    const auto host = profile_parameters<OperatorHostParameters>(compose(hosts, "t4"));

    std::vector<OperatorMeasurement> measured(800);
    std::vector<fit::OperatorRow> rows;
    for (std::size_t i = 0; i < measured.size(); ++i) {
        OperatorMeasurement& m = measured[i];
        const auto size = static_cast<std::int64_t>(i % 50 + 1);
        m.op = i % 2 == 0 ? "bmm" : "conv";
        m.shape = {{"b", 1},       {"m", size},   {"n", size}, {"k", size},   {"cin", size},
                   {"cout", size}, {"kernel", 3}, {"hw", 8},   {"stride", 1}, {"pad", 1}};
        m.order = static_cast<std::int64_t>(i);
        const double order = static_cast<double>(i);
        const double host_s = m.op == "bmm" ? 50e-6 : 100e-6 + 0.2e-6 * order;
        m.latency_s = operator_latency_s(host_s, launch_share(m.op, host), model.predict(m)->kernel_s);
        if (i % 17 == 0) m.latency_s += 5e-3;  // a slow row now and then
        rows.push_back(*fit::operator_row(m, t4));
    }
    const fit::FitReport report = fit::fit_dispatch(rows, file, hosts);
    CHECK(value_of(report, "operator.dispatch_s.bmm", "t4") == approx(40e-6).epsilon(0.01));
    CHECK(value_of(report, "operator.dispatch_s.bmm", "") == approx(40e-6).epsilon(0.01));
    // One of 17 rows is off by far, and the host of the others by up to 40 %.
    std::vector<double> errors;
    const double conv_s = value_of(report, "operator.dispatch_s.conv", "t4") * 1.25;
    for (const OperatorMeasurement& m : measured) {
        if (m.op != "conv") continue;
        const double seconds = operator_latency_s(conv_s, launch_share(m.op, host), model.predict(m)->kernel_s);
        errors.push_back(std::abs(std::log(seconds / m.latency_s)));
    }
    std::sort(errors.begin(), errors.end());
    CHECK(value_of(report, "operator.conv_spread", "t4") == approx(errors[errors.size() * 9 / 10]).epsilon(0.03));
    // Of the spans of the campaign, a tenth each, one in the middle.
    CHECK(value_of(report, "operator.dispatch_s.conv", "t4") == approx((100e-6 + 0.2e-6 * 400) / 1.25).epsilon(0.05));
}

TEST_CASE("a card with a few rows of an operator gets no dispatch cost of its own") {
    const DeviceSpec t4 = device_spec("t4");
    const DeviceProfileFile file{.version = "test"};
    const OperatorModel model(compose(file, t4), compose(HostProfileFile{}, "t4"));
    std::vector<OperatorMeasurement> measured(40);
    for (const std::size_t count : {19, 20}) {
        std::vector<fit::OperatorRow> rows;
        for (std::size_t i = 0; i < count; ++i) {
            measured[i].op = "bmm";
            measured[i].shape = {{"b", 1}, {"m", 8}, {"n", 8}, {"k", 8}};
            measured[i].latency_s = 60e-6;
            rows.push_back(*fit::operator_row(measured[i], t4));
        }
        const fit::FitReport report = fit::fit_dispatch(rows, file, {});
        const bool fitted = std::any_of(report.nuisance.begin(), report.nuisance.end(), [](const ScopedParameter& p) {
            return p.parameter.name == "operator.dispatch_s.bmm";
        });
        CHECK(fitted == (count >= 20));
    }
}

TEST_CASE("a card at its idle clock reveals host time if the kernel is hidden; slow phases of the host are ignored") {
    const DeviceSpec t4 = device_spec("t4");
    const DeviceProfileFile file{.version = "test"};
    const HostProfileFile hosts;
    const OperatorModel model(compose(file, t4), compose(hosts, "t4"));
    constexpr double host_s = 60e-6, launch_share = 0.7;

    std::vector<OperatorMeasurement> measured(1000);
    std::vector<fit::OperatorRow> rows;
    for (std::size_t i = 0; i < measured.size(); ++i) {
        OperatorMeasurement& m = measured[i];
        m.op = "ln";
        m.shape = {{"b", static_cast<std::int64_t>(i % 50 + 1)}, {"h", 1024}};
        const double stretch = i >= 300 && i < 500 ? 1.2 : 1;
        m.latency_s = operator_latency_s(stretch * host_s, launch_share, 2 * model.predict(m)->kernel_s);
        m.order = static_cast<std::int64_t>(i);
        rows.push_back(*fit::operator_row(m, t4));
        rows.back().conditions = fit::Conditions::campaign_start;
    }
    const fit::FitReport report = fit::fit_dispatch(rows, file, hosts);
    CHECK(value_of(report, "operator.dispatch_s.ln", "t4") == approx(host_s).epsilon(0.01));
    CHECK(std::none_of(report.nuisance.begin(), report.nuisance.end(),
                       [](const ScopedParameter& p) { return p.parameter.name.ends_with("spread"); }));
}

TEST_CASE("a campaign's host time is the median of the medians of its tenths, by the order of rows") {
    const DeviceSpec t4 = device_spec("t4");
    const DeviceProfileFile file{.version = "test"};
    const OperatorModel model(compose(file, t4), compose(HostProfileFile{}, "t4"));
    const auto host = profile_parameters<OperatorHostParameters>(compose(HostProfileFile{}, "t4"));
    for (const std::int64_t count : {20, 21, 30, 45, 100}) {
        for (const std::uint32_t seed : {1u, 2u, 3u}) {
            CAPTURE(count);
            std::vector<OperatorMeasurement> measured(static_cast<std::size_t>(count));
            std::vector<fit::OperatorRow> rows;
            std::vector<std::vector<double>> tenths(10);
            std::uint32_t state = seed;
            for (std::int64_t i = 0; i < count; ++i) {
                OperatorMeasurement& m = measured[static_cast<std::size_t>(i)];
                m.op = "bmm";
                m.shape = {{"b", 1}, {"m", 8}, {"n", 8}, {"k", 8}};
                m.order = i;
                state = state * 1664525 + 1013904223;
                const double host_s = 50e-6 + 50e-6 * (state >> 16) / 65536.0;
                m.latency_s = operator_latency_s(host_s, launch_share(m.op, host), model.predict(m)->kernel_s);
                tenths[static_cast<std::size_t>(i * 10 / count)].push_back(host_s);
                rows.push_back(*fit::operator_row(m, t4));
            }
            std::vector<double> medians;
            for (const auto& tenth : tenths) medians.push_back(quantile(tenth, 0.5));
            const double found = value_of(fit::fit_dispatch(rows, file, {}), "operator.dispatch_s.bmm", "t4");
            CHECK(found == approx(quantile(medians, 0.5) / host.host_scale).epsilon(1e-6));
        }
    }
}
