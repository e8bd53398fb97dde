#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ftax/device.hpp"
#include "src/report/table.hpp"

namespace ftax::report {

/// Describe datasheets: a human-readable table, and JSON (SI units, names as in data/devices/README.md).
[[nodiscard]] std::string device_list_table(const std::vector<DeviceSpec>& devices, Style style);
[[nodiscard]] std::string device_list_json(const std::vector<DeviceSpec>& devices);

/// Prints one datasheet, given as the valid text of its file: each number with its unit and source, then the notes.
[[nodiscard]] std::string device_table(std::string_view datasheet, Style style);

/// Compares devices with the first one: every quantity, and its ratio to the first device.
[[nodiscard]] std::string device_diff_table(const std::vector<DeviceSpec>& devices, Style style);
[[nodiscard]] std::string device_diff_json(const std::vector<DeviceSpec>& devices);

}  // namespace ftax::report
