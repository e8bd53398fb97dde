#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "ftax/device.hpp"
#include "src/core/embedded.hpp"
#include "src/core/near_names.hpp"
#include "src/core/throw_error.hpp"
#include "src/io/device_file.hpp"
#include "src/io/escape.hpp"

namespace ftax {
namespace {

[[noreturn]] void fail_unknown(std::string_view name) {
    std::vector<std::string> slugs;
    for (const DeviceSpec& device : device_specs()) slugs.push_back(device.slug);
    const std::vector<std::string> near = near_names(name, slugs);
    if (name.find(',') != name.npos) {
        throw_error(ErrorCode::usage, "unknown device '{}'; `ftax compare` takes several", escape_terminal(name));
    }
    throw_error(ErrorCode::usage, "unknown device '{}'{}; `ftax devices list` shows all {}", escape_terminal(name),
                near.empty() ? "" : fmt::format(" (near: {})", fmt::join(near, ", ")), slugs.size());
}

}  // namespace

std::string_view device_text(std::string_view slug) {
    const std::string_view text = embedded_text(fmt::format("data/devices/{}.json", slug));
    if (text.empty()) fail_unknown(slug);
    return text;
}

const std::vector<DeviceSpec>& device_specs() {
    static const std::vector<DeviceSpec> devices = [] {
        std::vector<DeviceSpec> specs;
        for (const EmbeddedFile& file : packed_files()) {
            if (file.path.starts_with("data/devices/"))
                specs.push_back(parse_device(file.content, std::string(file.path)));
        }
        std::ranges::sort(specs, {}, &DeviceSpec::slug);
        return specs;
    }();
    return devices;
}

const DeviceSpec& device_spec(std::string_view name) {
    // Of a slug no other datasheet need be read.
    static std::mutex mutex;
    static std::map<std::string, DeviceSpec, std::less<>> read;
    const std::string path = fmt::format("data/devices/{}.json", name);
    if (const std::string_view text = packed_document(path); !text.empty()) {
        const std::lock_guard lock(mutex);
        auto known = read.find(name);
        if (known == read.end()) known = read.emplace(name, parse_device(text, path)).first;
        return known->second;
    }
    static const std::map<std::string, const DeviceSpec*> by_name = [] {
        std::map<std::string, const DeviceSpec*> names;
        for (const DeviceSpec& device : device_specs()) names.emplace(normalized_name(device.slug), &device);
        for (const DeviceSpec& device : device_specs()) {
            names.emplace(normalized_name(device.name), &device);
            for (const std::string& alias : device.aliases) names.emplace(normalized_name(alias), &device);
        }
        return names;
    }();
    const auto found = by_name.find(normalized_name(name));
    if (found == by_name.end()) fail_unknown(name);
    return *found->second;
}

}  // namespace ftax
