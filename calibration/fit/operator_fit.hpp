#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calibration/fit/log_fit.hpp"
#include "calibration/fit/scoped_fit.hpp"
#include "ftax/device.hpp"
#include "ftax/measurement.hpp"
#include "predictors/kernels/conv.hpp"
#include "predictors/kernels/gemm_heuristic.hpp"
#include "predictors/kernels/shapes.hpp"
#include "src/io/measurement_file.hpp"
#include "src/io/profile_file.hpp"

/// Fits everything that an operator file says about devices.
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

/// One measured operator.
struct DispatchRow {
    const DeviceSpec* device = nullptr;
    const OperatorMeasurement* measured = nullptr;
    double order = 0;            ///< rows of the campaign before it
    bool at_idle_clock = false;  ///< shows the host only where the kernel stays hidden at half the clock
};

/// Estimates the host time of operators (latency = host + kernel: each call is timed alone) with kernel models from
/// `kernels`: the median over the campaign of latency − kernel, for rows in which the host counts. Each device gets its
/// own dispatch times, a device without rows the shorth of the others; call_profile prefers those of earlier fits.
/// `hosts` must hold the machines' scales (fit_memory).
[[nodiscard]] FitReport fit_dispatch(std::span<const DispatchRow> rows, const DeviceProfileFile& kernels,
                                     const HostProfileFile& hosts);

/// Under which conditions a row of neusight_ops.csv was measured.
enum class Conditions {
    usual,
    without_lt,       ///< layers of a P4 without a bias, whose kernels are others; fitted as well
    second_campaign,  ///< `split` test: other clocks
    campaign_start,   ///< before the card had left its idle clock
};
[[nodiscard]] std::string_view name_of(Conditions conditions);

/// Rows of an operator file for each of the fits; they point into it and to `devices`.
struct OperatorRows {
    MeasurementFile<OperatorMeasurement> file;
    std::map<std::string, DeviceSpec> devices;  ///< by GPU as the file spells it
    std::vector<Conditions> conditions;         ///< of every row of the file
    std::vector<MemoryRow> memory;
    std::vector<GemmRow> gemm;
    std::vector<ConvRow> conv;
    std::vector<DispatchRow> dispatch;

    explicit OperatorRows(MeasurementFile<OperatorMeasurement> measured) : file(std::move(measured)) {}
    OperatorRows(OperatorRows&&) = default;
    OperatorRows(const OperatorRows&) = delete;
};

/// Sorts the rows of a file; `left_out` holds slugs of devices whose rows are not used.
/// Throws Error{usage} for an unknown GPU.
[[nodiscard]] OperatorRows operator_rows(CsvTable table, const std::vector<std::string>& left_out = {});

/// Origin of the rows and extent of the fit.
struct OperatorFitOptions {
    std::string profile_version = "1";        ///< to write into the device profile
    std::string framework = "pytorch-eager";  ///< whose calls the rows timed
    std::string framework_version = "unknown";
    bool folds = false;  ///< reports also hold errors with one device left out
};

struct OperatorFit {
    std::vector<FitReport> reports;
    DeviceProfileFile profile;
    HostProfileFile hosts;  ///< machines that the devices were measured in
};

/// Fits operators in the order in which they determine the parameters: memory-bound ones bandwidth and host, matrix
/// products the clock, convolutions neither.
[[nodiscard]] OperatorFit fit_operators(const OperatorRows& rows, const OperatorFitOptions& options = {});

}  // namespace ftax::fit
