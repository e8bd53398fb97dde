#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "calibration/fit/fit_options.hpp"
#include "calibration/fit/fit_report.hpp"
#include "ftax/device.hpp"
#include "ftax/measurement.hpp"
#include "predictors/kernels/shapes.hpp"

namespace ftax::fit {

/// One measured pointwise operator, softmax or layer norm: a call timed on an idle device.
struct MemoryRow {
    const DeviceSpec* device = nullptr;
    std::string machine;  ///< whose host dispatched it: the device's slug, or another one when it was moved
    std::size_t op = 0;   ///< place in operator_names
    kernels::MemoryShape shape;
    double latency_s = 0;
    bool idle_clock = false;  ///< the campaign had not yet raised the GPU's clock: scored, never fitted
};

/// Whether a row of neusight_ops.csv was measured before the card left its idle clock. `order` counts the rows of
/// a campaign. Source: kernels bound by the SMs (powf, layer norm of short rows) take 1.5 to 2.5 times as long in these
/// rows as later ones of the same shape, the ratio of base and boost clock; kernels bound by memory do not.
[[nodiscard]] bool ran_at_idle_clock(std::string_view device_slug, std::string_view split, std::int64_t order);

/// Builds a row from an operator measurement; nullopt for an operator of another class.
[[nodiscard]] std::optional<MemoryRow> memory_row(const OperatorMeasurement& measured, const DeviceSpec& device,
                                                  std::string_view split, std::int64_t order);

struct MemoryFitOptions {
    FitOptions fit{.starts = 2, .iterations = 40, .row_log_stddev = 0.05, .seed = 1};
    std::size_t rows_per_group = 250;  ///< per device and operator, spread evenly; errors are taken over all rows
    bool folds = true;                 ///< also leave out one device at a time
};

/// Fits the memory-bound kernels, the sustained bandwidth of every device and the host part of every operator.
/// Folds are reported per class (pointwise, softmax, ln): in the fit, and with one device left out.
[[nodiscard]] FitReport fit_memory(std::span<const MemoryRow> rows, const MemoryFitOptions& options = {});

/// Returns the mean of the shortest interval that holds more than half of the values: where most hosts agree.
/// Source: the shorth, Andrews et al., "Robust Estimates of Location", Princeton 1972. Throws nothing; needs one value.
[[nodiscard]] double shorth(std::vector<double> values);

}  // namespace ftax::fit
