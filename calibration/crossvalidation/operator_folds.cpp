#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "calibration/crossvalidation/folds.hpp"
#include "calibration/fit/operator_fit.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/files/csv.hpp"
#include "predictors/operator_model.hpp"

namespace ftax::folds {
namespace {

using Rows = std::span<const fit::OperatorRow>;

std::string class_of(std::string_view op) {
    return std::string(has_word("linear bmm conv ln softmax", op) ? op : "pointwise");
}

/// The dimensions whose sizes vary, and with them the regions of shapes.
constexpr std::array<std::string_view, 8> varied = {"b", "m", "n", "k", "h", "cin", "cout", "hw"};

constexpr std::int64_t open_end = 4096;  ///< beyond it all sizes are one region

/// The upper end of the range that a size lies in: a power of eight, the last range has none.
std::int64_t range_of(std::int64_t size) {
    std::int64_t high = 8;
    while (size > high && high <= open_end) high *= 8;
    return high;
}

std::string region_name(std::string_view dimension, std::int64_t high) {
    if (dimension.empty()) return "";
    if (high > open_end) return fmt::format("{} > {}", dimension, open_end);
    return high == 8 ? fmt::format("{} <= 8", dimension) : fmt::format("{} < {} <= {}", high / 8, dimension, high);
}

void append_figures(std::string& text, const std::string& fold, const std::string& op_class, const std::string& region,
                    const fit::ErrorSummary& errors) {
    append_scored(text, {fold, op_class, region, errors.group, std::to_string(errors.rows)},
                  {errors.mean, errors.median, errors.p90, errors.bias}, 0);
}

fit::OperatorRows operator_rows(Arguments paths) {
    fit::OperatorRows rows;
    for (const std::string& path : paths) rows.add(read_csv(path));
    return rows;
}

std::string validate(Rows rows) {
    std::map<std::string, OperatorModel> models;  // by device
    LogErrors errors;
    for (const fit::OperatorRow& row : rows) {
        const std::string& slug = row.device->slug;
        const OperatorModel& model =
            kept_in(models, slug, [&] { return OperatorModel(device_profile(slug), call_host_profile(slug)); });
        const auto predicted = model.predict(*row.measured);
        if (!predicted) continue;
        const auto add = [&](std::string_view fold, std::string_view dimension, std::int64_t high) {
            errors[{"validate, " + std::string(fold), class_of(row.op), std::string(dimension), high, slug}].push_back(
                std::log(predicted->latency_s / row.latency_s));
        };
        add("all rows", "", 0);
        add(name_of(row.conditions), "", 0);
        if (row.conditions != fit::Conditions::usual) continue;
        for (const std::string_view dimension : varied) {
            const auto size = row.measured->shape.find(std::string(dimension));
            if (size != row.measured->shape.end()) add(name_of(row.conditions), dimension, range_of(size->second));
        }
    }
    return std::string(figures_header) + figures_csv(errors);
}

}  // namespace

std::string figures_csv(const LogErrors& all) {
    std::string text;
    for (const auto& [group, errors] : all) {
        const auto& [fold, op_class, dimension, high, of] = group;
        append_figures(text, fold, op_class, region_name(dimension, high), fit::summarize(of, errors));
    }
    return text;
}

std::string figures_csv(std::span<const fit::FitReport> reports) {
    std::string text;
    for (const fit::FitReport& report : reports)
        for (const fit::Fold& fold : report.folds)
            for (const fit::ErrorSummary& of_gpu : fold.groups)
                append_figures(text, fold.name, fold.row_class, "", of_gpu);
    return text;
}

/// Figures of operators as `ftax validate` predicts them: all rows, those under usual conditions, these by region of
/// shapes, and each kind of the others.
std::string score_operators(Arguments a) {
    return validate(operator_rows(a).rows);
}

std::string operators(Arguments a) {
    const fit::OperatorRows measured = operator_rows(a);
    return validate(measured.rows) + figures_csv(fit::fit_operators(measured.rows, {.folds = true}).reports);
}

/// Refits without a fifth of the shapes and without each GPU: its matrix products are left out with it, from which the
/// others take bandwidths, rates and energy. What rows do not tell comes from the built-in profile.
/// The folds of fits of kernels of language models' layers.
std::string layers(Arguments a) {
    const fit::OperatorRows measured = operator_rows(a);
    const auto without = [&](const std::string& slug) {
        std::vector<fit::OperatorRow> others;
        std::copy_if(measured.rows.begin(), measured.rows.end(), std::back_inserter(others),
                     [&](const fit::OperatorRow& row) { return row.device->slug != slug; });
        DeviceProfileFile blind = embedded_device_profile();
        std::erase_if(blind.parameters, [&](const ScopedParameter& p) {
            const bool of_gemm = p.parameter.name.starts_with("tensor_gemm.");
            return (of_gemm && p.scope != ParameterScope::device) || p.key == slug;
        });
        fit::replace_parameters(blind, fit::fit_tensor_gemm(others, {.folds = false}).parameters);
        return blind;
    };
    std::vector<fit::FitReport> reports = fit::fit_layer_kernels(measured.rows, embedded_device_profile(), {}, without);
    reports.insert(reports.begin(), fit::fit_tensor_gemm(measured.rows));
    return std::string(figures_header) + figures_csv(reports);
}

/// The folds of fits of quantised products.
std::string quantized(Arguments a) {
    return std::string(figures_header) +
           figures_csv(fit::fit_on_tensor_gemm(operator_rows(a).rows, embedded_device_profile()));
}

}  // namespace ftax::folds
