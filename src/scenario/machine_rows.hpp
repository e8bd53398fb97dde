#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "calibration/fit/machine_fit.hpp"
#include "calibration/fit/model_fit.hpp"
#include "calibration/rows/measurement_file.hpp"
#include "graphs/files/csv.hpp"
#include "src/scenario/usable_rows.hpp"

/// Rows prepared for fitting: of whole models, and those that `ftax measure` wrote on one machine with a GPU.
namespace ftax::scenario {

struct ModelRowSelection {
    std::string models_folder;  ///< where models are files; other names are zoo models
    std::vector<std::string> frameworks{"pytorch-eager"};
    std::vector<std::string> left_out_models;
    std::vector<std::string> left_out_devices;  ///< slugs
    std::vector<std::string> left_out_runs;     ///< GPU:RUN
};

/// Lists the points of whole-model latency curves that the device decides, with the kernels they launch; the median
/// stands for replicates. Unknown models are reported on stderr.
[[nodiscard]] std::vector<fit::ModelRow> model_rows(const MeasurementFile<Measurement>& file,
                                                    const ModelRowSelection& selection);

struct MachineRows {
    DeviceSpec device;
    std::vector<fit::ModelRow> device_rows;                      ///< mode device_hot: operators, networks
    std::map<std::string, std::vector<fit::HostRow>> host_rows;  ///< mode host_dispatch, by framework
    fit::RuntimeQuantities runtime;
};

/// Returns true if rows state how they were timed, like those of `ftax measure` (column `mode`).
[[nodiscard]] bool holds_modes(const CsvTable& table);

/// Returns true for rows of ftax_cuda_probe (runtime.csv, probe.csv).
[[nodiscard]] bool holds_runtime(const CsvTable& table);

/// Largest batch for host times of networks: beyond, the launch queue may be full and the host waits for the device.
constexpr std::int64_t largest_host_batch = 8;

/// Collects the rows of one machine. Device times include the gaps between kernels, which ModelRow stores separately
/// (the runtime's if measured, else the framework's). Networks run from ftax's own graphs have no module calls.
/// Repetitions of a case become one row, their median; of host times, of the undisturbed() ones. Skips rows of other
/// modes, host times of networks that wait for the device (column `waits`), and networks in `left_out_models`; warns of
/// unusable and disturbed rows. Throws Error{profile} for rows of several GPUs, Error{usage} without datasheet.
[[nodiscard]] MachineRows machine_rows(std::vector<CsvTable> tables, const std::set<std::string>& left_out_models,
                                       const Warn& warn);

}  // namespace ftax::scenario
