#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

/// Whole texts with all that they print, to be read: tests/recorded/transcripts.
namespace ftax::test {

enum class Numbers : std::uint8_t {
    exact,
    close,  ///< to 1e-6, or to a unit of the last digit that both print
};

[[nodiscard]] bool is_same(std::string_view a, std::string_view b);

/// The lines that differ, as recorded and as they are now; empty if there are none.
[[nodiscard]] std::string differences(std::string_view recorded, std::string_view now, Numbers numbers);

/// Compares a text with that of a file; FTAX_UPDATE_GOLDEN=1 (`make golden`) rewrites the file instead.
void check_transcript(const std::filesystem::path& path, const std::string& now, Numbers numbers);

/// The same for a report that a test made, in the folder `made`.
void check_report(const std::string& name, const std::string& now);

}  // namespace ftax::test
