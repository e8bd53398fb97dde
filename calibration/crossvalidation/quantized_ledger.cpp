#include "calibration/crossvalidation/quantized_ledger.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "calibration/crossvalidation/operator_ledger.hpp"
#include "calibration/fit/quantized_fit.hpp"
#include "src/io/profile_file.hpp"

namespace ftax::folds {

std::vector<fit::FitReport> quantized_folds(const MeasurementFile<OperatorMeasurement>& measured) {
    std::map<std::string, DeviceSpec> devices;
    std::vector<std::pair<const DeviceSpec*, OperatorMeasurement>> rows;
    for (std::size_t i = 0; i < measured.rows.size(); ++i) {
        if (!measured.problems[i].empty()) continue;
        const OperatorMeasurement& row = measured.rows[i];
        auto device = devices.find(row.gpu);
        if (device == devices.end()) device = devices.emplace(row.gpu, device_spec(row.gpu)).first;
        rows.emplace_back(&device->second, row);
    }
    return fit::fit_on_tensor_gemm(rows, embedded_device_profile(), {});
}

std::string quantized_ledger_csv(std::span<const fit::FitReport> reports) {
    std::vector<OperatorFigures> figures;
    for (const fit::FitReport& report : reports) {
        for (const fit::Fold& fold : report.folds) {
            for (const fit::ErrorSummary& group : fold.groups) {
                figures.push_back({fold.name, report.kernel_class, "", group});
            }
        }
    }
    return operator_ledger_csv(figures);
}

std::string quantized_ledger_markdown(std::span<const fit::FitReport> reports) {
    std::string text =
        "# Errors of quantised products and mixtures of experts\n\n"
        "tensor_ops.csv: kernels timed alone in CUDA graphs, a product with the kernel that quantises its "
        "activations,\n"
        "experts as one fused operator; errors in %, bias the median of log(predicted / measured). Ratios of products "
        "in\n"
        "16 bits are frozen, fitted to all GPUs. A GPU left out is here a generation left out: it takes the median of "
        "the\n"
        "others. fp8 experts of the H100 rest on three facts of untuned kernels (data/architectures/hopper.json) that its "
        "own\n"
        "rows gave. Written by `ftax_folds quantized`.\n\n| class | fold | mean over the GPUs |\n|---|---|---|\n";
    for (const fit::FitReport& report : reports) {
        for (const fit::Fold& fold : report.folds) {
            text += fmt::format("| {} | {} | {:.1f} |\n", report.kernel_class, fold.name, 100 * fold.mean);
        }
    }
    text += "\n| class | fold | GPU | rows | MAPE | median | P90 | bias |\n|---|---|---|---|---|---|---|---|\n";
    for (const fit::FitReport& report : reports) {
        for (const fit::Fold& fold : report.folds) {
            for (const fit::ErrorSummary& group : fold.groups) {
                text += fmt::format("| {} | {} | {} | {} | {:.1f} | {:.1f} | {:.1f} | {:+.1f} |\n", report.kernel_class,
                                    fold.name, group.group, group.rows, 100 * group.mean, 100 * group.median,
                                    100 * group.p90, 100 * group.bias);
            }
        }
    }
    return text;
}

}  // namespace ftax::folds
