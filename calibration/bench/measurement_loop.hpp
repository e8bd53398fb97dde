#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/bench/bench_device.hpp"

namespace ftax::bench {

/// Source: the values are those of nvbench's stdrel criterion.
struct StoppingLimits {
    int min_samples = 10;
    double min_total_s = 0.5;
    double relative_stddev = 0.005;
    double max_total_s = 15;
    /// The noise has settled when the relative standard deviation changed by less than this share over the last
    /// `settling_samples` samples: more samples will not lower it.
    double settled_change = 0.05;
    /// Half the width of the mean's 95 % interval, relative to it, at which the samples suffice regardless of their
    /// noise; 0: disabled.
    double relative_interval = 0;
    int settling_samples = 16;
};

enum class StopReason : std::uint8_t {
    converged,      ///< enough samples, long enough, and they agree
    noise_settled,  ///< they will not agree better
    known_well,     ///< the interval of their mean is narrow
    time_limit,
};
[[nodiscard]] std::string_view name_of(StopReason reason) noexcept;

/// Decides after each sample of one case whether it was the last. Knows numbers only, no clock.
class StoppingRule {
  public:
    explicit StoppingRule(const StoppingLimits& limits) : limits_(limits) {}

    /// `busy_s`: time the sample took in all, calls and synchronisation.
    void add(double seconds, double busy_s);
    /// Returns why measuring may stop, or nullopt while it has to go on.
    [[nodiscard]] std::optional<StopReason> reason() const;

  private:
    StoppingLimits limits_;
    int samples_ = 0;
    double mean_ = 0, sum_of_squares_ = 0;  ///< Welford's running moments
    double total_s_ = 0;
    std::vector<double> noise_;  ///< relative standard deviation after each sample
};

/// Standard deviation over the mean; 0 for fewer than two values.
[[nodiscard]] double relative_stddev(std::span<const double> values);

/// What became of one case in one repetition.
struct CaseResult {
    int repetition = 0;
    std::vector<double> samples_s;  ///< all that count
    int discarded = 0;  ///< samples under a throttled clock, with another process on the device, or across a clock step
    std::optional<double> clock_ratio;  ///< mean over the samples that count
    std::string slowdown;               ///< what held the clock down in the last sample that counts
    std::string source;                 ///< whose network it was, as the device says
    std::string stopped;                ///< name of the StopReason; empty when there is a problem
    std::string problem;                ///< why there is no time; empty for a valid result
};

struct LoopOptions {
    StoppingLimits limits;
    int repetitions = 1;
    std::optional<int> only_repetition;  ///< the others are left to other processes
    unsigned seed = 1;                   ///< seed of the random case order of each repetition
    /// A sample under this share of the largest clock is discarded, and the device gets a pause. Power-limited cards
    /// run big matrix products at 0.7 of it in steady state.
    double min_clock_ratio = 0.6;
    double pause_s = 1;
    /// Each repetition in a process of its own, where the device can be restarted: dispatch differs between processes.
    bool fresh_processes = false;
    /// Of each case, not counted: how long queueing takes is known after the first one, which the host may have bound.
    int settling_samples = 0;
    /// A case with this many discarded samples in sequence is given up: marked, not averaged in.
    int max_discarded = 10;
};

/// What the loop needs from outside; replaced in tests.
struct LoopSurroundings {
    std::function<bool(const BenchCase&, int repetition)> is_done;  ///< kept from an earlier run
    std::function<void(const BenchCase&, const CaseResult&)> keep;  ///< called once per finished case
    std::function<bool()> interrupted;                              ///< checked between samples
    std::function<void(double seconds)> pause;
    std::function<void(std::size_t done, std::size_t total)> progress;
};

/// Measures every case `repetitions` times, in random order within each repetition.
/// Returns false if interrupted, or if the device is lost permanently; complete rows are kept.
[[nodiscard]] bool measure(std::span<const BenchCase> cases, BenchDevice& device, const LoopOptions& options,
                           const LoopSurroundings& surroundings);

}  // namespace ftax::bench
