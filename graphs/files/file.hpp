#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "graphs/base/descriptor.hpp"

namespace ftax {

/// Opens a file for reading, without waiting. Throws Error{usage} with the system's reason, or naming what is no file,
/// and Error{refused} outside of the folder of confine_files().
[[nodiscard]] Descriptor open_file(const std::string& path);

/// Reads a whole file. Throws as open_file(), Error{usage} for UTF-16, and Error{limit} beyond `max_bytes`.
[[nodiscard]] std::string read_file(const std::string& path, std::uint64_t max_bytes = 64 << 20);

/// From now on, reads only files below this folder and makes it the working folder; Error{usage} if it cannot.
void confine_files(const std::string& folder);

/// Writes a file atomically, even across a crash: temporary file in the same directory, fsync, rename. Follows links;
/// non-regular files (a terminal, /dev/stdout) are written directly. Throws Error{usage} with the system's reason on
/// failure, leaving the old file unchanged and no temporary file.
void write_file(const std::string& path, std::string_view content);

/// Returns true if files can be created in a folder.
[[nodiscard]] bool is_writable_folder(const std::string& path);

}  // namespace ftax
