#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace ftax::cli {

/// One line on a terminal, rewritten in place: done, total, time left. Silent elsewhere, and until `patience` is over.
class Progress {
  public:
    explicit Progress(std::string what, std::chrono::milliseconds patience = std::chrono::seconds(1));
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void show(std::size_t done, std::size_t total);

  private:
    using Clock = std::chrono::steady_clock;

    std::string what_;
    bool terminal_;
    std::chrono::milliseconds patience_;
    Clock::time_point start_ = Clock::now();
    std::size_t percent_ = 0;  ///< shown last
};

}  // namespace ftax::cli
