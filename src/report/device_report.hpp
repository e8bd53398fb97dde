#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ftax/device.hpp"
#include "src/report/table.hpp"

namespace ftax::report {

/// Describe datasheets: a table for people, JSON for programs (SI units, names as in data/devices/README.md).
[[nodiscard]] std::string device_list_table(const std::vector<DeviceSpec>& devices, Style style);
[[nodiscard]] std::string device_list_json(const std::vector<DeviceSpec>& devices);

/// Prints one datasheet, given as the valid text of its file: every number with its unit and source, then the notes.
[[nodiscard]] std::string device_table(std::string_view datasheet, Style style);

/// Compares devices with the first of them: every quantity, and how many times the first's the others have.
[[nodiscard]] std::string device_diff_table(const std::vector<DeviceSpec>& devices, Style style);
[[nodiscard]] std::string device_diff_json(const std::vector<DeviceSpec>& devices);

}  // namespace ftax::report
