#pragma once

#include <string>
#include <vector>

#include "calibration/fit/conv_fit.hpp"
#include "calibration/fit/fit_report.hpp"
#include "calibration/fit/gemm_fit.hpp"
#include "calibration/fit/memory_fit.hpp"
#include "src/io/measurement_file.hpp"
#include "src/io/profile_file.hpp"

namespace ftax::fit {

struct OperatorFitOptions {
    MemoryFitOptions memory;
    GemmFitOptions gemm;
    ConvFitOptions conv;
};

struct OperatorFit {
    DeviceProfileFile profile;
    std::vector<FitReport> reports;  ///< memory, gemm, conv, dispatch
};

/// Fits all kernel models to an operator file, each device scalar where its rows show it best: bandwidth and host scale
/// from the memory-bound operators, the clock from matrix products, both held for the convolutions; last what the host
/// adds to products and convolutions. Columns `order`, `split` and `kernel` are used where the file has them.
/// Throws Error{usage} for an unknown device, Error{profile} for a row whose shape does not fit its operator.
[[nodiscard]] OperatorFit fit_operators(const MeasurementFile<OperatorMeasurement>& file,
                                        const OperatorFitOptions& options, std::string version);

}  // namespace ftax::fit
