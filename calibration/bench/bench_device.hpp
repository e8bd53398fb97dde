#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ftax/device.hpp"
#include "ftax/graph.hpp"
#include "ftax/types.hpp"

namespace ftax::bench {

/// What a sample times. Rows of different modes are never compared or averaged.
enum class Mode : std::uint8_t {
    device_hot,     ///< calls back to back, device time of the whole batch
    host_dispatch,  ///< host time of asynchronous calls below the queue depth, synchronised outside
    end_to_end,     ///< one call with its synchronisation, as a user waits for it
};
[[nodiscard]] constexpr std::string_view name_of(Mode mode) noexcept {
    constexpr std::string_view names[] = {"device_hot", "host_dispatch", "end_to_end"};
    return names[static_cast<std::size_t>(mode)];
}

struct BenchCase {
    std::string id;                   ///< unique among the cases of a result file; stays the same from run to run
    std::vector<std::string> labels;  ///< cells of BenchJob::columns
    std::string model;                ///< zoo name of a whole network; empty for an operator
    std::shared_ptr<const Graph> graph;
    ShapeBindings bindings;
    Mode mode = Mode::device_hot;
    int warm_ups = 2;     ///< calls before the first sample, beside those that size a sample
    int weight_sets = 1;  ///< weights of consecutive calls, so that they do not stay in a cache
};

/// How long a case is sampled (calibration/bench/python/measuring.py).
struct StoppingLimits {
    int min_samples = 10;
    double min_total_s = 0.5, max_total_s = 15;
    double relative_stddev = 0.005;  ///< of samples that agree
    double relative_interval = 0;    ///< half the 95 % interval of a mean that is known well enough; 0: not asked for
};

struct BenchJob {
    std::string path;
    std::vector<std::string> columns;  ///< those of the labels; what was measured follows
    std::vector<BenchCase> cases;
    StoppingLimits limits;
    int repetitions = 1;  ///< of each case, each in an order and in processes of its own
    double budget_s = 0;  ///< time limit; 0: none
};

/// Source of networks that are run from ftax's own graphs, operator by operator: they make no module calls.
constexpr std::string_view graph_source = "ftax graph";

/// What was measured with what: key and value, in the order they are written.
using Environment = std::vector<std::pair<std::string, std::string>>;

struct BenchEvents {
    std::function<void(std::size_t done, std::size_t total)> progress;
    std::function<void(const std::string&)> warn;
    std::function<bool()> interrupted;
};

/// Measures under one framework on one device: a Python process; a fake in the tests.
class BenchDevice {
  public:
    virtual ~BenchDevice() = default;
    [[nodiscard]] virtual Environment environment() const = 0;
    /// What impairs measurements on this device (MIG, clocks that cannot be read), with advice.
    [[nodiscard]] virtual std::vector<std::string> warnings() const { return {}; }
    /// Appends a row for each case and repetition that the job's file lacks; one with a problem is measured again by
    /// the next job. Returns false if it was stopped before all was measured; complete rows are kept.
    [[nodiscard]] virtual bool measure(const BenchJob& job, const BenchEvents& events) = 0;
};

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
/// Throws Error{usage} if this Python, its packages or LibTorch cannot be used, Error{refused} without a GPU.
[[nodiscard]] std::unique_ptr<BenchDevice> open_python(PythonOptions options);

/// Asks the system what this machine's CPU is; `threads` of it are used.
[[nodiscard]] DeviceSpec query_cpu(int threads);

/// Processes that ran or waited for a CPU over the last minute, on average.
[[nodiscard]] double load_average();
[[nodiscard]] std::string cpu_name();

/// Prints the datasheet that device_profile() reads back (data/devices/README.md).
[[nodiscard]] std::string datasheet_text(const DeviceSpec& cpu);

/// What a CPU's name does not say of the host: its stepping and clock, the hypervisor above it, how much of it this
/// process may use, and probe_host(). Source: proc(5); the kernel's documentation of cgroup-v2 and PSI.
[[nodiscard]] Environment host_environment(double probe_seconds);

/// The machine a measurement ran on, and when: CPU, cores, governor, kernel, load, the program's command line, host.
[[nodiscard]] Environment machine_environment(double probe_seconds = 0.2);

/// Times what a framework's dispatcher does, without one: 160 operators of 640 distinct functions in random order,
/// since cold code takes half of a network's host time. Samples of some milliseconds; CPU and wall time of an operator.
[[nodiscard]] Environment probe_host(double seconds);

/// Prints the file next to the rows, also a --host-file: {"schema_version": 1, "environment": {…}}.
[[nodiscard]] std::string environment_text(const Environment& environment);

/// Path of a file that is built or installed with the program: ftax_cuda_probe (FTAX_BUILD_CUDA), ftax_libtorch.so
/// (FTAX_BUILD_TORCH). Empty if it was not.
[[nodiscard]] std::string find_beside_program(const char* file);

/// Runs the probe: what the CUDA runtime itself costs on this machine, as CSV (calibration/bench/cuda/probe.cu).
/// Throws Error{refused} when it fails; it says why on standard error.
[[nodiscard]] std::string run_cuda_probe(const std::string& program);

}  // namespace ftax::bench
