#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "calibration/bench/bench_device.hpp"
#include "calibration/bench/operator_cases.hpp"
#include "ftax/device.hpp"
#include "src/cli/verbs.hpp"

namespace ftax::cli {

/// Options of a measurement; shared by `measure` and `calibrate`.
struct BenchArguments {
    std::string device = "cpu";
    std::string framework = "libtorch";
    std::string precision = "fp32";
    std::string python = "python3";
    std::string output = "ftax-measured";  ///< folder
    int threads = 1;
    bool quick = false;
    bool resume = false;
    bool channels_last = false;
    int dispatch_processes = 9;  ///< repetitions of dispatch, whose cost varies more between processes than within one
    double budget_s = 0;         ///< time limit; 0: none
};

void add_bench_options(CLI::App& verb, BenchArguments& arguments);

/// A folder of result files for one device and framework. Ctrl-C stops measuring.
class BenchSession {
  public:
    /// Creates the folder. Throws what opening the device throws.
    explicit BenchSession(const BenchArguments& arguments);
    BenchSession(const BenchArguments& arguments, std::unique_ptr<bench::BenchDevice> device);

    /// Returns the datasheet of the measured device; GPUs are identified by name.
    [[nodiscard]] const DeviceSpec& spec() const { return spec_; }
    [[nodiscard]] std::string path(const std::string& name) const { return arguments_.output + "/" + name; }

    /// Measures operators into FOLDER/operators.csv (dispatch: FOLDER/dispatch.csv, each repetition in a separate
    /// process) or whole networks into FOLDER/models.csv, each in all modes, on a GPU three times. False: interrupted.
    [[nodiscard]] bool measure_operators(std::span<const bench::OperatorCase> cases, bench::Mode mode);
    [[nodiscard]] bool measure_models(const std::vector<std::string>& models, const std::vector<std::int64_t>& batches,
                                      const ShapeBindings& dims, std::span<const bench::Mode> modes,
                                      const std::string& file = "models.csv");

    /// Measures the costs of the CUDA runtime without a framework into FOLDER/runtime.csv: launches, graphs, gaps,
    /// copies. Warns if that is not possible.
    void measure_runtime();

  private:
    [[nodiscard]] bool run(const std::string& file, bench::BenchJob job);

    BenchArguments arguments_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    std::unique_ptr<bench::BenchDevice> device_;
    DeviceSpec spec_;
    std::string version_;  ///< of the framework: "2.11.0+cu130"
};

struct CalibrateArguments {
    BenchArguments bench{.dispatch_processes = 3};  ///< five minutes on a GPU
    double max_mape_percent = 0;                    ///< 0: the validation error is only reported
};

/// Measures operators and their dispatch, fits the machine's profiles, writes them into the session's folder, and
/// validates them on networks not used in the fit. Returns the exit code. Throws Error{usage} for too few rows.
[[nodiscard]] int calibrate(const CalibrateArguments& arguments, BenchSession& session);

}  // namespace ftax::cli
