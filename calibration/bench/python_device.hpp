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
    double answer_limit_s = 300;  ///< a worker that is silent for longer is lost
};

/// Measures through a Python process, since that is what users run: calibration/bench/python/worker.py, written out
/// from the program. Whatever kills the process costs one case: restart() starts another. Throws Error{usage} when this
/// Python or its packages cannot be used, Error{refused} when torch sees no GPU.
[[nodiscard]] std::unique_ptr<BenchDevice> open_python(PythonOptions options);

}  // namespace ftax::bench
