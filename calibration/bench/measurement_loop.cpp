#include "calibration/bench/measurement_loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

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
    double clock_sum = 0;
    int clocks = 0;
    for (int discarded_in_sequence = 0; !rule.reason();) {
        if (surroundings.interrupted()) return std::nullopt;
        const auto outcome = device.sample();
        if (const auto* failure = std::get_if<Failure>(&outcome)) {
            fail(*failure);
            return result;
        }
        const Sample& sample = std::get<Sample>(outcome);
        const bool stepped = !std::isfinite(sample.seconds) || sample.seconds <= 0;
        const bool throttled = sample.clock_ratio && *sample.clock_ratio < options.min_clock_ratio;
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
        if (sample.clock_ratio) clock_sum += *sample.clock_ratio, ++clocks;
        rule.add(sample.seconds, sample.seconds * bench_case.calls);
    }
    if (clocks > 0) result.clock_ratio = clock_sum / clocks;
    result.stopped = name_of(*rule.reason());
    return result;
}

}  // namespace

bool measure(std::span<const BenchCase> cases, BenchDevice& device, const LoopOptions& options,
             const LoopSurroundings& surroundings) {
    std::mt19937 random(options.seed);
    const std::size_t total = cases.size() * static_cast<std::size_t>(options.repetitions);
    std::size_t done = 0;
    for (int repetition = 0; repetition < options.repetitions; ++repetition) {
        if (options.fresh_processes && repetition > 0) device.restart();
        std::vector<std::size_t> order(cases.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::shuffle(order.begin(), order.end(), random);
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
