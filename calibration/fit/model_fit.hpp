#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibration/fit/log_fit.hpp"
#include "calibration/fit/scoped_fit.hpp"
#include "ftax/device.hpp"
#include "predictors/lowering/kernel_shapes.hpp"
#include "src/io/profile_file.hpp"

namespace ftax::fit {

/// One measured forward pass whose latency is device time: the host ran ahead.
struct ModelRow {
    const DeviceSpec* device = nullptr;
    std::vector<CountedKernel> kernels;  ///< kernels of the forward pass, see list_kernels
    double gaps_s = 0;                   ///< device idle between these kernels, which the timeline adds
    double latency_s = 0;
    std::string model;
    Precision precision = Precision::fp32;
    std::string group;  ///< for the report: "rtx-a6000 fp16"
};

/// Returns the device time of a row: its kernels and the gaps between them, within the power limit.
template <class Row>
[[nodiscard]] double device_seconds(const Row& row, const KernelModels& models) {
    auto total = sum_time(row.kernels, models);
    total.seconds += row.gaps_s;
    return kernels::within_power(total);
}

struct ModelFitOptions {
    FitOptions fit;
    /// Width of the priors around `start`, relative to what the fit of the operators left (Parameter::relative_stddev).
    double prior_scale = 3;
    /// Beginning of the names of the parameters that move; empty: all.
    std::string only;
};

/// Fits the kernel models to whole forward passes, starting from the parameters of an operator fit (`start`): what no
/// operator row shows (tensor cores, layouts, memory classes, sustained clocks of cards without operator rows) moves
/// far, what operators fixed moves little.
/// Returns in `fitted` the new values with their scopes, and those of `start` where no row determines one.
[[nodiscard]] FitReport fit_models(std::span<const ModelRow> rows, const DeviceProfileFile& start,
                                   const ModelFitOptions& options, DeviceProfileFile& fitted);

/// Returns which points of one latency curve are compute-bound: latency grows 1.75- to 2.6-fold per doubling of the
/// batch there and exceeds 1.5 times the flat start. `batches` ascending.
/// Source: a rule of thumb: where the host does not decide, twice the work takes about twice the time.
[[nodiscard]] std::vector<bool> compute_bound_points(std::span<const double> batches,
                                                     std::span<const double> latency_s);

/// Latency below which a forward pass that was measured at one batch size only may be waiting for its host: 50 µs per
/// kernel, the slowest hosts of framework_tax.csv.
[[nodiscard]] double dispatch_bound_s(std::span<const CountedKernel> kernels);

}  // namespace ftax::fit
