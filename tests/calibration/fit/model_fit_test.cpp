#include "calibration/fit/model_fit.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "tests/approx.hpp"

using namespace ftax;

TEST_CASE("whole models write what they moved; what they say nothing about stays as it was, or unwritten") {
    const DeviceSpec t4 = device_spec("t4");
    DeviceProfileFile start{.version = "1"};
    start.parameters = {{{"memory.pool_efficiency", 0.7, 0.05, "fitted: example"}, ParameterScope::shared, ""}};
    KernelParameters truth = kernel_parameters(compose(start, t4));
    truth.sustained.bandwidth *= 0.8;
    const KernelModels models(t4, truth);
    std::vector<fit::ModelRow> rows;
    for (const std::int64_t elements : {1 << 22, 1 << 23, 1 << 24, 1 << 25, 1 << 26, 1 << 27}) {
        const kernels::MemoryShape copy{kernels::MemoryClass::copy, elements, 1, 1, 4 * elements, 4 * elements, 4};
        rows.push_back({.device = &t4, .kernels = {{copy, MathPath::fp32}}, .group = "t4"});
        rows.back().latency_s = fit::device_seconds(rows.back(), models);
    }
    fit::ModelFitOptions options;
    options.fit.starts = 1;
    options.fit.row_log_stddev = 0.01;
    DeviceProfileFile fitted;
    (void)fit::fit_models(rows, start, options, fitted);

    const auto find = [&](std::string_view name) {
        return std::find_if(fitted.parameters.begin(), fitted.parameters.end(),
                            [&](const ScopedParameter& p) { return p.parameter.name == name; });
    };
    REQUIRE(find("bandwidth") != fitted.parameters.end());
    CHECK(find("bandwidth")->parameter.value == approx(truth.sustained.bandwidth).epsilon(0.02));
    CHECK(find("bandwidth")->parameter.source == "fitted: 6 whole-model rows");
    REQUIRE(find("memory.pool_efficiency") != fitted.parameters.end());
    CHECK(find("memory.pool_efficiency")->parameter.value == 0.7);
    CHECK(find("memory.pool_efficiency")->parameter.source == "fitted: example");
    for (const ScopedParameter& p : fitted.parameters) {
        CAPTURE(p.parameter.name);
        CHECK_FALSE(p.parameter.name.starts_with("gemm."));
        CHECK_FALSE(p.parameter.name.starts_with("conv."));
    }
}

TEST_CASE("a card of another's chip and memory starts from that one's bandwidth, the nearer the surer it is") {
    const DeviceSpec card = device_spec("a100-sxm4-40gb");
    const auto fitted_from = [&](double stddev) {
        DeviceProfileFile start{.version = "1"};
        start.parameters = {{{"bandwidth", 0.7, stddev, "fitted: example"}, ParameterScope::device, "a100-pcie-40gb"}};
        KernelParameters truth = kernel_parameters(compose({.version = "1"}, card));
        truth.sustained.bandwidth = 0.95;
        const kernels::MemoryShape copy{kernels::MemoryClass::copy, 1 << 26, 1, 1, 1 << 28, 1 << 28, 4};
        std::vector<fit::ModelRow> rows{{.device = &card, .kernels = {{copy, MathPath::fp32}}, .group = "a100"}};
        rows[0].latency_s = fit::device_seconds(rows[0], KernelModels(card, truth));
        fit::ModelFitOptions options;
        options.fit.starts = 1;
        options.only = "bandwidth";
        DeviceProfileFile fitted;
        (void)fit::fit_models(rows, start, options, fitted);
        const auto found = std::ranges::find_if(fitted.parameters, [&](const ScopedParameter& p) {
            return p.parameter.name == "bandwidth" && p.key == card.slug;
        });
        return found == fitted.parameters.end() ? 0.7 : found->parameter.value;
    };
    const double sure = fitted_from(0.01), unsure = fitted_from(0.5);
    CHECK(sure < 0.8);
    CHECK(unsure > 0.88);
}
