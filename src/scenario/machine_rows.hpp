#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "calibration/fit/machine_fit.hpp"
#include "src/io/csv.hpp"
#include "src/scenario/usable_rows.hpp"

/// Rows that `ftax measure` or calibration/campaign.sh wrote on one machine with a GPU, made ready for fitting.
namespace ftax::scenario {

struct MachineRows {
    DeviceSpec device;
    std::vector<fit::DeviceRow> device_rows;                     ///< mode device_hot: operators, networks
    std::map<std::string, std::vector<fit::HostRow>> host_rows;  ///< mode host_dispatch, by framework
    fit::RuntimeQuantities runtime;
};

/// Whether rows say how they were timed, as those of `ftax measure` do (a column `mode`).
[[nodiscard]] bool holds_modes(const CsvTable& table);

/// Whether rows are what ftax_cuda_probe wrote (runtime.csv, probe.csv).
[[nodiscard]] bool holds_runtime(const CsvTable& table);

/// Networks at larger batches say nothing of the host: the launch queue may be full, and then the device's time is what
/// the host waits.
constexpr std::int64_t largest_host_batch = 8;

/// Collects the rows of files of one machine; device times hold the gaps between kernels, which DeviceRow has apart
/// (the runtime's where it was measured, the framework's otherwise). Networks that were run from ftax's own graphs make
/// no module calls, so that these rows count none.
/// Repetitions of a case become one row, their median. Rows of other modes, host times of networks that wait for the
/// device (column `waits`), and networks in `left_out_models` are passed over; what cannot be used is named in a
/// warning. Throws Error{profile} for rows of more than one GPU, Error{usage} for a GPU that has no datasheet.
[[nodiscard]] MachineRows machine_rows(std::vector<CsvTable> tables, const std::set<std::string>& left_out_models,
                                       const Warn& warn);

}  // namespace ftax::scenario
