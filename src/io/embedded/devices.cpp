#include <fmt/format.h>

#include <algorithm>

#include "ftax/device.hpp"
#include "ftax/error.hpp"
#include "src/core/embedded.hpp"
#include "src/core/near_names.hpp"
#include "src/io/device_file.hpp"
#include "src/io/embedded/tables.hpp"
#include "src/io/escape.hpp"

namespace ftax {
namespace {

bool has_name(const DeviceSpec& device, std::string_view normalized) {
    return normalized_name(device.name) == normalized ||
           std::any_of(device.aliases.begin(), device.aliases.end(),
                       [&](const std::string& alias) { return normalized_name(alias) == normalized; });
}

[[noreturn]] void fail_unknown(std::string_view name) {
    std::vector<std::string> slugs;
    for (const DeviceSpec& device : device_specs()) slugs.push_back(device.slug);
    const std::vector<std::string> near = near_names(name, slugs);
    if (name.find(',') != name.npos) {
        throw Error(ErrorCode::usage,
                    fmt::format("no device is called '{}'; `ftax compare` takes several", escape_terminal(name)));
    }
    throw Error(ErrorCode::usage,
                fmt::format("no device is called '{}'{}; `ftax devices list` shows all {}", escape_terminal(name),
                            near.empty() ? "" : fmt::format(" (near: {})", fmt::join(near, ", ")), slugs.size()));
}

}  // namespace

std::string_view device_text(std::string_view slug) {
    const std::string_view text = embedded_text(fmt::format("data/devices/{}.json", slug));
    if (text.empty()) fail_unknown(slug);
    return text;
}

const std::vector<DeviceSpec>& device_specs() {
    static const std::vector<DeviceSpec> devices = embedded::datasheets();
    return devices;
}

DeviceSpec device_spec(std::string_view name) {
    const std::string normalized = normalized_name(name);
    const std::vector<DeviceSpec>& devices = device_specs();
    auto found = std::find_if(devices.begin(), devices.end(),
                              [&](const DeviceSpec& device) { return normalized_name(device.slug) == normalized; });
    if (found == devices.end()) {
        found = std::find_if(devices.begin(), devices.end(),
                             [&](const DeviceSpec& device) { return has_name(device, normalized); });
    }
    if (found == devices.end()) fail_unknown(name);
    return *found;
}

}  // namespace ftax
