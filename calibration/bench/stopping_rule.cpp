#include "calibration/bench/stopping_rule.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace ftax::bench {

std::string_view name_of(StopReason reason) noexcept {
    constexpr std::array<std::string_view, 4> names{"converged", "noise settled", "interval narrow", "time limit"};
    return names[static_cast<std::size_t>(reason)];
}

void StoppingRule::add(double seconds, double busy_s) {
    ++samples_;
    total_s_ += busy_s;
    const double delta = seconds - mean_;
    mean_ += delta / samples_;
    sum_of_squares_ += delta * (seconds - mean_);
    noise_.push_back(samples_ > 1 && mean_ > 0 ? std::sqrt(sum_of_squares_ / (samples_ - 1)) / mean_ : 0);
}

std::optional<StopReason> StoppingRule::reason() const {
    if (total_s_ >= limits_.max_total_s) return StopReason::time_limit;
    if (samples_ < limits_.min_samples || total_s_ < limits_.min_total_s) return std::nullopt;
    if (noise_.back() < limits_.relative_stddev) return StopReason::converged;
    if (1.96 * noise_.back() / std::sqrt(samples_) < limits_.relative_interval) return StopReason::known_well;
    const auto window = static_cast<std::size_t>(limits_.settling_samples);
    if (noise_.size() < window) return std::nullopt;
    const auto [least, most] = std::minmax_element(noise_.end() - static_cast<std::ptrdiff_t>(window), noise_.end());
    if (*most - *least < limits_.settled_change * noise_.back()) return StopReason::noise_settled;
    return std::nullopt;
}

double relative_stddev(std::span<const double> values) {
    if (values.size() < 2) return 0;
    double mean = 0;
    for (const double value : values) mean += value / static_cast<double>(values.size());
    double squares = 0;
    for (const double value : values) squares += (value - mean) * (value - mean);
    return std::sqrt(squares / static_cast<double>(values.size() - 1)) / mean;
}

}  // namespace ftax::bench
