#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ftax/device.hpp"

namespace ftax {

/// Parses a datasheet (format: data/devices/README.md). `origin` names the text in errors.
/// Throws Error{profile} with the path to the field, Error{limit} for excessive nesting.
[[nodiscard]] DeviceSpec parse_device(std::string_view text, const std::string& origin);

/// Returns the device of a name, or of the path of a datasheet ending in .json.
[[nodiscard]] DeviceSpec given_device(std::string_view device);

/// Returns the slugs of all embedded datasheets, sorted.
[[nodiscard]] std::vector<std::string> device_slugs();

/// Returns the text of an embedded datasheet. Throws Error{usage} if no device has that slug.
[[nodiscard]] std::string_view device_text(std::string_view slug);

/// Returns a module with what a power mode leaves of its GPU.
[[nodiscard]] DeviceSpec in_mode(DeviceSpec device, const PowerMode& mode);

/// Returns a warning if a name stands for several devices ("a100" for four): the one taken, and the others.
[[nodiscard]] std::vector<std::string> warnings_of_name(std::string_view name);

}  // namespace ftax
