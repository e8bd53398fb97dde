#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <string_view>

#include "calibration/crossvalidation/folds.hpp"
#include "calibration/fit/operator_profile.hpp"
#include "predictors/operator_model.hpp"

namespace ftax::folds {
namespace {

constexpr std::array<std::string_view, 6> classes = {"linear", "bmm", "conv", "ln", "softmax", "pointwise"};
constexpr std::string_view all_rows = "validate, all rows";

std::string class_of(std::string_view op) {
    return std::string(std::find(classes.begin(), classes.end(), op) == classes.end() ? "pointwise" : op);
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

}  // namespace

void append_figures(LogErrors all, std::vector<Figures>& figures) {
    for (auto& [group, errors] : all) {
        figures.push_back({group.fold, group.op_class, region_name(group.dimension, group.high),
                           fit::summarize(group.of, std::move(errors))});
    }
}

std::vector<Figures> validate(std::span<const fit::OperatorRow> rows) {
    std::map<std::string, OperatorModel> models;  // by device
    LogErrors log_errors;
    for (const fit::OperatorRow& row : rows) {
        const std::string& slug = row.device->slug;
        auto model = models.find(slug);
        if (model == models.end()) {
            model = models.emplace(slug, OperatorModel(device_profile(slug), call_host_profile(slug))).first;
        }
        const auto predicted = model->second.predict(*row.measured);
        if (!predicted) continue;
        const double error = std::log(predicted->latency_s / row.latency_s);
        Group group{std::string(all_rows), class_of(row.op), "", 0, slug};
        log_errors[group].push_back(error);
        group.fold = "validate, " + std::string(name_of(row.conditions));
        log_errors[group].push_back(error);
        if (row.conditions != fit::Conditions::usual) continue;
        for (const std::string_view dimension : varied) {
            const auto size = row.measured->shape.find(std::string(dimension));
            if (size == row.measured->shape.end()) continue;
            group.dimension = dimension;
            group.high = range_of(size->second);
            log_errors[group].push_back(error);
        }
    }
    std::vector<Figures> figures;
    append_figures(std::move(log_errors), figures);
    return figures;
}

std::vector<Figures> folds_of(std::span<const fit::FitReport> reports) {
    std::vector<Figures> figures;
    for (const fit::FitReport& report : reports) {
        for (const fit::Fold& fold : report.folds) {
            for (const fit::ErrorSummary& of_gpu : fold.groups)
                figures.push_back({fold.name, fold.row_class, "", of_gpu});
        }
    }
    return figures;
}

std::vector<fit::FitReport> fit_layers(std::span<const fit::OperatorRow> rows, const DeviceProfileFile& profile) {
    const auto without = [&](const std::string& slug) {
        std::vector<fit::OperatorRow> others;
        std::copy_if(rows.begin(), rows.end(), std::back_inserter(others),
                     [&](const fit::OperatorRow& row) { return row.device->slug != slug; });
        DeviceProfileFile blind = profile;
        std::erase_if(blind.parameters, [&](const ScopedParameter& p) {
            const bool of_gemm = p.parameter.name.starts_with("tensor_gemm.");
            return (of_gemm && p.scope != ParameterScope::device) || p.key == slug;
        });
        fit::replace_parameters(blind, fit::fit_tensor_gemm(others, {.folds = false}).parameters);
        return blind;
    };
    std::vector<fit::FitReport> reports = fit::fit_layer_kernels(rows, profile, {}, without);
    reports.insert(reports.begin(), fit::fit_tensor_gemm(rows));
    return reports;
}

}  // namespace ftax::folds
