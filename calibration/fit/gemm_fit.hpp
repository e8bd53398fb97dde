#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/fit/fit_options.hpp"
#include "calibration/fit/fit_report.hpp"
#include "ftax/device.hpp"
#include "ftax/measurement.hpp"
#include "predictors/kernels/gemm_heuristic.hpp"
#include "predictors/kernels/shapes.hpp"

namespace ftax::fit {

/// One measured matrix product: what a stream sees of one call on an idle device, host time first, then the kernel.
struct GemmRow {
    const DeviceSpec* device = nullptr;
    kernels::GemmShape shape{};
    MathPath path = MathPath::fp32;
    double latency_s = 0;
    bool scored_only = false;  ///< measured under other conditions than the rest of its campaign: never fitted
    std::optional<kernels::gemm::Choice> ran{};  ///< its kernel, where the row names one that we know
};

/// Whether a row of neusight_ops.csv was measured under other conditions than most: the first batched products of
/// a campaign, before the card left its idle clock, or the second campaign (`split` test), at clocks 6 to 14 % lower.
/// Source: residuals along `order`.
[[nodiscard]] bool is_outlier_row(const OperatorMeasurement& measured, std::string_view device_slug,
                                  std::string_view split, std::int64_t order);

/// Builds a row from a linear or bmm measurement; nullopt for another operator.
[[nodiscard]] std::optional<GemmRow> gemm_row(const OperatorMeasurement& measured, const DeviceSpec& device,
                                              std::string_view split, std::int64_t order, std::string_view grid);

struct GemmFitOptions {
    FitOptions fit{.starts = 2, .iterations = 40, .row_log_stddev = 0.1, .seed = 1};
    std::size_t rows_per_group = 1200;  ///< per device and operator, spread evenly; errors are taken over all rows
    int rounds = 3;                     ///< fits, each with priors centred on what the last one found
    bool folds = true;                  ///< also hold out a quarter of the rows, and one device at a time
    /// Host scale (operator.host_scale) by device, from the fit of the memory-bound operators; 1 where absent.
    std::map<std::string, double> host_scales{};
    std::vector<ScopedParameter> held{};  ///< device parameters that other rows determine better: kept as they are
};

/// Fits the matrix products: shared and architecture ratios, clock and bandwidth of every device, host time per
/// operator. Folds are reported for linear and bmm apart.
[[nodiscard]] FitReport fit_gemm(std::span<const GemmRow> rows, const GemmFitOptions& options = {});

}  // namespace ftax::fit
