#include "src/cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <utility>

#include "src/cli/output.hpp"
#include "src/io/escape.hpp"
#include "src/scenario/notices.hpp"

namespace ftax::cli {

Progress::Progress(std::string what, std::chrono::milliseconds patience)
    : what_(escape_terminal(what)), terminal_(::isatty(STDERR_FILENO) == 1), patience_(patience) {}

Progress::~Progress() {
    if (percent_ > 0) fmt::print(scenario::notices(), "\r\033[K");
}

void Progress::show(std::size_t done, std::size_t total) {
    const Clock::time_point now = Clock::now();
    const std::size_t percent = 100 * done / total;
    if (!terminal_ || now - start_ < patience_ || percent == percent_) return;
    percent_ = percent;
    const std::chrono::duration<double> elapsed = now - start_;
    const double left_s = elapsed.count() / static_cast<double>(done) * static_cast<double>(total - done);
    fmt::print(scenario::notices(), "\r\033[K{} {}/{}, {:.0f} min {:02.0f} s left", what_, done, total,
               std::floor(left_s / 60), std::fmod(left_s, 60));
    std::fflush(scenario::notices());
}

}  // namespace ftax::cli
