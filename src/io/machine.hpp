#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ftax {

enum class FindingState : std::uint8_t {
    present,
    limited,  ///< there, but something about it stands in the way
    absent,
};

[[nodiscard]] std::string_view name_of(FindingState state) noexcept;

/// One thing of this machine that ftax can use.
struct Finding {
    std::string what;
    FindingState state = FindingState::absent;
    std::string detail;  ///< what was found, unescaped
    std::string advice;  ///< what to do about it; empty when nothing needs doing
};

/// Looks for what measuring and exporting need: CPU, GPU, driver, CUPTI, Python with torch and ONNX, writable folders.
/// Starts python3 once, asking for versions only; loads no framework. Never throws for what is missing.
[[nodiscard]] std::vector<Finding> examine_machine();

}  // namespace ftax
