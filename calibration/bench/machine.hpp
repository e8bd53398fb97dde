#pragma once

#include <string>

#include "calibration/bench/bench_device.hpp"
#include "ftax/device.hpp"

namespace ftax::bench {

/// Asks the system what this machine's CPU is; `threads` of it are used.
[[nodiscard]] DeviceSpec query_cpu(int threads);

/// Processes that ran or waited for a CPU over the last minute, on average.
[[nodiscard]] double load_average();
[[nodiscard]] std::string cpu_name();

/// Prints the datasheet that device_profile() reads back (data/devices/README.md).
[[nodiscard]] std::string datasheet_text(const DeviceSpec& cpu);

/// The machine a measurement ran on, and when: CPU, cores, governor, kernel, load, the program's command line.
[[nodiscard]] Environment machine_environment(const std::string& command_line);

/// Writes the environment next to the rows: {"schema_version": 1, "environment": {…}}.
void write_environment(const std::string& path, const Environment& environment);

/// Path of a file that is built or installed with the program: ftax_cuda_probe (FTAX_BUILD_CUDA), ftax_libtorch.so
/// (FTAX_BUILD_TORCH). Empty if it was not.
[[nodiscard]] std::string find_beside_program(const char* file);

/// Runs the probe: what the CUDA runtime itself costs on this machine, as CSV (calibration/bench/cuda/probe.cu).
/// Throws Error{refused} when it fails; it says why on standard error.
[[nodiscard]] std::string run_cuda_probe(const std::string& program);

}  // namespace ftax::bench
