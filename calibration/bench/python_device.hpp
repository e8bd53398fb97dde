#pragma once

#include <sys/types.h>

#include <nlohmann/json_fwd.hpp>
#include <optional>
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
/// from the program. Whatever kills the process costs one case: restart() starts another.
class PythonDevice : public BenchDevice {
  public:
    /// Throws Error{usage} when this Python or its packages cannot be used, Error{refused} when torch sees no GPU.
    explicit PythonDevice(PythonOptions options);
    ~PythonDevice() override;

    [[nodiscard]] Environment environment() const override { return environment_; }
    [[nodiscard]] std::optional<Failure> prepare(const BenchCase& bench_case) override;
    [[nodiscard]] std::string source() const override { return source_; }
    [[nodiscard]] std::variant<Sample, Failure> sample() override;
    bool restart() override;

  private:
    void start();
    void stop();
    [[nodiscard]] nlohmann::json ask(const nlohmann::json& request);

    PythonOptions options_;
    std::string folder_;  ///< of the scripts, removed at the end
    Environment environment_;
    pid_t process_ = -1;
    int requests_ = -1, answers_ = -1;
    std::string unread_;
    std::string source_;  ///< of the prepared network
    int calls_ = 1;
};

}  // namespace ftax::bench
