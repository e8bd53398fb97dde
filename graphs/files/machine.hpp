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
    limited,  ///< present, but with a problem
    absent,
};

[[nodiscard]] std::string_view name_of(FindingState state) noexcept;

/// A component of this machine that ftax can use.
struct Finding {
    std::string what;
    FindingState state = FindingState::absent;
    std::string detail;  ///< description, unescaped
    std::string advice;  ///< recommended action; empty if none
};

/// Returns the value of the first line "KEY : VALUE" in a file of /proc or /sys; the first line for an empty key.
[[nodiscard]] std::optional<std::string> value_in(const std::filesystem::path& path, std::string_view key);

/// Returns the absolute path of a program: that of a path, or found in the absolute folders of PATH, so that a file of
/// the working folder is never run by its name. Empty if there is none.
[[nodiscard]] std::string find_program(const std::string& name);

/// Quotes one word of a shell command.
[[nodiscard]] std::string shell_quoted(std::string_view text);

/// Output of a shell command and its exit status as returned by waitpid; -1 if it could not be started.
struct Printed {
    std::string output;
    int status = -1;
};
[[nodiscard]] Printed run_command(const std::string& command);

/// Checks the requirements of measuring and exporting: CPU, GPU, driver, CUPTI, Python with torch and ONNX, writable
/// folders. Starts python3 once to query versions, without loading frameworks. Never throws for missing components.
[[nodiscard]] std::vector<Finding> examine_machine();

}  // namespace ftax
