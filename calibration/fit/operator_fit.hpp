#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/fit/log_fit.hpp"
#include "calibration/fit/scoped_fit.hpp"
#include "calibration/rows/measurement_file.hpp"
#include "ftax/device.hpp"
#include "ftax/measurement.hpp"
#include "predictors/kernels/conv.hpp"
#include "predictors/kernels/gemm_heuristic.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/profiles/profile_file.hpp"

/// Fits everything that operator files say about devices. Each fit takes the rows of its class from all that it is
/// given. Ratios are shared by all generations or belong to one; clocks and bandwidths of kernels that were timed alone
/// are those of the datasheet or of a profile.
namespace ftax::fit {

/// The fit that a row belongs to. The first three are calls timed on an idle device, the host's time first and then the
/// kernel; the others are kernels alone, a node of a CUDA graph, start to start.
enum class RowClass { memory, gemm, conv, tensor_gemm, quantized, mixture, attention, row_wise };

/// Under which conditions a row of neusight_ops.csv was measured.
enum class Conditions {
    usual,
    without_lt,       ///< layers of a P4 without a bias, whose kernels are others; fitted as well
    second_campaign,  ///< `split` test: clocks 6 to 14 % lower
    campaign_start,   ///< before the card had left its idle clock
};
[[nodiscard]] std::string_view name_of(Conditions conditions);

/// Conditions of a row of a campaign that measured `order` rows of the class before it.
/// Source: residuals along `order` (docs/kernel-models/evidence.md).
[[nodiscard]] Conditions conditions_of(std::string_view op, std::string_view device_slug, std::string_view split,
                                       std::int64_t order);

struct OperatorRow {
    const DeviceSpec* device = nullptr;             ///< must outlive the row
    const OperatorMeasurement* measured = nullptr;  ///< must outlive the row
    RowClass of = RowClass::memory;
    std::string op{};  ///< as the file names it
    KernelShape shape{};
    double latency_s = 0;
    double order = 0;  ///< rows of the campaign before it: a convolution's host time grows with it
    Conditions conditions = Conditions::usual;
    std::optional<kernels::gemm::Choice> ran{};         ///< kernel of a product, where the row names one that we know
    std::optional<kernels::ConvAlgorithm> algorithm{};  ///< what ran, where known; used to fit, never to predict
};

/// Reads the algorithm from the names of the kernels that ran; nullopt for those the model does not have (FFT).
[[nodiscard]] std::optional<kernels::ConvAlgorithm> conv_algorithm_from_kernel(std::string_view kernel_names);

/// Builds a row; nullopt for operators that no fit models, precisions that the device does not run, and attention with
/// heads over 256 elements, which kernels of other libraries take. `grid` is the kernel's, where the file has it.
/// Throws Error{profile} for a convolution without one of its dimensions (b, cin, cout, kernel, hw, stride, pad).
[[nodiscard]] std::optional<OperatorRow> operator_row(const OperatorMeasurement& measured, const DeviceSpec& device,
                                                      std::string_view split = {}, std::string_view grid = {});

/// Rows of operator files with the data that they refer to.
class OperatorRows {
  public:
    /// Adds the rows of a file; `left_out` holds slugs of devices not used. Throws Error{usage} for an unknown GPU.
    void add(CsvTable table, const std::vector<std::string>& left_out = {});

    std::vector<OperatorRow> rows;

