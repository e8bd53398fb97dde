#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ftax::bench {

/// Whether a slowdown is a fault of the machine: rows under it say nothing about the card.
[[nodiscard]] bool is_fault(std::string_view slowdown);

/// What NVML says about the first GPU. The library is opened at run time: it comes with the driver, not with CUDA.
class Nvml {
  public:
    Nvml();
    ~Nvml();
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;

    [[nodiscard]] std::optional<double> clock_hz() const;  ///< current SM clock
    [[nodiscard]] std::optional<double> largest_clock_hz() const;
    /// Current reason for a reduced clock: "power cap", "thermal", "hardware", or several; "" for none.
    /// NVML's power is a mean over a second, longer than a case takes: this says whether it was the limit.
    [[nodiscard]] std::string slowdown() const;
    [[nodiscard]] std::optional<bool> mig() const;
    /// Number of other compute processes on the GPU.
    [[nodiscard]] std::optional<int> other_processes() const;

  private:
    [[nodiscard]] std::optional<double> clock_hz(const char* which) const;
    /// Calls one of the library's functions on the GPU; false where there is none or it refuses.
    template <class... Arguments>
    [[nodiscard]] bool ask(const char* function, Arguments... arguments) const;

    void* library_ = nullptr;
    void* device_ = nullptr;
};

}  // namespace ftax::bench
