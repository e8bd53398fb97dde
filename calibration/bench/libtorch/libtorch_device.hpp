#pragma once

#include <memory>
#include <string>

#include "calibration/bench/bench_device.hpp"

namespace ftax::bench {

/// Measures LibTorch's operators in this process, on the CPU or on this machine's GPU.
class LibtorchDevice : public BenchDevice {
  public:
    /// Throws Error{refused} when LibTorch sees no GPU.
    LibtorchDevice(const std::string& device, Precision precision, int threads);
    ~LibtorchDevice() override;

    [[nodiscard]] Environment environment() const override;
    [[nodiscard]] std::optional<Failure> prepare(const BenchCase& bench_case) override;
    [[nodiscard]] std::string source() const override { return std::string(graph_source); }
    [[nodiscard]] std::variant<Sample, Failure> sample() override;

  private:
    struct State;  // LibTorch's headers stay out of this one
    std::unique_ptr<State> state_;
};

}  // namespace ftax::bench
