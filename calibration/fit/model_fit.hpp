#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibration/fit/log_fit.hpp"
#include "calibration/fit/scoped_fit.hpp"
#include "ftax/device.hpp"
#include "predictors/lowering/kernel_shapes.hpp"
#include "predictors/profiles/profile_file.hpp"

namespace ftax::fit {

/// One measured call, of an operator or a whole network, whose latency is device time: the host ran ahead.
struct ModelRow {
    const DeviceSpec* device = nullptr;
    std::vector<CountedKernel> kernels;  ///< those of the call, see list_kernels
    double gaps_s = 0;                   ///< device idle between these kernels, which the timeline adds
    double latency_s = 0;
    std::string model;
    Precision precision = Precision::fp32;
    std::string group;  ///< for the report and its folds: "rtx-a6000 fp16", an operator, a model
};

/// Returns the device time of a row: its kernels and the gaps between them, within the power limit.
[[nodiscard]] inline double device_seconds(const ModelRow& row, const KernelModels& models) {
    auto total = sum_time(row.kernels, models);
    total.seconds += row.gaps_s;
    return kernels::within_power(total);
}

struct ModelFitOptions {
    FitOptions fit;
    /// Beginning of the names of the parameters that move; empty: all.
    std::string only;
};

/// Fits the kernel models to whole forward passes, starting from the parameters of an operator fit (`start`): what no
/// operator row shows (tensor cores, layouts, memory classes, sustained clocks of cards without operator rows) moves
/// far, what operators fixed moves little.
/// Returns in `fitted` the new values with their scopes, and those of `start` where no row determines one.
[[nodiscard]] FitReport fit_models(std::span<const ModelRow> rows, const DeviceProfileFile& start,
                                   const ModelFitOptions& options, DeviceProfileFile& fitted);

}  // namespace ftax::fit
