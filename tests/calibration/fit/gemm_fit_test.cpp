#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "calibration/fit/operator_fit.hpp"
#include "predictors/host/operator_host.hpp"
#include "predictors/kernels/gemm.hpp"
#include "predictors/kernels/sustained.hpp"
#include "tests/approx.hpp"
#include "tests/start_values.hpp"

using namespace ftax;
using namespace ftax::fit;
using kernels::GemmParameters;

namespace {

GemmParameters true_parameters() {
    auto p = test::start_values<GemmParameters>();
    p.wide_efficiency = 0.85;
    p.fill = 14;
    return p;
}

kernels::DeviceRates true_rates(const DeviceSpec& device, double clock, double bandwidth) {
    auto p = test::start_values<kernels::SustainedParameters>(device);
    p.clock_fp32 = clock;
    p.bandwidth = bandwidth;
    return device_rates(device, MathPath::fp32, p);
}

/// Rows of a device that behaves as the model says, ±2 %, behind 40 µs (linear) and 25 µs (bmm) of host time.
void add_rows(const DeviceSpec& device, double clock, double bandwidth, std::vector<OperatorRow>& rows) {
    const auto rates = true_rates(device, clock, bandwidth);
    const auto p = true_parameters();
    std::mt19937 random(7);
    std::uniform_real_distribution<> log_size(3, 11);
    std::normal_distribution<> noise(0, 0.02);
    const auto size = [&] { return static_cast<std::int64_t>(std::exp2(log_size(random))); };
    for (int i = 0; i < 300; ++i) {
        OperatorRow row{.device = &device, .of = RowClass::gemm};
        kernels::GemmShape shape{.m = size(), .n = size(), .k = size(), .linear = i % 2 == 0};
        if (!shape.linear) shape.batch = 1 + i % 40;
        row.shape = shape;
        const double host_s = shape.linear ? 40e-6 : 25e-6;
        const auto planned = plan(shape, rates, p);
        const double kernel_s = kernels::within_power(planned, 1e-3);
        row.latency_s = operator_latency_s(host_s, 0.7, kernel_s) * std::exp(noise(random));
        rows.push_back(row);
    }
}

double value_of(const std::vector<ScopedParameter>& parameters, std::string_view name, std::string_view key) {
    const auto at = std::find_if(parameters.begin(), parameters.end(),
                                 [&](const ScopedParameter& p) { return p.parameter.name == name && p.key == key; });
    REQUIRE(at != parameters.end());
    return at->parameter.value;
}

}  // namespace

TEST_CASE("the fit recovers clock, bandwidth and host time of cards that behave as the model says") {
    const DeviceSpec v100 = device_spec("v100-pcie-32gb");
    const DeviceSpec a100 = device_spec("a100-pcie-40gb");
    std::vector<OperatorRow> rows;
    add_rows(v100, 0.93, 0.8, rows);
    add_rows(a100, 1.05, 0.9, rows);
    const FitReport report = fit_gemm(rows, {}, {.fit = FitOptions{.starts = 1, .iterations = 40}, .folds = false});
    for (const Fold& fold : report.folds) CHECK(fold.mean < 0.03);
    // Clock and efficiencies share one scale, which only their priors tell apart: their product is what rows show.
    const auto wide_rate = [&](const char* device, const char* architecture) {
        return value_of(report.parameters, "clock.fp32", device) *
               value_of(report.parameters, "gemm.wide_efficiency", architecture);
    };
    // Volta's batches run in blocks of two warps, whose issue latency takes part of it.
    CHECK(wide_rate("v100-pcie-32gb", "volta") == approx(0.93 * 0.85).epsilon(0.12));
    CHECK(wide_rate("a100-pcie-40gb", "ampere") == approx(1.05 * 0.85).epsilon(0.03));
    CHECK(value_of(report.nuisance, "operator.dispatch_s.linear", "v100-pcie-32gb") == approx(40e-6).epsilon(0.05));
    CHECK(value_of(report.nuisance, "operator.dispatch_s.bmm", "a100-pcie-40gb") == approx(25e-6).epsilon(0.05));
    // What no row says anything about is not written: architectures without rows, kernels that share the reduction.
    for (const ScopedParameter& p : report.parameters) {
        CAPTURE(p.parameter.name);
        CHECK((p.scope != ParameterScope::architecture || p.key == "volta" || p.key == "ampere"));
        CHECK_FALSE(p.parameter.name.starts_with("gemm.tensor"));
    }
}

