#pragma once

#include <optional>
#include <string>

namespace ftax::bench {

/// What NVML says about the first GPU. The library is opened at run time: it comes with the driver, not with CUDA.
class Nvml {
  public:
    Nvml();
    ~Nvml();
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;

    [[nodiscard]] bool open() const { return device_ != nullptr; }
    [[nodiscard]] std::string driver() const;
    [[nodiscard]] std::optional<double> clock_hz() const;  ///< of the multiprocessors, now
    [[nodiscard]] std::optional<double> largest_clock_hz() const;
    [[nodiscard]] std::optional<double> power_w() const;
    [[nodiscard]] std::optional<bool> mig() const;
    /// Compute processes on the GPU beside this one.
    [[nodiscard]] std::optional<int> other_processes() const;

  private:
    template <class Function>
    [[nodiscard]] Function* function(const char* name) const;

    void* library_ = nullptr;
    void* device_ = nullptr;
};

}  // namespace ftax::bench
