#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <regex>
#include <set>

#include "ftax/device.hpp"
#include "src/core/embedded.hpp"
#include "src/core/near_names.hpp"
#include "src/core/throw_error.hpp"
#include "src/io/device_file.hpp"
#include "src/io/escape.hpp"

namespace ftax {
namespace {

/// The words of a device's name in lower case, without those that all cards have.
std::set<std::string> words_of(std::string_view name) {
    static const std::regex word("[a-z0-9]{1,32}"), of_all("nvidia|tesla|geforce|rtx|gtx|quadro");
    const std::string text = lower_case(name);
    std::set<std::string> words;
    for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at)
        if (!std::regex_match(at->str(), of_all)) words.insert(at->str());
    return words;
}

[[noreturn]] void fail_unknown(std::string_view name) {
    std::vector<std::string> slugs;
    for (const DeviceSpec& device : device_specs()) slugs.push_back(device.slug);
    const auto is_any = [words = words_of(name)](const char* pattern) {
        const std::regex expected(pattern);
        return std::ranges::any_of(words, [&](const auto& word) { return std::regex_match(word, expected); });
    };
    const char* const advice = is_any("(cpu|xeon|epyc|ryzen).*")
                                   ? "for a CPU give the datasheet file that `ftax calibrate --device cpu` writes"
                               : is_any("(amd|radeon|instinct|mi[123]|gfx).*")
                                   ? "AMD GPUs are not modelled; give an NVIDIA GPU"
                                   : nullptr;
    if (advice != nullptr) throw_error(ErrorCode::usage, "unknown device '{}': {}", escape_terminal(name), advice);
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
        for (const EmbeddedFile& file : embedded_files()) {
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
    if (const std::string_view text = embedded_text(path); !text.empty()) {
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

std::vector<std::string> warnings_of_name(std::string_view name) {
    if (name.ends_with(".json") || device_spec(name).slug == name) return {};
    const DeviceSpec& found = device_spec(name);
    const std::set<std::string> given = words_of(name);
    std::vector<std::string> others;
    if (std::ranges::includes(given, words_of(found.slug))) return {};
    for (const DeviceSpec& device : device_specs())
        if (device.slug != found.slug && std::ranges::includes(words_of(device.slug), given))
            others.push_back(device.slug);
    if (others.empty()) return {};
    return {fmt::format("{} is taken as {}; others: {}", escape_terminal(name), found.slug, fmt::join(others, ", "))};
}

}  // namespace ftax
