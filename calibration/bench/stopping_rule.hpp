#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

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
    /// Half the width of the mean's 95 % interval, relative to it, at which the samples are enough whatever their
    /// noise; 0: not asked for.
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

}  // namespace ftax::bench
