#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ftax/graph.hpp"
#include "ftax/types.hpp"

namespace ftax::bench {

/// What a sample times. Rows of different modes are never compared or averaged.
enum class Mode : std::uint8_t {
    device_cold,    ///< stream blocked until everything is queued, caches flushed before each call
    device_hot,     ///< calls back to back, device time of the whole batch
    host_dispatch,  ///< host time of asynchronous calls below the queue depth, synchronised outside
    end_to_end,     ///< one call with its synchronisation, as a user waits for it
};
[[nodiscard]] std::string_view name_of(Mode mode) noexcept;

/// One thing to measure.
struct BenchCase {
    std::string id;     ///< unique among the cases of a result file; stays the same from run to run
    std::string model;  ///< zoo name of a whole network; empty for an operator
    std::shared_ptr<const Graph> graph;
    ShapeBindings bindings;
    Mode mode = Mode::device_hot;
    int warm_ups = 3;
    int calls = 1;        ///< per sample
    int weight_sets = 1;  ///< weights of consecutive calls, so that they do not stay in a cache
};

struct Sample {
    double seconds = 0;                   ///< time of one call
    std::optional<double> clock_ratio{};  ///< clock over its default; nullopt where it cannot be read
    std::string slowdown{};               ///< why the device runs below its clock, as Nvml::slowdown() says
    bool disturbed = false;               ///< another process used the device meanwhile
};

enum class FailureKind : std::uint8_t {
    out_of_memory,
    unsupported,  ///< this framework or device cannot run the case
    failed,       ///< it tried and threw
    device_lost,  ///< nothing runs any more: the worker died, the GPU fell off the bus
};
[[nodiscard]] std::string_view name_of(FailureKind kind) noexcept;

/// Why a case has no time; a foreseen outcome, recorded in its row.
struct Failure {
    FailureKind kind = FailureKind::failed;
    std::string message;
};

/// Source of networks that are run from ftax's own graphs, operator by operator: they make no module calls.
constexpr std::string_view graph_source = "ftax graph";

/// What was measured with what: key and value, in the order they are written.
using Environment = std::vector<std::pair<std::string, std::string>>;

/// Runs cases under one framework on one device. Implementations: LibTorch in this process, a Python worker, CUDA; a
/// fake in the tests.
class BenchDevice {
  public:
    virtual ~BenchDevice() = default;
    [[nodiscard]] virtual Environment environment() const = 0;
    /// What about this device makes measurements less than they could be (MIG, counters for root only), with advice.
    [[nodiscard]] virtual std::vector<std::string> warnings() const { return {}; }
    /// Readies a case, warm-ups included; the case before it is freed first.
    [[nodiscard]] virtual std::optional<Failure> prepare(const BenchCase& bench_case) = 0;
    /// Where the prepared network comes from: a library and its version, or graph_source. Empty where it is not known.
    [[nodiscard]] virtual std::string source() const { return {}; }
    /// Times the prepared case once.
    [[nodiscard]] virtual std::variant<Sample, Failure> sample() = 0;
    /// Brings a lost device back. Returns false where that cannot be done.
    virtual bool restart() { return false; }
};

}  // namespace ftax::bench
