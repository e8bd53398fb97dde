#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "calibration/bench/bench_device.hpp"
#include "graphs/base/statistics.hpp"
#include "graphs/files/csv.hpp"
#include "graphs/files/number.hpp"

namespace ftax::bench::test {

struct Sample {
    double seconds = 0;
    std::optional<double> clock_mhz{};
    std::string slowdown{};
};

/// A machine in place of the one that Python measures: each row is the median of samples that it invents.
class SampledDevice : public BenchDevice {
  public:
    /// Returns why a case has no time, or "".
    [[nodiscard]] virtual std::string prepare(const BenchCase& bench_case) = 0;
    [[nodiscard]] virtual Sample sample() = 0;

    [[nodiscard]] bool measure(const BenchJob& job, const BenchEvents&) override {
        jobs.push_back(job);
        const bool is_new = !std::filesystem::exists(job.path);
        std::ofstream file(job.path, std::ios::app);
        const auto write = [&](std::vector<std::string> cells, const std::vector<std::string>& more) {
            cells.insert(cells.end(), more.begin(), more.end());
            std::string line;
            append_csv_row(line, cells);
            file << line;
        };
        if (is_new) write(job.columns, {"mode", "latency_ms", "clock_mhz", "slowdown", "problem"});
        std::mt19937 order(1);
        for (int repetition = 0; repetition < job.repetitions; ++repetition) {
            std::vector<BenchCase> cases = job.cases;
            std::shuffle(cases.begin(), cases.end(), order);
            for (const BenchCase& one : cases) {
                const std::string problem = prepare(one);
                std::vector<double> seconds;
                Sample last;
                for (int i = 0; i < 40 && problem.empty(); ++i) {
                    last = sample();
                    seconds.push_back(last.seconds);
                }
                write(one.labels,
                      {std::string(name_of(one.mode)), problem.empty() ? format_number(median(seconds) * 1e3) : "",
                       last.clock_mhz ? format_number(*last.clock_mhz) : "", last.slowdown, problem});
            }
        }
        return true;
    }

    std::vector<BenchJob> jobs;
};

}  // namespace ftax::bench::test
