#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
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

/// Returns the value of the first line "KEY : VALUE" in a file of /proc or /sys; with an empty key the first line.
[[nodiscard]] std::optional<std::string> value_in(const std::filesystem::path& path, std::string_view key);

/// What a command of the shell printed, and how it ended: waitpid's status; -1 where it could not be started.
struct Printed {
    std::string output;
    int status = -1;
};
[[nodiscard]] Printed run_command(const std::string& command);

/// Looks for what measuring and exporting need: CPU, GPU, driver, CUPTI, Python with torch and ONNX, writable folders.
/// Starts python3 once, asking for versions only; loads no framework. Never throws for what is missing.
[[nodiscard]] std::vector<Finding> examine_machine();

}  // namespace ftax