TEST_CASE("rows measured under other conditions are detected") {
    CHECK(conditions_of("bmm", "t4", "train", 10) == Conditions::campaign_start);
    CHECK(conditions_of("bmm", "t4", "train", 5000) == Conditions::usual);
    CHECK(conditions_of("bmm", "t4", "test", 5000) == Conditions::second_campaign);
    CHECK(conditions_of("linear", "t4", "train", 10) == Conditions::usual);
    CHECK(conditions_of("ln", "p4", "train", 849) == Conditions::campaign_start);
    CHECK(conditions_of("ln", "p4", "train", 850) == Conditions::usual);
    // The first 600 batched products and 1,500 others of the A100 ran before it had its clock; of the P4 none and 850.
    CHECK(conditions_of("bmm", "a100-pcie-40gb", "train", 599) == Conditions::campaign_start);
    CHECK(conditions_of("bmm", "a100-pcie-40gb", "train", 600) == Conditions::usual);
    CHECK(conditions_of("ln", "a100-pcie-40gb", "train", 1499) == Conditions::campaign_start);
    CHECK(conditions_of("ln", "a100-pcie-40gb", "train", 1500) == Conditions::usual);
    CHECK(conditions_of("bmm", "p4", "train", 0) == Conditions::usual);
    CHECK(conditions_of("bmm", "t4", "", 0) == Conditions::usual);  // a file that names no campaign
}

TEST_CASE("a row's kernel and parts are read from the names and the grid of a profiler") {
    const DeviceSpec v100 = device_spec("v100-pcie-32gb"), p4 = device_spec("p4");
    OperatorMeasurement row{
        .op = "linear", .shape = {{"b", 1}, {"m", 500}, {"n", 900}, {"k", 3000}}, .latency_s = 1e-3};
    const auto ran_on = [&](const DeviceSpec& device, const char* kernel, const char* grid) {
        row.kernel = kernel;
        const auto read = operator_row(row, device, "train", grid);
        REQUIRE(read);
        return read->ran;
    };
    const auto ran = [&](const char* kernel, const char* grid) { return ran_on(v100, kernel, grid); };
    const auto split = ran("volta_sgemm_128x64_tn", "8x8x5");
    REQUIRE(split);
    CHECK(split->tile->name == "128x64");
    CHECK(split->split_k == 5);
    const auto apart = ran("volta_sgemm_32x32_sliced1x4_tn+splitkreduce_kernel", "29x16x3");
    REQUIRE(apart);
    CHECK(apart->tile->name == "32x32 sliced");
    const auto swizzled = ran_on(p4, "sgemm_128x128x8_NT_vec", "4x4x2");
    REQUIRE(swizzled);
    CHECK(swizzled->tile->name == "128x128x8");
    CHECK(swizzled->split_k == 1);                        // the grid's depth is its pairs of rows
    CHECK_FALSE(ran("sgemm_128x128x8_NT_vec", "4x4x2"));  // no kernel of this chip's
    CHECK_FALSE(ran("sgemm_32x32x32_NN_vec", "8x4x1"));
    CHECK_FALSE(ran("", ""));
    row.op = "bmm";
    row.shape["b"] = 7;
    const auto batch = ran("volta_sgemm_64x64_nn", "15x8x7");
    REQUIRE(batch);
    CHECK(batch->split_k == 1);  // the grid's depth is the batch
}

TEST_CASE("a row is fitted as the kernel that ran") {
    const DeviceSpec v100 = device_spec("v100-pcie-32gb");
    const auto rates = true_rates(v100, 1, 0.9);
    auto p = true_parameters();
    p.narrow_efficiency = 0.6;
    const auto blocks = kernels::gemm::block_rates(rates, p);
    const auto& candidates = v100.chip().layers.candidates;
    std::vector<OperatorRow> rows;
    for (std::int64_t n = 1; n <= 60; ++n) {
        const kernels::GemmShape shape{.m = 2048, .n = 64 * n, .k = 512 + 8 * n, .linear = true};
        OperatorRow row{.device = &v100, .of = RowClass::gemm, .shape = shape};
        const std::string_view tile = n % 2 == 0 ? "128x32" : "128x64";
        const auto ran = std::ranges::find(candidates, tile, [](const GemmCandidate& c) { return c.tile.name; });
        row.ran = kernels::gemm::Choice{&ran->tile};
        row.latency_s = 40e-6 + kernels::gemm::plan_choice(shape, *row.ran, rates, p, blocks).seconds;
        rows.push_back(row);
    }
    const FitReport report =
        fit_gemm(rows, {}, {.fit = FitOptions{.starts = 1, .iterations = 40, .row_log_stddev = 0.01}, .folds = false});
    const auto of_volta = [&](const char* name) { return value_of(report.parameters, name, "volta"); };
    // Latencies take part of it; the prior expects 0.92.
    CHECK(of_volta("gemm.narrow_efficiency") / of_volta("gemm.wide_efficiency") < 0.75);
    // It is scored as the kernel that the model would choose: its errors include that of the choice.
    double error = 0;
    for (const OperatorRow& row : rows) {
        const auto& shape = std::get<kernels::GemmShape>(row.shape);
        const auto chosen = kernels::gemm::choose_kernel(shape, v100.chip(), v100.sms);
        const double seconds = 40e-6 + kernels::gemm::plan_choice(shape, chosen, rates, p, blocks).seconds;
        error += std::abs(seconds / row.latency_s - 1) / static_cast<double>(rows.size());
    }
    REQUIRE(error > 0.01);
    CHECK(report.folds.front().mean == approx(error).epsilon(0.5));
}
