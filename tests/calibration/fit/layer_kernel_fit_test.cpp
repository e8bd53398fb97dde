#include <doctest/doctest.h>

#include <algorithm>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calibration/fit/operator_fit.hpp"
#include "predictors/operator_model.hpp"
#include "tests/approx.hpp"

using namespace ftax;

namespace {

/// Rows as a card whose kernels have these parameters would give them; they point into `measured`.
std::vector<fit::OperatorRow> synthetic_rows(const DeviceSpec& device, const std::vector<Parameter>& parameters,
                                             std::list<OperatorMeasurement>& measured) {
    DeviceProfile profile;
    profile.device = device;
    profile.parameters = parameters;
    const OperatorModel truth(profile, {});
    std::vector<fit::OperatorRow> rows;
    const auto add = [&](const char* op, std::map<std::string, std::int64_t> shape, const char* library) {
        OperatorMeasurement& row = measured.emplace_back(
            OperatorMeasurement{.op = op, .precision = Precision::bf16, .shape = std::move(shape)});
        row.mode = "device_hot";
        row.library = library;
        row.latency_s = truth.predict(row)->latency_s;
        rows.push_back(*fit::operator_row(row, device));
    };
    for (std::int64_t length = 16; length < 30'000; length = length * 3 / 2 + 1) {
        for (const std::int64_t b : {1, 8, 64}) {
            add("context_attention", {{"b", b}, {"s", length}, {"heads", 32}, {"kv_heads", 8}, {"d", 128}}, "");
            add("encoder_attention", {{"b", b}, {"s", length}, {"heads", 16}, {"kv_heads", 16}, {"d", 64}}, "");
            add("generation_attention", {{"b", b}, {"past", length}, {"heads", 32}, {"kv_heads", 8}, {"d", 128}}, "");
        }
        for (const char* op : {"rms_norm", "silu_mul", "add"}) {
            for (const char* library : {"sarathi", "vllm"}) add(op, {{"m", length}, {"h", 4096}}, library);
        }
    }
    return rows;
}

double value(const std::vector<fit::FitReport>& reports, std::string_view name) {
    for (const fit::FitReport& report : reports) {
        for (const ScopedParameter& p : report.parameters) {
            if (p.parameter.name == name) return p.parameter.value;
        }
    }
    FAIL("no parameter " << name);
    return 0;
}

}  // namespace

TEST_CASE("the fit recovers attention and row-wise kernels from synthetic rows") {
    const DeviceSpec device = device_spec("l40s");
    std::list<OperatorMeasurement> measured;
    const auto rows = synthetic_rows(device,
                                     {{.name = "attention.decode.flash2.fill_s", .value = 7e-6},
                                      {.name = "attention.fill_s", .value = 1.5e-6},
                                      {.name = "attention.warp.rate", .value = 0.7},
                                      {.name = "token.bytes_per_cycle", .value = 3},
                                      {.name = "token.floor_s", .value = 4e-6}},
                                     measured);
    const auto reports = fit::fit_layer_kernels(rows, {}, {.folds = false});
    CHECK(value(reports, "attention.warp.rate") == approx(0.7).epsilon(0.1));
    CHECK(value(reports, "attention.decode.flash2.fill_s") == approx(7e-6).epsilon(0.1));
    CHECK(value(reports, "attention.fill_s") == approx(1.5e-6).epsilon(0.15));
    CHECK(value(reports, "token.bytes_per_cycle") == approx(3).epsilon(0.1));
    CHECK(value(reports, "token.floor_s") == approx(4e-6).epsilon(0.1));
}

TEST_CASE("errors of rows left out are those of prompts, decoding, encoders and row-wise kernels apart") {
    // On one of two cards rows of one operator take longer: the error of its class is the largest.
    const std::pair<const char*, const char*> classes[] = {
        {"context_attention", "prefill"}, {"generation_attention", "decode"}, {"encoder_attention", "encoder"}};
    for (const auto& of : classes) {
        const char* const op = of.first;
        CAPTURE(op);
        std::list<OperatorMeasurement> measured;
        std::vector<fit::OperatorRow> rows;
        for (const char* slug : {"l40s", "rtx-4090"}) {
            for (const fit::OperatorRow& row : synthetic_rows(device_spec(slug), {}, measured)) {
                const auto batch = row.measured->shape.find("b");
                if (batch == row.measured->shape.end() || batch->second != 8) continue;
                rows.push_back(row);
                if (row.op == op && std::string_view(slug) == "l40s") rows.back().latency_s *= 3;
            }
        }
        std::map<std::string, double> errors;
        for (const fit::FitReport& report : fit::fit_layer_kernels(rows, {}, {})) {
            for (const fit::Fold& fold : report.folds) {
                if (!fold.groups.empty()) errors[fold.row_class] = std::max(errors[fold.row_class], fold.mean);
            }
        }
        CHECK(errors.size() == 3);
        const auto worst = std::max_element(errors.begin(), errors.end(),
                                            [](const auto& x, const auto& y) { return x.second < y.second; });
        REQUIRE(worst != errors.end());
        CHECK(worst->first == of.second);
    }
}

TEST_CASE("rows of other kernels are excluded from this fit") {
    const DeviceSpec device = device_spec("h100-sxm5-80gb");
    OperatorMeasurement row{.op = "generation_attention",
                            .precision = Precision::bf16,
                            .shape = {{"b", 1}, {"past", 64}, {"heads", 8}, {"kv_heads", 1}, {"d", 128}}};
    CHECK_FALSE(fit::operator_row(row, device));  // a call, host included
    row.mode = "device_hot";
    CHECK(fit::operator_row(row, device)->of == fit::RowClass::attention);
    row.shape["d"] = 512;
    CHECK_FALSE(fit::operator_row(row, device));
    row.op = "gemm";
    CHECK_FALSE(fit::operator_row(row, device));  // without a dimension
}
