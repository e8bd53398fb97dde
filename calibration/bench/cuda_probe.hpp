#pragma once

#include <string>

namespace ftax::bench {

/// Where ftax_cuda_probe lies: beside the program. Empty when it was not built (FTAX_BUILD_CUDA).
[[nodiscard]] std::string find_cuda_probe();

/// Runs the probe: what the CUDA runtime itself costs on this machine, as CSV (calibration/bench/cuda/probe.cu).
/// Throws Error{refused} when it fails; it says why on standard error.
[[nodiscard]] std::string run_cuda_probe(const std::string& program);

}  // namespace ftax::bench
