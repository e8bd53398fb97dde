#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ftax {

/// Reads a whole file (or pipe) into memory.
/// Throws Error{usage} when it cannot be opened or read, Error{limit} when it is longer than `max_bytes`.
[[nodiscard]] std::string read_file(const std::string& path, std::uint64_t max_bytes = 64 << 20);

/// Writes a file so that readers see either the old content or all of the new one, even across a crash: temporary file
/// beside it, fsync, rename. A link is followed; what is not a regular file (a terminal, /dev/stdout) is written to.
/// Throws Error{usage} with the system's reason when that fails; the old file is then untouched and no temporary left.
void write_file(const std::string& path, std::string_view content);

/// Whether files can be created in a folder.
[[nodiscard]] bool is_writable_folder(const std::string& path);

}  // namespace ftax
