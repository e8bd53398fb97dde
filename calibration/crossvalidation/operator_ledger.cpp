#include "calibration/crossvalidation/operator_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <iterator>
#include <map>
#include <string_view>

#include "predictors/operator_model.hpp"
#include "src/io/csv.hpp"

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

/// Mean over the GPUs of a fold and class.
struct Mean {
    double sum = 0, worst = 0, gpus = 0;
};

/// The card without its variant: "a100" of "a100-pcie-40gb".
std::string card_of(const OperatorFigures& f) {
    return f.of_gpu.group.substr(0, f.of_gpu.group.find('-'));
}

/// Errors by region, a column for each GPU.
std::string regions(std::span<const OperatorFigures> figures) {
    std::vector<std::string> gpus;
    for (const OperatorFigures& f : figures) {
        if (f.region.empty()) continue;
        const std::string card = card_of(f);
        if (std::find(gpus.begin(), gpus.end(), card) == gpus.end()) gpus.push_back(card);
    }
    std::string text = fmt::format(
        "\n## validate, usual, by region of shapes\n\nMAPE with the bias in brackets, of regions with at least 20 "
        "rows.\n\n"
        "| class | region | {} |\n|---|---|",
        fmt::join(gpus, " | "));
    for (std::size_t i = 0; i < gpus.size(); ++i) text += "---|";
    std::map<std::string, std::string> cells;  // of the row begun, by card
    for (auto f = figures.begin(); f != figures.end(); ++f) {
        if (f->region.empty()) continue;
        if (f->of_gpu.rows >= 20) {
            cells[card_of(*f)] = fmt::format("{:.1f} ({:+.1f})", 100 * f->of_gpu.mean, 100 * f->of_gpu.bias);
        }
        const auto next = std::next(f);
        if (next != figures.end() && next->region == f->region && next->op_class == f->op_class) continue;
        if (cells.empty()) continue;
        text += fmt::format("\n| {} | {} |", f->op_class, f->region);
        for (const std::string& card : gpus) text += " " + cells[card] + " |";
        cells.clear();
    }
    return text + "\n";
}

}  // namespace

std::vector<OperatorFigures> validate(const fit::OperatorRows& rows) {
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
    std::vector<OperatorFigures> figures;
    for (auto& [group, errors] : log_errors) {
        figures.push_back({group.fold, group.op_class, region_name(group.dimension, group.high),
                           fit::summarize(group.gpu, std::move(errors))});
    }
    return figures;
}

std::vector<OperatorFigures> folds_of(std::span<const fit::FitReport> reports) {
    std::vector<OperatorFigures> figures;
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

std::string operator_ledger_csv(std::span<const OperatorFigures> figures) {
    std::string text = "fold,class,region,gpu,rows,mape,median,p90,bias\n";
    for (const OperatorFigures& f : figures) {
        append_csv_row(
            text, std::vector<std::string>{f.fold, f.op_class, f.region, f.of_gpu.group, std::to_string(f.of_gpu.rows),
                                           fmt::format("{:.4f}", f.of_gpu.mean), fmt::format("{:.4f}", f.of_gpu.median),
                                           fmt::format("{:.4f}", f.of_gpu.p90), fmt::format("{:.4f}", f.of_gpu.bias)});
    }
    return text;
}

std::string operator_ledger_markdown(std::span<const OperatorFigures> figures) {
    std::string text =
        "# Errors of single operators\n\n"
        "neusight_ops.csv (NeuSight): one operator timed alone, f32 without TF32; errors in %, bias the median of\n"
        "log(predicted / measured). `validate` predicts with the committed profile, tile and algorithm chosen by the\n"
        "model; the other folds refit the operators without the GPU and take its host from the others or as known. A\n"
        "measured clock is that under load: where a power limit sets it, the energy of an operation.\n"
        "Written by `ftax_folds operators`. No row is left out but by name: see the sections of other conditions,\n"
        "whose rows are scored and never fitted, but for layers without cublasLt, of a P4, which are: they had no\n"
        "bias, as no column but the kernel's name says. Folds without rows under other conditions are without them,\n"
        "too. `in the fit` of ln, softmax and pointwise comes before each machine's host times are measured, which\n"
        "`validate` has.\n\n"
        "## Means over the GPUs, worst GPU in brackets\n\n| fold | linear | bmm | conv | ln | softmax | pointwise |\n"
        "|---|---|---|---|---|---|---|\n";
    std::vector<std::string> order;
    std::map<std::pair<std::string, std::string>, Mean> means;
    for (const OperatorFigures& f : figures) {
        if (!f.region.empty()) continue;
        if (std::find(order.begin(), order.end(), f.fold) == order.end()) order.push_back(f.fold);
        Mean& mean = means[{f.fold, f.op_class}];
        mean.sum += f.of_gpu.mean;
        mean.worst = std::max(mean.worst, f.of_gpu.mean);
        mean.gpus += 1;
    }
    for (const std::string& fold : order) {
        text += "| " + fold;
        for (const std::string_view op_class : classes) {
            const auto mean = means.find({fold, std::string(op_class)});
            text += mean == means.end() ? " |"
                                        : fmt::format(" | {:.1f} ({:.1f})", 100 * mean->second.sum / mean->second.gpus,
                                                      100 * mean->second.worst);
        }
        text += " |\n";
    }
    for (const std::string& fold : order) {
        text += fmt::format(
            "\n## {}\n\n| class | GPU | rows | MAPE | median | P90 | bias |\n|---|---|---|---|---|---|---|\n", fold);
        for (const OperatorFigures& f : figures) {
            if (f.fold != fold || !f.region.empty()) continue;
            text += fmt::format("| {} | {} | {} | {:.1f} | {:.1f} | {:.1f} | {:+.1f} |\n", f.op_class, f.of_gpu.group,
                                f.of_gpu.rows, 100 * f.of_gpu.mean, 100 * f.of_gpu.median, 100 * f.of_gpu.p90,
                                100 * f.of_gpu.bias);
        }
    }
    return text + regions(figures);
}

}  // namespace ftax::folds
