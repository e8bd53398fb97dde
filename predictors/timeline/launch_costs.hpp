#pragma once

#include <cstdint>

#include "ftax/factors.hpp"
#include "ftax/predict.hpp"

namespace ftax {

/// What a launch's prediction is made of, for what calibrates its parts or composes them otherwise: fits, anchors,
/// search spaces.
struct LaunchCosts : OpPrediction {
    std::int32_t module_calls = 0;        ///< nn.Module calls paid before it
    std::int32_t list_parts = 0;          ///< tensors of the list it takes
    std::int32_t step_launches = 0;       ///< kernels of a recurrence's steps
    bool blas_call = false;               ///< its dispatch queries the BLAS library
    Factor factor = Factor::elementwise;  ///< class of the longest of its kernels
    double boost_s = 0;                   ///< device time of its kernels at boost clock
    double power_limited_s = 0;           ///< their energy, as the time it takes at the power limit
    double throttling_s = 0;              ///< by how much it exceeds their time, each kernel by itself
    double sm_active_s = 0;               ///< Σ kernel time × share of the SMs that hold a thread block
    double warps_active_s = 0;            ///< Σ kernel time × share of the warps that the SMs can hold
};

}  // namespace ftax
