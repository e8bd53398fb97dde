#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace ftax {

struct ChildLimits {
    std::uint64_t bytes;  ///< of address space, beyond what this process has mapped
    unsigned seconds;
};

struct ChildResult {
    std::string output;   ///< what `work` returned; incomplete if the child died
    std::string signal;   ///< that ended it: "Segmentation fault"; empty: none
    bool beyond = false;  ///< it reached a limit, or threw

    [[nodiscard]] bool died() const { return !signal.empty() || beyond; }
};

/// Runs `work` in a child process, so that neither a crash nor the memory and time it takes outlive it. It writes no
/// core file. To be called where this process has no other thread. Throws Error{limit} if there is no child process.
[[nodiscard]] ChildResult run_in_child(const ChildLimits& limits, const std::function<std::string()>& work);

}  // namespace ftax
