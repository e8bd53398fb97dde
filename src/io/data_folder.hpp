#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/io/profile_file.hpp"

namespace ftax {

/// The JSON files of a folder, sorted. Throws Error{usage} when it cannot be read.
[[nodiscard]] std::vector<std::filesystem::path> json_files(const std::string& folder);

/// Read the profiles of a folder laid out as data/: `folder`/profiles/devices.json and
/// `folder`/profiles/frameworks/*.json in the order of their names. The build turns those of data/ into tables with
/// these; at run time they read what FTAX_DATA names. Throw Error{usage} when a file cannot be read, Error{profile}
/// naming file and field.
[[nodiscard]] DeviceProfileFile read_device_profiles(const std::string& folder);
[[nodiscard]] std::vector<FrameworkProfile> read_framework_profiles(const std::string& folder);

}  // namespace ftax
