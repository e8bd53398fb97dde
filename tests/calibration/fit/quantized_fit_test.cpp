#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibration/fit/operator_fit.hpp"
#include "ftax/precision.hpp"
#include "predictors/operator_model.hpp"
#include "predictors/profiles/profile_file.hpp"

using namespace ftax;

namespace {

KernelModels models_of(const DeviceSpec& device) {
    return {device, kernel_parameters(device_profile(device.slug))};
}

double latency_s(const KernelModels& models, const kernels::GemmShape& s) {
    const MathPath path = precision_spec(s.operands).path;
    return kernels::within_power(models.plan(s, path)) +
           models.plan(kernels::QuantizeShape{s.m, s.k, s.operands}, path).seconds + 2 * graph_gap_s;
}

}  // namespace

TEST_CASE("a fit recovers the ratios of quantised products, each generation's own") {
    const std::array devices{device_spec("h100-sxm5-80gb"), device_spec("b200")};
    std::vector<KernelModels> built_in, truth;
    for (const DeviceSpec& device : devices) {
        built_in.push_back(models_of(device));
        truth.push_back(built_in.back());
        auto& ratios = truth.back().parameters.quantized.of[0];
        ratios.row_cycles = 2500;
        ratios.rate = 3;
        ratios.efficiency = 0.8;
        ratios.epilogue = device.slug == "b200" ? 6 : 2;
        ratios.floor_s = 2e-6;
    }
    const OperatorMeasurement fp8{.op = "gemm", .precision = Precision::fp8};
    std::vector<fit::OperatorRow> rows;
    for (std::size_t d = 0; d < devices.size(); ++d) {
        for (const std::int64_t m : {1, 16, 100, 500, 3000, 10000}) {
            for (const std::int64_t n : {256, 2048, 8192}) {
                for (const std::int64_t k : {512, 4096, 16384}) {
                    const kernels::GemmShape s{
                        .m = m, .n = n, .k = k, .element_bytes = 2, .linear = true, .operands = Precision::fp8};
                    rows.push_back({.device = &devices[d],
                                    .measured = &fp8,
                                    .of = fit::RowClass::quantized,
                                    .shape = s,
                                    .latency_s = latency_s(truth[d], s)});
                }
            }
        }
    }
    const auto reports = fit::fit_on_tensor_gemm(rows, embedded_device_profile(), {.folds = false});
    REQUIRE(reports.size() == 1);
    CHECK(reports[0].kernel_class == "fp8");
    CHECK(reports[0].folds.empty());
    for (std::size_t d = 0; d < devices.size(); ++d) {
        KernelModels fitted = built_in[d];
        visit_parameters(fitted.parameters.quantized, [&](std::string_view name, double& value, const ParameterSpec&) {
            for (const ScopedParameter& p : reports[0].parameters) {
                const bool own = p.key.empty() || p.key == name_of(devices[d].architecture);
                if (p.parameter.name == name && own) value = p.parameter.value;
            }
        });
        double error = 0;
        for (const fit::OperatorRow& row : rows) {
            if (row.device != &devices[d]) continue;
            error += std::abs(latency_s(fitted, std::get<kernels::GemmShape>(row.shape)) / row.latency_s - 1) /
                     (static_cast<double>(rows.size()) / 2);
        }
        CAPTURE(devices[d].slug);
        CHECK(error < 0.02);
    }
    // A generation without rows is expected between those that have some, and is less certain.
    std::map<std::string, std::map<std::string, Parameter>> by_name;
    for (const ScopedParameter& p : reports[0].parameters) {
        if (p.scope == ParameterScope::architecture) by_name[p.parameter.name][p.key] = p.parameter;
    }
    REQUIRE_FALSE(by_name.empty());
    double furthest = 1;
    for (const auto& named : by_name) {
        CAPTURE(named.first);
        const Parameter &hopper = named.second.at("hopper"), &blackwell = named.second.at("blackwell"),
                        &ada = named.second.at("ada");
        CHECK(ada.value >= std::min(hopper.value, blackwell.value) * 0.999);
        CHECK(ada.value <= std::max(hopper.value, blackwell.value) * 1.001);
        CHECK(ada.source.starts_with("median of fp8"));
        if (hopper.source.starts_with("fitted") && blackwell.source.starts_with("fitted"))
            CHECK(ada.relative_stddev > 1.05 * std::min(hopper.relative_stddev, blackwell.relative_stddev));
        furthest = std::max(furthest, blackwell.value / hopper.value);
    }
    CHECK(furthest > 1.5);  // one writes its results three times as slowly
}

TEST_CASE("a fit excludes rows of other operators and precisions, and those that a card cannot run") {
    const DeviceSpec a100 = device_spec("a100-sxm4-80gb"), h100 = device_spec("h100-sxm5-80gb");
    OperatorMeasurement row{.gpu = "h100-sxm5-80gb",
                            .op = "gemm",
                            .precision = Precision::fp8,
                            .shape = {{"m", 8}, {"n", 64}, {"k", 64}},
                            .mode = "device_hot",
                            .latency_s = 1e-5};
    const auto class_on = [&](const DeviceSpec& device) {
        const auto found = fit::operator_row(row, device);
        return found ? std::optional(found->of) : std::nullopt;
    };
    CHECK(class_on(h100) == fit::RowClass::quantized);
    CHECK(class_on(a100) == std::nullopt);
    row.precision = Precision::bf16;
    CHECK(class_on(h100) == fit::RowClass::tensor_gemm);
    row.op = "moe";
    row.shape = {{"tokens", 8}, {"hidden", 64}, {"inter", 64}, {"topk", 2}, {"experts", 8}};
    CHECK(class_on(h100) == fit::RowClass::mixture);
    row.shape["topk"] = 9;
    CHECK(class_on(h100) == std::nullopt);
}
