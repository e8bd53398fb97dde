#pragma once

#include <memory>
#include <string>

#include "calibration/bench/bench_device.hpp"

namespace ftax::bench {

struct PythonOptions {
    std::string python = "python3";
    std::string device = "cpu";  ///< "cpu" or "cuda"
    std::string framework = "pytorch-eager";
    Precision precision = Precision::fp32;
    int threads = 1;
    bool channels_last = false;
};

/// Measures through a Python process, since that is what users run: calibration/bench/python/job.py, written out from
/// the program. LibTorch is a library beside the program, which that process loads without any package.
/// Throws Error{usage} when this Python or its packages cannot be used or LibTorch was not built, Error{refused} when
/// the framework sees no GPU.
[[nodiscard]] std::unique_ptr<BenchDevice> open_python(PythonOptions options);

}  // namespace ftax::bench
