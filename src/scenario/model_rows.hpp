#pragma once

#include <string>
#include <vector>

#include "calibration/fit/model_fit.hpp"
#include "calibration/rows/measurement_file.hpp"

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

}  // namespace ftax::scenario
