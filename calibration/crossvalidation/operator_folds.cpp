#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <map>
#include <string_view>

#include "calibration/crossvalidation/folds.hpp"
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

/// Rows that are summed up together, in the order of the ledger.
struct Group {
    std::string fold, op_class, dimension;
    std::int64_t high = 0;  ///< of the region
    std::string gpu;
    auto operator<=>(const Group&) const = default;
};

}  // namespace

std::vector<Figures> validate(const fit::OperatorRows& rows) {
    std::map<std::string, OperatorModel> models;  // by GPU as the file spells it
    std::map<Group, std::vector<double>> log_errors;
    for (std::size_t i = 0; i < rows.file.rows.size(); ++i) {
        const OperatorMeasurement& row = rows.file.rows[i];
        if (!rows.file.problems[i].empty()) continue;
        auto model = models.find(row.gpu);
        const std::string& slug = rows.devices.at(row.gpu).slug;
        if (model == models.end()) {
            model = models.emplace(row.gpu, OperatorModel(device_profile(slug), call_host_profile(slug))).first;
        }
        const auto predicted = model->second.predict(row);
        if (!predicted) continue;
        const double error = std::log(predicted->latency_s / row.latency_s);
        Group group{std::string(all_rows), class_of(row.op), "", 0, slug};
        log_errors[group].push_back(error);
        group.fold = "validate, " + std::string(name_of(rows.conditions[i]));
        log_errors[group].push_back(error);
        if (rows.conditions[i] != fit::Conditions::usual) continue;
        for (const std::string_view dimension : varied) {
            const auto size = row.shape.find(std::string(dimension));
            if (size == row.shape.end()) continue;
            group.dimension = dimension;
            group.high = range_of(size->second);
            log_errors[group].push_back(error);
        }
    }
    std::vector<Figures> figures;
    for (auto& [group, errors] : log_errors) {
        figures.push_back({group.fold, group.op_class, region_name(group.dimension, group.high),
                           fit::summarize(group.gpu, std::move(errors))});
    }
    return figures;
}

std::vector<Figures> folds_of(std::span<const fit::FitReport> reports) {
    std::vector<Figures> figures;
    for (const fit::FitReport& report : reports) {
        for (const fit::Fold& fold : report.folds) {
            const bool is_conv = report.kernel_class == "conv";  // the only fit of a single class
            const std::size_t comma = fold.name.find(", ");
            const std::string op_class = is_conv ? report.kernel_class : fold.name.substr(0, comma);
            const std::string name = is_conv ? fold.name : fold.name.substr(comma + 2);
            for (const fit::ErrorSummary& of_gpu : fold.groups) figures.push_back({name, op_class, "", of_gpu});
        }
    }
    return figures;
}

}  // namespace ftax::folds
