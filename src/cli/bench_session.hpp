#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibration/bench/bench_device.hpp"
#include "calibration/bench/measurement_loop.hpp"
#include "calibration/bench/operator_cases.hpp"
#include "calibration/bench/result_file.hpp"
#include "ftax/device.hpp"
#include "src/cli/options.hpp"

namespace ftax::cli {

/// Where and how to measure; shared by `measure` and `calibrate`.
struct BenchArguments {
    std::string device = "cpu";
    std::string framework = "libtorch";
    std::string precision = "fp32";
    std::string python;                    ///< empty: FTAX_PYTHON, then python3
    std::string output = "ftax-measured";  ///< folder
    int threads = 1;
    bool quick = false;
    bool resume = false;
    /// Repetitions of dispatch: what it costs differs between processes more than within one.
    int dispatch_processes = 9;
    double budget_s = 0;            ///< most time to measure; 0: until all is measured
    std::optional<int> repetition;  ///< only this one of the repetitions of dispatch
};

/// The command line that measures one repetition of dispatch in a process of its own, without the program.
[[nodiscard]] std::vector<std::string> dispatch_command(const BenchArguments& arguments, int repetition);
void add_bench_options(Verb verb, BenchArguments& arguments);

/// A folder of result files that one device fills under one framework. Ctrl-C ends measuring between two samples.
class BenchSession {
  public:
    /// Creates the folder. Throws what opening the device throws.
    explicit BenchSession(const BenchArguments& arguments);
    /// On a device that is open already.
    BenchSession(const BenchArguments& arguments, std::unique_ptr<bench::BenchDevice> device);

    /// The device under measurement as datasheet; a GPU is recognised by its name.
    [[nodiscard]] const DeviceSpec& spec() const { return spec_; }
    [[nodiscard]] std::string path(const std::string& name) const { return arguments_.output + "/" + name; }

    /// Measures operators into FOLDER/operators.csv (dispatch: FOLDER/dispatch.csv, each of the repetitions in a
    /// process of its own) or whole networks into FOLDER/models.csv, each in all of the modes. Returns false when it
    /// was interrupted.
    [[nodiscard]] bool measure_operators(std::span<const bench::OperatorCase> cases, bench::Mode mode);
    [[nodiscard]] bool measure_models(const std::vector<std::string>& models, const std::vector<std::int64_t>& batches,
                                      const ShapeBindings& dims, std::span<const bench::Mode> modes,
                                      const std::string& file = "models.csv");

    /// Measures what the CUDA runtime costs without a framework into FOLDER/runtime.csv: launches, graphs, gaps,
    /// copies. Warns where that cannot be done.
    void measure_runtime();

  private:
    [[nodiscard]] bool measure_dispatch_in_processes();
    [[nodiscard]] bool is_over() const;
    [[nodiscard]] bool run(std::span<const bench::BenchCase> cases, const std::vector<std::vector<std::string>>& labels,
                           const std::vector<std::string>& columns, const std::string& file,
                           bench::LoopOptions options);

    BenchArguments arguments_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    std::unique_ptr<bench::BenchDevice> device_;
    DeviceSpec spec_;
};

}  // namespace ftax::cli
