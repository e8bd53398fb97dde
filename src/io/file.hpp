#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ftax {

/// Reads a whole file (or pipe) into memory.
/// Throws Error{usage} if it cannot be opened or read, Error{limit} if it is longer than `max_bytes`.
[[nodiscard]] std::string read_file(const std::string& path, std::uint64_t max_bytes = 64 << 20);

/// From now on, only files below this folder are read, which becomes the working folder. Throws Error{usage} if it
/// cannot.
void confine_files(const std::string& folder);

/// Throws Error{refused} for an open file outside of that folder, whichever links lead to it.
void check_confined(int descriptor, const std::string& path);

/// Writes a file atomically, even across a crash: temporary file in the same directory, fsync, rename. Follows links;
/// non-regular files (a terminal, /dev/stdout) are written directly. Throws Error{usage} with the system's reason on
/// failure, leaving the old file unchanged and no temporary file.
void write_file(const std::string& path, std::string_view content);

/// Returns true if files can be created in a folder.
[[nodiscard]] bool is_writable_folder(const std::string& path);

}  // namespace ftax
