#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibration/fit/fit_options.hpp"
#include "calibration/fit/fit_report.hpp"
#include "ftax/device.hpp"
#include "ftax/measurement.hpp"
#include "predictors/kernels/shapes.hpp"

/// Fits the kernels of a language model's layer beside its matrix products: fused attention and row-wise kernels.
namespace ftax::fit {

/// One measured kernel, alone.
struct LayerKernelRow {
    const DeviceSpec* device = nullptr;
    std::string kernel_class;  ///< "prefill", "decode", "encoder", "mixed", "row-wise"
    KernelShape shape{};
    MathPath path = MathPath::bf16_tensor;
    double kernels = 1;     ///< equal ones in the row
    double beside_s = 0;    ///< that the row contains beside them
    bool held_out = false;  ///< of the fifth of the shapes that one fold leaves out, the same on all devices
    double latency_s = 0;
};

/// Builds a row from an operator measurement of mode device_hot; nullopt for another operator or mode, and for heads
/// over 256 elements, which kernels of other libraries take.
[[nodiscard]] std::optional<LayerKernelRow> layer_kernel_row(const OperatorMeasurement& measured,
                                                             const DeviceSpec& device);

struct LayerKernelFitOptions {
    FitOptions fit{.starts = 1, .iterations = 40, .row_log_stddev = 0.1, .seed = 1};
    std::size_t rows_per_class = 250;  ///< of one device, spread evenly; errors are taken over all rows
    bool folds = false;                ///< a fifth of the shapes left out; one device left out
    /// The profile that knows nothing of a device, by slug, for the fold that leaves it out.
    std::function<DeviceProfileFile(const std::string&)> profile_without{};
};

/// Fits the parameters of attention and of row-wise kernels, which all generations share. What both take from matrix
/// products (bandwidths, L2, rates, energy) is that of `profile`. Groups of the folds are "CLASS, SLUG".
[[nodiscard]] std::vector<FitReport> fit_layer_kernels(std::span<const LayerKernelRow> rows,
                                                       const DeviceProfileFile& profile,
                                                       const LayerKernelFitOptions& options = {});

}  // namespace ftax::fit