  private:
    std::list<MeasurementFile<OperatorMeasurement>> files_;
};

struct ClassFitOptions {
    std::optional<FitOptions> fit{};   ///< nullopt: as usual for the class
    std::size_t rows_per_stratum = 0;  ///< spread evenly; errors are taken over all rows; 0: as usual for the class
    bool folds = true;                 ///< also leave out a part of the shapes, and one device at a time
};

/// Fits the memory-bound kernels, the sustained bandwidth of every device and the host part of every operator.
/// Folds are reported per class (pointwise, softmax, ln): in the fit, and with one device left out.
[[nodiscard]] FitReport fit_memory(std::span<const OperatorRow> rows, const ClassFitOptions& options = {});

/// Fits the matrix products: shared and architecture ratios, clock and bandwidth of every device, host time per
/// operator. Folds are reported for linear and bmm apart. What earlier fits say of devices and hosts is kept.
[[nodiscard]] FitReport fit_gemm(std::span<const OperatorRow> rows, std::span<const FitReport> earlier = {},
                                 const ClassFitOptions& options = {});

/// Fits the convolution model: shared ratios, clock and bandwidth of every device, host time of every campaign.
/// The kernels are fitted with the algorithm that ran; errors are those of the model's own choice.
[[nodiscard]] FitReport fit_conv(std::span<const OperatorRow> rows, std::span<const FitReport> earlier = {},
                                 const ClassFitOptions& options = {});

/// Gives devices that only convolutions were measured on the clock and bandwidth that earlier fits found for others of
/// their architecture, relative to the datasheet: convolutions cannot tell a clock from their own efficiency.
[[nodiscard]] FitReport siblings_report(std::span<const OperatorRow> rows, std::span<const FitReport> earlier);

/// Estimates the host time of operators (latency = host + kernel: each call is timed alone) with kernel models from
/// `kernels`: the median over the campaign of latency − kernel, for rows in which the host counts; at the idle clock,
/// where the kernel stays hidden at half the clock. Each device gets its own dispatch times, a device without rows the
/// shorth of the others; call_profile prefers those of earlier fits. `hosts` holds the machines' scales (fit_memory).
[[nodiscard]] FitReport fit_dispatch(std::span<const OperatorRow> rows, const DeviceProfileFile& kernels,
                                     const HostProfileFile& hosts);

/// Returns the mean of the shortest interval that holds more than half of the values: where most hosts agree.
/// Source: the shorth, Andrews et al., "Robust Estimates of Location", Princeton 1972. Throws nothing; needs one value.
[[nodiscard]] double shorth(std::vector<double> values);

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

/// Fits calls in the order in which they determine the parameters: memory-bound ones bandwidth and host, matrix
/// products the clock, convolutions neither.
[[nodiscard]] OperatorFit fit_operators(std::span<const OperatorRow> rows, const OperatorFitOptions& options = {});

/// Fits fp16 products on tensor cores. Folds are named after the left-out group; in-sample errors are not reported.
[[nodiscard]] FitReport fit_tensor_gemm(std::span<const OperatorRow> rows, const ClassFitOptions& options = {});

/// Fits quantised products, each family of kernels on its own ("fp8", "fp8_block", "nvfp4"), and mixtures of experts
/// ("moe") on top of a profile in which products of f16 are fitted.
[[nodiscard]] std::vector<FitReport> fit_on_tensor_gemm(std::span<const OperatorRow> rows,
                                                        const DeviceProfileFile& profile,
                                                        const ClassFitOptions& options = {});

/// Fits the parameters of attention and of row-wise kernels, which all generations share. What both take from matrix
/// products (bandwidths, L2, rates, energy) is that of `profile`; `profile_without` gives the one that knows nothing of
/// a device, by slug, for the fold that leaves it out.
[[nodiscard]] std::vector<FitReport> fit_layer_kernels(
    std::span<const OperatorRow> rows, const DeviceProfileFile& profile, const ClassFitOptions& options = {},
    const std::function<DeviceProfileFile(const std::string&)>& profile_without = {});

/// Declares an unknown of calls as OperatorHostParameters does.
[[nodiscard]] Unknown declared_call(std::string_view name);

struct ClassFit {
    ScopedFit fit;
    std::vector<const OperatorRow*> rows;  ///< rows of the class, in the order of `fit.rows`

    /// Selects the `wanted` rows of a class. `fit` provides the defaults.
    ClassFit(ScopedFit usual, std::span<const OperatorRow> all, RowClass of, const ClassFitOptions& options,
             const std::function<bool(const OperatorRow&)>& wanted = {});
};

/// Turn fitted parameters into profiles: those of the kernels into that of the devices, those of the calls into that of
/// the hosts that the devices were measured in. Where two reports hold the same parameter the earlier one counts: pass
/// first the fit whose rows determine it best.
[[nodiscard]] DeviceProfileFile operator_profile(std::span<const FitReport> reports, std::string version);
[[nodiscard]] HostProfileFile call_profile(std::span<const FitReport> reports, std::string framework,
                                           std::string version);

/// Records devices with their own parameters among those that the profile was fitted on.
void add_fitted_devices(DeviceProfileFile& profile);

/// Writes fitted parameters into a profile, in the place of those of the same name and scope.
void replace_parameters(DeviceProfileFile& profile, std::span<const ScopedParameter> fitted);

/// Records that kernels of a class were measured on a device, which may have no other data in the profile.
void add_fitted_kernels(DeviceProfileFile& profile, const std::string& slug, Factor kernels);

}  // namespace ftax::fit
