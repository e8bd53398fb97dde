#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/rows/measurement_file.hpp"
#include "ftax/device.hpp"
#include "ftax/measurement.hpp"
#include "predictors/kernels/conv.hpp"
#include "predictors/kernels/gemm_heuristic.hpp"
#include "predictors/kernels/shapes.hpp"

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
/// Source: residuals along `order`; at the idle clock, kernels bound by the SMs (powf, layer norm of short rows) take
/// 1.5 to 2.5 times as long as later ones of the same shape, the ratio of base and boost clock; kernels bound by memory
/// do not.
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
    /// Adds the rows of a file; `left_out` holds slugs of devices whose rows are not used. Throws Error{usage} for an
    /// unknown GPU.
    void add(CsvTable table, const std::vector<std::string>& left_out = {});

    std::vector<OperatorRow> rows;

  private:
    std::list<MeasurementFile<OperatorMeasurement>> files_;
};

}  // namespace ftax::fit
