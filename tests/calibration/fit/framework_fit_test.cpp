#include "calibration/fit/framework_fit.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "ftax/error.hpp"
#include "tests/approx.hpp"

using namespace ftax;
using namespace ftax::fit;

namespace {

double value(const FrameworkProfile& profile, const std::string& name) {
    const auto at = std::find_if(profile.parameters.begin(), profile.parameters.end(),
                                 [&](const Parameter& p) { return p.name == name; });
    REQUIRE(at != profile.parameters.end());
    return at->value;
}

constexpr int conv = static_cast<int>(HostKind::conv), light = static_cast<int>(HostKind::elementwise),
              gemm = static_cast<int>(HostKind::gemm);

}  // namespace

TEST_CASE("a fit recovers shared costs, host scales and the BLAS call of one slow host") {
    constexpr double conv_s = 100e-6, light_s = 12e-6, gemm_s = 60e-6;
    const std::map<std::string, std::pair<double, double>> hosts{
        {"a", {1.0, 5e-6}}, {"b", {0.7, 5e-6}}, {"c", {1.2, 90e-6}}};
    std::mt19937 random(3);
    std::lognormal_distribution<> noise(0, 0.02);
    std::vector<HostRow> rows;
    for (const auto& [host, scalars] : hosts) {
        for (int model = 0; model < 12; ++model) {
            HostRow row{.host = host, .model = std::to_string(model), .device_s = 1e-4};
            row.operations[conv] = 10 + 7 * (model % 4);
            row.operations[light] = 20 + 50 * (model % 3);
            row.operations[gemm] = row.calls = 5 + 30 * (model % 5);
            const double operations_s =
                row.operations[conv] * conv_s + row.operations[light] * light_s + row.operations[gemm] * gemm_s;
            row.measured_s = (scalars.first * operations_s + row.calls * scalars.second) * noise(random);
            rows.push_back(row);
        }
    }
    const FrameworkFit fitted = fit_framework("pytorch-eager", "1.12", rows);
    CHECK(fitted.converged);
    CHECK(fitted.rows == rows.size());
    CHECK(fitted.errors.mean < 0.03);
    const double unit = fitted.hosts.at("a").scale;  // only products of scale and cost are measured
    CHECK(unit * value(fitted.reference, "host.conv") == approx(conv_s).epsilon(0.08));
    CHECK(unit * value(fitted.reference, "host.elementwise") == approx(light_s).epsilon(0.15));
    CHECK(fitted.hosts.at("b").scale / unit == approx(0.7).epsilon(0.08));
    CHECK(fitted.hosts.at("c").call_s - fitted.hosts.at("a").call_s > 50e-6);
}

TEST_CASE("rows that rise with the batch or that the device explains say nothing of the host beyond batch 1") {
    const auto row = [](std::int64_t batch, double device_s, double measured_s) {
        HostRow r{.host = "a", .model = "m", .batch = batch, .device_s = device_s, .measured_s = measured_s};
        r.operations[conv] = 20;
        return r;
    };
    // Flat at 1 and 2 (one row, their median), rising at 4, device-bound at 8.
    const std::vector<HostRow> rows{row(1, 1e-4, 2e-3), row(2, 2e-4, 2.1e-3), row(4, 4e-4, 2.1e-3),
                                    row(8, 3e-3, 3.2e-3)};
    const std::vector<HostRow> host_bound = host_bound_rows(rows);
    REQUIRE(host_bound.size() == 1);
    CHECK(host_bound[0].measured_s == approx(2.1e-3));
    CHECK(host_bound_rows(std::vector{row(1, 1.9e-3, 2e-3)}).size() == 1);
    CHECK(host_bound_rows(std::vector{row(2, 1.9e-3, 2e-3)}).empty());
}

TEST_CASE("a row rises where twice its batch takes 15 % longer, and then says nothing of the host") {
    const auto kept = [](double doubled_s) {
        HostRow flat{.host = "a", .model = "m", .batch = 2, .device_s = 1e-4, .measured_s = 2e-3};
        flat.operations[conv] = 5;
        HostRow doubled = flat;
        doubled.batch = 4, doubled.measured_s = doubled_s;
        doubled.operations[conv] = 6;
        return host_bound_rows(std::vector{flat, doubled}).size();
    };
    CHECK(kept(2.2e-3) == 2);
    CHECK(kept(2.4e-3) == 1);
    CHECK(kept(4e-3) == 1);
}

TEST_CASE("a row of a serving engine takes its device, its passes and each sequence of them") {
    FrameworkProfile profile{.framework = "vllm"};
    const double before_s = serving_s({.fixed_s = 1.5}, profile);
    CHECK(before_s == approx(1.5));
    profile.parameters = {{"host.forward", 0.02, 0, ""}, {"host.sequence", 0.003, 0, ""}};
    CHECK(serving_s({.fixed_s = 1.5, .passes = 10, .sequences = 40}, profile) == approx(1.5 + 10 * 0.02 + 40 * 0.003));
}

TEST_CASE("a fit without rows is an error") {
    CHECK_THROWS_AS(fit_framework("pytorch-eager", "1.12", {}), Error);
}
