#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>
#include <regex>
#include <set>

#include "ftax/device.hpp"
#include "graphs/base/data_rows.hpp"
#include "graphs/base/embedded.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/escape.hpp"
#include "graphs/files/number.hpp"
#include "predictors/profiles/device_file.hpp"

namespace ftax {
namespace {

constexpr std::string_view device_names = "data/device_names.tsv";

/// The words of a device's name in lower case, without those that all cards have.
std::set<std::string> words_of_device(std::string_view name) {
    std::string text = lower_case(name);
    std::ranges::replace_if(
        text, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, ' ');
    std::set<std::string> words;
    for (const std::string_view word : words_of(text))
        if (!word.empty() && !has_word("nvidia tesla geforce rtx gtx quadro", word)) words.emplace(word);
    return words;
}

[[noreturn]] void fail_unknown(std::string_view name) {
    const std::vector<std::string> slugs = device_slugs();
    const auto is_any = [words = words_of_device(name)](const char* pattern) {
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
    if (name.find(',') != name.npos)
        throw_error(ErrorCode::usage, "unknown device '{}'; `ftax compare` takes several", escape_terminal(name));
    throw_error(ErrorCode::usage, "unknown device '{}'{}; `ftax devices list` shows all {}", escape_terminal(name),
                near.empty() ? "" : fmt::format(" (near: {})", fmt::join(near, ", ")), slugs.size());
}

/// The device whose slug, else whose name or alias, without case and punctuation, is `wanted`; null if there is none.
const DeviceSpec* find_device(const std::string& wanted) {
    std::string_view found;
    for_each_data_row(embedded_text(device_names), [&](DataRow names) {
        const std::string_view slug = names.text();
        if (normalized_name(slug) == wanted) found = slug;
        while (found.empty() && !names.ends())
            if (normalized_name(names.text()) == wanted) found = slug;
    });
    return found.empty() ? nullptr : &device_spec(found);
}

}  // namespace

std::vector<std::string> device_slugs() {
    return mapped(data_column(device_names, 0), [](std::string_view slug) { return std::string(slug); });
}

std::string_view device_text(std::string_view slug) {
    const std::string_view text = embedded_text(fmt::format("data/devices/{}.json", slug));
    if (text.empty()) fail_unknown(slug);
    return text;
}

const std::vector<DeviceSpec>& device_specs() {
    static const std::vector<DeviceSpec> devices = mapped(device_slugs(), device_spec);
    return devices;
}

DeviceSpec in_mode(DeviceSpec device, const PowerMode& mode) {
    for (std::optional<double>& peak : device.peak_flops_per_s)
        if (peak) *peak *= mode.sms * mode.clock_hz / (device.sms * device.boost_clock_hz);
    device.sms = mode.sms;
    device.boost_clock_hz = mode.clock_hz;
    device.memory_bandwidth_bytes_per_s = mode.memory_bandwidth_bytes_per_s;
    device.power_limit_w = mode.power_limit_w;
    device.least_power_w.reset();
    return device;
}

namespace {

/// Returns the device in the power mode `setting`, or with that power limit or clock ("250W", "1200MHz").
DeviceSpec with_setting(const DeviceSpec& device, std::string_view setting) {
    const std::string wanted = lower_case(setting);
    PowerMode mode{wanted, device.sms, device.boost_clock_hz, device.memory_bandwidth_bytes_per_s,
                   device.power_limit_w};
    const auto named = std::ranges::find(device.modes, wanted, &PowerMode::name);
    const auto number = [&](std::string_view unit) {
        return wanted.ends_with(unit) ? parse_number(std::string_view(wanted).substr(0, wanted.size() - unit.size()))
                                      : std::nullopt;
    };
    const auto watts = device.least_power_w ? std::nullopt : number("w"), mhz = number("mhz");  // a module has modes
    if (named != device.modes.end()) {
        mode = *named;
    } else if (watts && *watts > 0 && *watts <= device.power_limit_w) {
        mode.power_limit_w = *watts;
    } else if (mhz && *mhz > 0 && *mhz * 1e6 <= device.boost_clock_hz) {
        mode.clock_hz = *mhz * 1e6;
    } else {
        const std::vector<std::string> names = mapped(device.modes, &PowerMode::name);
        throw_error(ErrorCode::usage, "{} has no setting '{}': {}, or a clock of at most {:.0f} MHz", device.slug,
                    escape_terminal(setting),
                    !names.empty()         ? fmt::format("the power modes are {}", fmt::join(names, ", "))
                    : device.least_power_w ? "the clocks of its power modes are not known"
                                           : fmt::format("a power limit of at most {:g} W", device.power_limit_w),
                    device.boost_clock_hz * 1e-6);
    }
    DeviceSpec result = in_mode(device, mode);
    result.slug = fmt::format("{}@{}", device.slug, wanted);
    result.name += fmt::format(" at {}", setting);
    return result;
}

}  // namespace

const DeviceSpec& device_spec(std::string_view name) {
    static std::recursive_mutex mutex;
    static std::map<std::string, DeviceSpec, std::less<>> read;
    static std::map<std::string, const DeviceSpec*, std::less<>> by_name;
    const std::lock_guard lock(mutex);
    if (const auto known = by_name.find(name); known != by_name.end()) return *known->second;
    if (const auto [board, setting] = split_at(name, '@'); !setting.empty())
        return *by_name.emplace(name, &read.emplace(name, with_setting(device_spec(board), setting)).first->second)
                    .first->second;
    const std::string path = fmt::format("data/devices/{}.json", name);
    const std::string_view text = embedded_text(path);
    const DeviceSpec* found =
        text.empty() ? find_device(normalized_name(name)) : &read.emplace(name, parse_device(text, path)).first->second;
    if (found == nullptr) fail_unknown(name);
    return *by_name.emplace(name, found).first->second;
}

DeviceSpec given_device(std::string_view device) {
    return device.ends_with(".json") ? read_device_spec(std::string(device)) : device_spec(device);
}

std::vector<std::string> warnings_of_name(std::string_view given_name) {
    const std::string_view name = split_at(given_name, '@').first;
    if (name.ends_with(".json") || device_spec(name).slug == name) return {};
    const DeviceSpec& found = device_spec(name);
    const std::set<std::string> given = words_of_device(name);
    std::vector<std::string> others;
    if (std::ranges::includes(given, words_of_device(found.slug))) return {};
    for (const std::string& slug : device_slugs())
        if (slug != found.slug && std::ranges::includes(words_of_device(slug), given)) others.push_back(slug);
    if (others.empty()) return {};
    return {fmt::format("{} is taken as {}; others: {}", escape_terminal(name), found.slug, fmt::join(others, ", "))};
}

}  // namespace ftax
