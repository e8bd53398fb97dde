#include "calibration/bench/measurement_loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>

#include "calibration/bench/nvml.hpp"

namespace ftax::bench {
namespace {

std::string problem_of(const Failure& failure) {
    return fmt::format("{}: {}", name_of(failure.kind), failure.message);
}

/// Measures one case until its stopping rule is content. Returns nullopt when interrupted: half a case is not kept.
std::optional<CaseResult> measure_case(const BenchCase& bench_case, BenchDevice& device, const LoopOptions& options,
                                       const LoopSurroundings& surroundings, bool& lost) {
    CaseResult result;
    const auto fail = [&](const Failure& failure) {
        lost = failure.kind == FailureKind::device_lost;
        result.problem = problem_of(failure);
        result.samples_s.clear();
    };
    if (const auto failure = device.prepare(bench_case)) {
        fail(*failure);
        return result;
    }
    StoppingRule rule(options.limits);
    std::vector<double> clock_ratios;
    for (int discarded_in_sequence = 0, settling = options.settling_samples; !rule.reason();) {
        if (surroundings.interrupted()) return std::nullopt;
        const auto outcome = device.sample();
        if (const auto* failure = std::get_if<Failure>(&outcome)) {
            fail(*failure);
            return result;
        }
        if (settling-- > 0) continue;
        const Sample& sample = std::get<Sample>(outcome);
        const bool stepped = !std::isfinite(sample.seconds) || sample.seconds <= 0;
        const bool throttled =
            is_fault(sample.slowdown) || (sample.clock_ratio && *sample.clock_ratio < options.min_clock_ratio);
        if (stepped || throttled || sample.disturbed) {
            ++result.discarded;
            if (++discarded_in_sequence >= options.max_discarded) {
                fail({FailureKind::failed, stepped     ? "the clock stepped"
                                           : throttled ? "the device's clock is throttled"
                                                       : "another process uses the device"});
                return result;
            }
            if (throttled) surroundings.pause(options.pause_s);
            continue;
        }
        discarded_in_sequence = 0;
        result.samples_s.push_back(sample.seconds);
        if (sample.clock_ratio) clock_ratios.push_back(*sample.clock_ratio);
        result.slowdown = sample.slowdown;
        rule.add(sample.seconds, sample.seconds * bench_case.calls);
    }
    result.source = device.source();
    if (const auto known = static_cast<double>(clock_ratios.size()); known > 0)
        result.clock_ratio = std::accumulate(clock_ratios.begin(), clock_ratios.end(), 0.0) / known;
    result.stopped = name_of(*rule.reason());
    return result;
}

}  // namespace

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
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    double squares = 0;
    for (const double value : values) squares += (value - mean) * (value - mean);
    return std::sqrt(squares / static_cast<double>(values.size() - 1)) / mean;
}

bool measure(std::span<const BenchCase> cases, BenchDevice& device, const LoopOptions& options,
             const LoopSurroundings& surroundings) {
    std::mt19937 random(options.seed);
    const std::size_t total =
        cases.size() * static_cast<std::size_t>(options.only_repetition ? 1 : options.repetitions);
    std::size_t done = 0;
    for (int repetition = 0; repetition < options.repetitions; ++repetition) {
        const bool skipped = options.only_repetition.value_or(repetition) != repetition;
        if (options.fresh_processes && repetition > 0 && !skipped) device.restart();
        std::vector<std::size_t> order(cases.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::shuffle(order.begin(), order.end(), random);  // also of a skipped one: the next has an order of its own
        if (skipped) continue;
        for (const std::size_t index : order) {
            const BenchCase& bench_case = cases[index];
            if (!surroundings.is_done(bench_case, repetition)) {
                if (surroundings.interrupted()) return false;
                bool lost = false;
                auto result = measure_case(bench_case, device, options, surroundings, lost);
                if (!result) return false;
                result->repetition = repetition;
                surroundings.keep(bench_case, *result);
                if (lost && !device.restart()) return false;
            }
            surroundings.progress(++done, total);
        }
    }
    return true;
}

}  // namespace ftax::bench
