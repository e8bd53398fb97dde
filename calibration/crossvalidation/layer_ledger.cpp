#include "calibration/crossvalidation/layer_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "calibration/fit/operator_profile.hpp"
#include "src/io/measurement_file.hpp"

namespace ftax::folds {
namespace {

/// Datasheets that rows point to.
const DeviceSpec& datasheet(const std::string& gpu) {
    static std::map<std::string, DeviceSpec> known;
    auto found = known.find(gpu);
    if (found == known.end()) found = known.emplace(gpu, device_spec(gpu)).first;
    return found->second;
}

/// The profile without what products on tensor cores say of a card.
DeviceProfileFile without(const std::string& slug, const LayerRows& rows, DeviceProfileFile profile) {
    std::vector<fit::TensorGemmRow> others;
    std::copy_if(rows.gemm.begin(), rows.gemm.end(), std::back_inserter(others),
                 [&](const fit::TensorGemmRow& row) { return row.device->slug != slug; });
    std::erase_if(profile.parameters, [&](const ScopedParameter& p) {
        const bool of_gemm = p.parameter.name.starts_with("tensor_gemm.");
        return (of_gemm && p.scope != ParameterScope::device) || p.key == slug;
    });
    fit::replace_parameters(profile, fit::fit_tensor_gemm(others, {.folds = false}).parameters);
    return profile;
}

}  // namespace

LayerRows layer_rows(std::vector<CsvTable> tables) {
    LayerRows rows;
    for (CsvTable& table : tables) {
        const auto file = read_operator_measurements(std::move(table));
        for (std::size_t i = 0; i < file.rows.size(); ++i) {
            if (!file.problems[i].empty()) continue;
            const DeviceSpec& device = datasheet(file.rows[i].gpu);
            if (auto row = fit::tensor_gemm_row(file.rows[i], device)) rows.gemm.push_back(*row);
            if (auto row = fit::layer_kernel_row(file.rows[i], device)) rows.layers.push_back(*row);
        }
    }
    return rows;
}

std::vector<OperatorFigures> layer_folds(const LayerRows& rows, const DeviceProfileFile& profile) {
    std::vector<OperatorFigures> figures;
    for (const fit::Fold& fold : fit::fit_tensor_gemm(rows.gemm).folds) {
        for (const fit::ErrorSummary& of_gpu : fold.groups) figures.push_back({fold.name, "gemm", "", of_gpu});
    }
    const fit::LayerKernelFitOptions options{
        .folds = true, .profile_without = [&](const std::string& slug) { return without(slug, rows, profile); }};
    for (const fit::FitReport& report : fit::fit_layer_kernels(rows.layers, profile, options)) {
        for (const fit::Fold& fold : report.folds) {
            for (const fit::ErrorSummary& group : fold.groups) {
                const std::size_t comma = group.group.find(", ");
                OperatorFigures f{fold.name, group.group.substr(0, comma), "", group};
                f.of_gpu.group = group.group.substr(comma + 2);
                figures.push_back(std::move(f));
            }
        }
    }
    return figures;
}

std::string layer_ledger_markdown(std::span<const OperatorFigures> figures) {
    std::string text =
        "# Errors of kernels of language models' layers\n\n"
        "tensor_ops.csv and layer_ops.csv (AIConfigurator, vidur, LLMServingSim): bf16 and f16 kernels timed alone as\n"
        "nodes of CUDA graphs; errors in %, bias the median of log(predicted / measured). Both folds refit: without a\n"
        "fifth of the shapes, the same on all GPUs, or without a GPU, whose matrix products are left out with it.\n"
        "Structure and constants were chosen with all GPUs in sight. Written by `ftax_folds layers`.\n";
    std::vector<std::string> folds, classes, gpus;
    std::map<std::string, const OperatorFigures*> cells;
    const auto note = [](std::vector<std::string>& seen, const std::string& name) {
        if (std::find(seen.begin(), seen.end(), name) == seen.end()) seen.push_back(name);
    };
    for (const OperatorFigures& f : figures) {
        note(folds, f.fold);
        note(classes, f.op_class);
        note(gpus, f.of_gpu.group);
        cells[f.fold + f.op_class + f.of_gpu.group] = &f;
    }
    std::sort(gpus.begin(), gpus.end());
    for (const std::string& fold : folds) {
        text += fmt::format("\n## {}\n\nMAPE, median, bias\n\n| class | {} | mean of MAPE |\n|---|", fold,
                            fmt::join(gpus, " | "));
        for (std::size_t i = 0; i <= gpus.size(); ++i) text += "---|";
        for (const std::string& op_class : classes) {
            double sum = 0, count = 0;
            text += "\n| " + op_class + " |";
            for (const std::string& gpu : gpus) {
                const auto cell = cells.find(fold + op_class + gpu);
                if (cell == cells.end()) {
                    text += " – |";
                    continue;
                }
                const fit::ErrorSummary& e = cell->second->of_gpu;
                sum += e.mean;
                count += 1;
                text += fmt::format(" {:.1f}, {:.1f}, {:+.1f} |", 100 * e.mean, 100 * e.median, 100 * e.bias);
            }
            text += fmt::format(" **{:.1f}** |", 100 * sum / std::max(count, 1.0));
        }
        text += "\n";
    }
    return text;
}

}  // namespace ftax::folds
