#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calibration/fit/conv_fit.hpp"
#include "calibration/fit/dispatch_fit.hpp"
#include "calibration/fit/fit_report.hpp"
#include "calibration/fit/gemm_fit.hpp"
#include "calibration/fit/memory_fit.hpp"
#include "src/io/measurement_file.hpp"

/// Fits everything that an operator file says about devices.
namespace ftax::fit {

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
