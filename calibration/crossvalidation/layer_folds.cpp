#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "calibration/crossvalidation/folds.hpp"
#include "calibration/fit/generation_fit.hpp"
#include "calibration/fit/operator_profile.hpp"
#include "src/io/profile_file.hpp"

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

std::vector<Figures> layer_folds(const LayerRows& rows, const DeviceProfileFile& profile) {
    std::vector<Figures> figures;
    for (const fit::Fold& fold : fit::fit_tensor_gemm(rows.gemm).folds) {
        for (const fit::ErrorSummary& of_gpu : fold.groups) figures.push_back({fold.name, "gemm", "", of_gpu});
    }
    const fit::LayerKernelFitOptions options{
        .folds = true, .profile_without = [&](const std::string& slug) { return without(slug, rows, profile); }};
    for (const fit::FitReport& report : fit::fit_layer_kernels(rows.layers, profile, options)) {
        for (const fit::Fold& fold : report.folds) {
            for (const fit::ErrorSummary& group : fold.groups) {
                const std::size_t comma = group.group.find(", ");
                Figures f{fold.name, group.group.substr(0, comma), "", group};
                f.of_gpu.group = group.group.substr(comma + 2);
                figures.push_back(std::move(f));
            }
        }
    }
    return figures;
}

std::vector<Figures> quantized_folds(const MeasurementFile<OperatorMeasurement>& measured) {
    std::vector<std::pair<const DeviceSpec*, OperatorMeasurement>> rows;
    for (std::size_t i = 0; i < measured.rows.size(); ++i) {
        if (measured.problems[i].empty()) rows.emplace_back(&datasheet(measured.rows[i].gpu), measured.rows[i]);
    }
    std::vector<Figures> figures;
    for (const fit::FitReport& report : fit::fit_on_tensor_gemm(rows, embedded_device_profile(), {})) {
        for (const fit::Fold& fold : report.folds) {
            for (const fit::ErrorSummary& group : fold.groups)
                figures.push_back({fold.name, report.kernel_class, "", group});
        }
    }
    return figures;
}

}  // namespace ftax::folds
