#pragma once

#include <string>
#include <vector>

#include "src/io/profile_file.hpp"
#include "src/io/stack_file.hpp"
#include "src/io/uncertainty_file.hpp"

namespace ftax {

/// Read the profiles of a folder laid out as data/: `folder`/profiles/devices.json, uncertainty.json beside it,
/// `folder`/stacks/*.json and `folder`/profiles/frameworks/*.json in the order of their names. The build turns data/
/// into tables with these; at run time they read what FTAX_DATA names. Throws Error{usage} when a file cannot be read,
/// Error{profile} naming file and field.
[[nodiscard]] DeviceProfileFile read_device_profiles(const std::string& folder);
[[nodiscard]] std::vector<FrameworkProfile> read_framework_profiles(const std::string& folder);
[[nodiscard]] std::vector<std::string> call_host_names_in(const std::string& folder);
[[nodiscard]] VarianceComponents read_variance_components(const std::string& folder);
[[nodiscard]] std::vector<Stack> read_stacks(const std::string& folder);
[[nodiscard]] HostProfileFile read_call_host(const std::string& folder, const std::string& name);

}  // namespace ftax
