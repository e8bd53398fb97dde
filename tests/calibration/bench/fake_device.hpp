#pragma once

#include <deque>
#include <functional>
#include <utility>

#include "calibration/bench/bench_device.hpp"

namespace ftax::bench::test {

/// A device that does what a test says: samples and failures are taken from functions.
class FakeDevice : public BenchDevice {
  public:
    std::function<std::optional<Failure>(const BenchCase&)> on_prepare = [](const BenchCase&) { return std::nullopt; };
    std::function<std::variant<Sample, Failure>()> on_sample = [] { return Sample{1e-3}; };
    std::function<bool()> on_restart = [] { return false; };
    std::vector<std::string> prepared;
    Environment about{{"device", "fake"}};

    [[nodiscard]] Environment environment() const override { return about; }
    [[nodiscard]] std::optional<Failure> prepare(const BenchCase& bench_case) override {
        prepared.push_back(bench_case.id);
        return on_prepare(bench_case);
    }
    [[nodiscard]] std::variant<Sample, Failure> sample() override { return on_sample(); }
    bool restart() override { return on_restart(); }
};

}  // namespace ftax::bench::test
