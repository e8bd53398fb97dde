#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "calibration/fit/fit_options.hpp"
#include "calibration/fit/fit_report.hpp"
#include "ftax/device.hpp"
#include "ftax/measurement.hpp"
#include "predictors/kernels/conv.hpp"

namespace ftax::fit {

/// One measured convolution. The time is what a stream sees of one call on an idle device: host time, then kernels.
struct ConvRow {
    const DeviceSpec* device = nullptr;  ///< must outlive the row
    kernels::ConvShape shape{};
    MathPath path = MathPath::fp32;
    double latency_s = 0;
    double order = 0;  ///< shapes run before in this campaign: the host part grows with it
    std::optional<kernels::ConvAlgorithm> algorithm{};  ///< what ran, when known; used to fit, never to predict
};

/// Reads the algorithm from the names of the kernels that ran; nullopt for those the model does not have (FFT).
[[nodiscard]] std::optional<kernels::ConvAlgorithm> conv_algorithm_from_kernel(std::string_view kernel_names);

/// Builds a row from an operator measurement with the shape of NeuSight's conv rows (b, cin, cout, kernel, hw, stride,
/// pad). Throws Error{profile} for a shape that lacks one of them or is no convolution.
[[nodiscard]] ConvRow conv_row(const OperatorMeasurement& measured, const DeviceSpec& device, double order);

struct ConvFitOptions {
    FitOptions fit;
    std::size_t rows_per_device = 1500;   ///< spread evenly over the campaign; errors are taken over all rows
    bool folds = true;                    ///< also leave out one device at a time
    std::vector<ScopedParameter> held{};  ///< device parameters that other rows determine better: kept as they are
    /// Host scale (operator.host_scale) by device, from the fit of the memory-bound operators; 1 where absent.
    std::map<std::string, double> host_scales{};
    double power_control_time_s =
        0;  ///< see kernels::within_power (operator.power_control_time_s); from the fit of the matrix products
};

/// Gives devices that only convolutions were measured on the clock and bandwidth that earlier fits found for others of
/// their architecture, relative to the datasheet: convolutions cannot tell a clock from their own efficiency.
[[nodiscard]] FitReport siblings_report(std::span<const ConvRow> rows, std::span<const FitReport> earlier);

/// Fits the convolution model: shared ratios, clock and bandwidth of every device, host time of every campaign.
/// The kernels are fitted with the algorithm that ran; errors are those of the model's own choice.
[[nodiscard]] FitReport fit_conv(std::span<const ConvRow> rows, const ConvFitOptions& options = {});

}  // namespace ftax::fit
