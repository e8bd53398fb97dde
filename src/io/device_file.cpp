#include "src/io/device_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "src/core/embedded.hpp"
#include "src/core/near_names.hpp"
#include "src/io/escape.hpp"
#include "src/io/file.hpp"
#include "src/io/json_document.hpp"
#include "src/io/number.hpp"
#include "src/io/quantities.hpp"

namespace ftax {
namespace {

constexpr std::string_view folder = "data/devices/";
constexpr std::uint64_t max_file_bytes = 1 << 20;

Architecture parse_architecture(const JsonField& field) {
    const auto architecture = architecture_from_name(field.text());
    if (!architecture) field.fail("is not an architecture ftax knows");
    return *architecture;
}

std::pair<int, int> parse_compute_capability(const JsonField& field) {
    const std::string text = field.text();
    const std::size_t dot = std::min(text.find('.'), text.size());
    const auto major = parse_integer(std::string_view(text).substr(0, dot));
    const auto minor = dot < text.size() ? parse_integer(std::string_view(text).substr(dot + 1)) : std::nullopt;
    if (!major || !minor || *major < 1 || *major > 99 || *minor < 0 || *minor > 9) {
        field.fail("must be a compute capability such as \"7.5\"");
    }
    return {static_cast<int>(*major), static_cast<int>(*minor)};
}

std::optional<MathPath> path_from_name(std::string_view name) {
    for (int i = 0; i < math_path_count; ++i) {
        if (name_of(static_cast<MathPath>(i)) == name) return static_cast<MathPath>(i);
    }
    return std::nullopt;
}

/// Calls `visit(slug, content)` for each embedded datasheet, sorted by slug, until it returns true.
template <class Visit>
void visit_datasheets(Visit visit) {
    for (const EmbeddedFile& file : embedded_files()) {
        if (!file.path.starts_with(folder)) continue;
        const std::string_view slug = file.path.substr(folder.size(), file.path.rfind('.') - folder.size());
        if (visit(slug, file.content)) return;
    }
}

DeviceSpec parse_embedded(std::string_view slug, std::string_view content) {
    return parse_device(content, fmt::format("{}{}.json", folder, slug));
}

bool has_name(const DeviceSpec& device, std::string_view normalized) {
    return normalized_name(device.name) == normalized ||
           std::any_of(device.aliases.begin(), device.aliases.end(),
                       [&](const std::string& alias) { return normalized_name(alias) == normalized; });
}

[[noreturn]] void fail_unknown(std::string_view name) {
    std::vector<std::string> slugs;
    for (const DeviceSpec& device : device_specs()) slugs.push_back(device.slug);
    const std::vector<std::string> near = near_names(name, slugs);
    throw Error(ErrorCode::usage,
                fmt::format("no device is called '{}'{}; `ftax devices list` shows all {}", escape_terminal(name),
                            near.empty() ? "" : fmt::format(" (near: {})", fmt::join(near, ", ")), slugs.size()));
}

}  // namespace

DeviceSpec parse_device(std::string_view text, const std::string& origin) {
    nlohmann::json document = parse_json(text, origin);
    migrate_schema(document, origin);
    const JsonField root(document, origin);
    root.allow({"schema_version",
                "slug",
                "name",
                "aliases",
                "architecture",
                "compute_capability",
                "notes",
                "sources",
                "sms",
                "fp32_cores_per_sm",
                "base_clock_hz",
                "boost_clock_hz",
                "memory_bytes",
                "memory_bandwidth_bytes_per_s",
                "inline_ecc_share",
                "l2_bytes",
                "l2_bytes_per_clock",
                "shared_memory_per_sm_bytes",
                "registers_per_sm",
                "max_threads_per_sm",
                "power_limit_w",
                "peak_flops_per_s"});
    const Quantities quantity(root);
    DeviceSpec device;
    device.slug = root["slug"].text();
    device.name = root["name"].text();
    device.aliases = root["aliases"].texts();
    device.architecture = parse_architecture(root["architecture"]);
    const bool gpu = !is_cpu(device);
    if (gpu) {
        std::tie(device.compute_capability_major, device.compute_capability_minor) =
            parse_compute_capability(root["compute_capability"]);
    }
    device.sms = quantity.count(root["sms"]);
    if (const auto clock = root.find("base_clock_hz")) device.base_clock_hz = quantity(*clock);
    if (gpu) device.boost_clock_hz = quantity(root["boost_clock_hz"]);
    device.memory_bytes = quantity(root["memory_bytes"]);
    if (gpu) device.memory_bandwidth_bytes_per_s = quantity(root["memory_bandwidth_bytes_per_s"]);
    if (const auto share = root.find("inline_ecc_share")) device.inline_ecc_share = quantity(*share);
    device.l2_bytes = quantity(root["l2_bytes"]);
    if (const auto rate = root.find("l2_bytes_per_clock")) device.l2_bytes_per_clock = quantity(*rate);
    if (!gpu) return device;  // the rates of a CPU are measured, not promised
    device.shared_memory_per_sm_bytes = quantity(root["shared_memory_per_sm_bytes"]);
    device.registers_per_sm = quantity(root["registers_per_sm"]);
    device.max_threads_per_sm = quantity.count(root["max_threads_per_sm"]);
    device.power_limit_w = quantity(root["power_limit_w"]);
    const JsonField peaks = root["peak_flops_per_s"];
    // The last three are recorded for readers of the file; no kernel model uses them yet.
    peaks.allow({"fp64", "fp32", "tf32", "fp16_tensor", "bf16_tensor", "int8_tensor", "fp16_tensor_fp16_accumulate",
                 "fp16", "fp8_tensor", "fp4_tensor"});
    for (const JsonField& peak : peaks.elements()) {
        const double flops_per_s = quantity(peak);
        if (const auto path = path_from_name(peak.key())) {
            device.peak_flops_per_s[static_cast<std::size_t>(*path)] = flops_per_s;
        }
    }
    static_cast<void>(peaks["fp32"]);
    return device;
}

std::string_view device_text(std::string_view slug) {
    std::optional<std::string_view> text;
    visit_datasheets([&](std::string_view candidate, std::string_view content) {
        if (candidate == slug) text = content;
        return text.has_value();
    });
    if (!text) fail_unknown(slug);
    return *text;
}

const std::vector<DeviceSpec>& device_specs() {
    static const std::vector<DeviceSpec> devices = [] {
        std::vector<DeviceSpec> result;
        visit_datasheets([&](std::string_view slug, std::string_view content) {
            result.push_back(parse_embedded(slug, content));
            return false;
        });
        std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.slug < b.slug; });
        return result;
    }();
    return devices;
}

DeviceSpec device_spec(std::string_view name) {
    const std::string normalized = normalized_name(name);
    // The slug is the file's name: finding it there saves a start-up the parsing of all other datasheets.
    std::optional<DeviceSpec> found;
    visit_datasheets([&](std::string_view slug, std::string_view content) {
        if (normalized_name(slug) == normalized) found = parse_embedded(slug, content);
        return found.has_value();
    });
    if (found) return *found;
    for (const DeviceSpec& device : device_specs()) {
        if (has_name(device, normalized)) return device;
    }
    fail_unknown(name);
}

DeviceSpec read_device_spec(const std::string& path) {
    return parse_device(read_file(path, max_file_bytes), escape_terminal(path));
}

}  // namespace ftax
