#pragma once

#include <memory>
#include <string>

#include "calibration/bench/bench_device.hpp"

namespace ftax::bench {

/// Opens the LibTorch backend (calibration/bench/libtorch), located next to the program as ftax_libtorch.so.
/// Throws Error{usage} when it was not built, Error{refused} when it sees no GPU.
[[nodiscard]] std::unique_ptr<BenchDevice> open_libtorch(const std::string& device, Precision precision, int threads);

}  // namespace ftax::bench

/// What the library exports.
extern "C" __attribute__((visibility("default"))) ftax::bench::BenchDevice* ftax_open_libtorch(
    const char* device, ftax::Precision precision, int threads);
