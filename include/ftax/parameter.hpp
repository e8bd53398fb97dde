#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ftax {

/// Scope within which a fitted parameter is shared. Ratios are shared: an uncalibrated card needs its datasheet only.
enum class ParameterScope : std::uint8_t {
    shared,        ///< one value for all GPUs
    architecture,  ///< one value per architecture generation
    device,        ///< one value per GPU model (sustained clock, bandwidth fraction)
};

/// Declaration of a parameter of a kernel or framework model.
struct ParameterSpec {
    double initial = 0;  ///< start of the fit and median of its prior; used if no profile has a value
    double lower = 0;
    double upper = 0;
    double prior_log_stddev = 0.5;  ///< width of the prior on log(value / initial)
    ParameterScope scope = ParameterScope::shared;
    std::string_view source;  ///< meaning, unit, and where `initial` comes from
};

/// A parameter with its value from a fit or datasheet.
struct Parameter {
    std::string name;  ///< "gemm.fill_k", "clock.fp32"
    double value = 0;
    double relative_stddev = 0;  ///< standard deviation of log(value); 0 if unknown
    std::string source;          ///< "fitted: neusight_ops.csv linear, 21 405 rows", "datasheet", "measured", "prior"
};

}  // namespace ftax
