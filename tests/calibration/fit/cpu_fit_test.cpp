#include <doctest/doctest.h>

#include <random>

#include "calibration/bench/operator_cases.hpp"
#include "calibration/fit/machine_fit.hpp"
#include "ftax/error.hpp"
#include "predictors/kernels/device_model.hpp"
#include "tests/approx.hpp"
#include "tests/calibration/fit/reference_cpu.hpp"

using namespace ftax;

namespace {

/// Operators timed by a known CPU with 3 % noise.
std::vector<fit::CpuRow> rows_of(const kernels::CpuModel& truth, double dispatch_s) {
    std::mt19937 random(7);
    std::normal_distribution<double> noise(0, 0.03);
    std::vector<fit::CpuRow> rows;
    for (const bench::OperatorCase& c : bench::cpu_operators(true)) {
        fit::CpuRow row = fit::cpu_row(bench::operator_graph(c), truth.device, "libtorch");
        row.group = c.op;
        for (const CountedKernel& kernel : row.kernels)
            row.latency_s += kernel.count * std::visit([&](const auto& s) { return truth.seconds(s); }, kernel.shape);
        for (const int count : row.dispatched) row.latency_s += count * dispatch_s;
        row.latency_s *= std::exp(noise(random));
        rows.push_back(std::move(row));
    }
    return rows;
}

}  // namespace

TEST_CASE("a CPU's parameters are recovered from its own operators") {
    const auto truth = test::reference_cpu();
    const fit::CpuFit fit = fit::fit_cpu(rows_of(truth, 4e-6), truth.device, "libtorch", {});
    CHECK(fit.report.folds.front().all.group == "all");
    CHECK(fit.report.folds.front().all.mean < 0.05);
    const auto fitted = std::get<kernels::CpuModel>(device_model(fit.device)).parameters;
    CHECK(fitted.gemm_flops_per_s == approx(truth.parameters.gemm_flops_per_s).epsilon(0.05));
    CHECK(fitted.conv_flops_per_s == approx(truth.parameters.conv_flops_per_s).epsilon(0.1));
    CHECK(fitted.l3_bytes_per_s == approx(truth.parameters.l3_bytes_per_s).epsilon(0.25));
}

TEST_CASE("a network on a fitted CPU takes its dispatch and its kernels in turn") {
    const auto truth = test::reference_cpu();
    const fit::CpuFit fit = fit::fit_cpu(rows_of(truth, 4e-6), truth.device, "libtorch", {});
    const Graph graph =
        bench::operator_graph({"conv", {{"b", 1}, {"cin", 64}, {"cout", 64}, {"kernel", 3}, {"hw", 28}, {"pad", 1}}});
    Predictor predictor(graph, fit.device, fit.framework);
    const Prediction p = predictor.predict({});
    CHECK(p.latency_s == approx(p.host_s + p.device_s));
    CHECK(p.host_s > 0);
    CHECK(p.bound == Bound::compute);
    CHECK(p.kernels == 1);
    const auto dispatched = fit::cpu_row(graph, truth.device, "libtorch").dispatched;
    CHECK(dispatched[static_cast<std::size_t>(HostKind::forward)] == 1);
    CHECK(dispatched[static_cast<std::size_t>(HostKind::conv)] == 1);
}

TEST_CASE("too few operators are refused, a CPU without a profile too") {
    const auto truth = test::reference_cpu();
    auto rows = rows_of(truth, 4e-6);
    rows.resize(20);
    CHECK_THROWS_AS(static_cast<void>(fit::fit_cpu(rows, truth.device, "libtorch", {})), Error);
    CHECK_THROWS_AS(static_cast<void>(device_model({truth.device, {}, "", {}})), Error);
}
