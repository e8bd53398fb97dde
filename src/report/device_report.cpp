#include "src/report/device_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "src/io/escape.hpp"
#include "src/io/json_document.hpp"

namespace ftax::report {
namespace {

using nlohmann::ordered_json;

/// The quantities of a device under the names of its file, in the file's order; nullopt where it has none.
std::vector<std::pair<std::string, std::optional<double>>> quantities(const DeviceSpec& device) {
    std::vector<std::pair<std::string, std::optional<double>>> list{
        {"sms", device.sms},
        {"base_clock_hz", device.base_clock_hz},
        {"boost_clock_hz", device.boost_clock_hz},
        {"memory_bytes", device.memory_bytes},
        {"memory_bandwidth_bytes_per_s", device.memory_bandwidth_bytes_per_s},
        {"l2_bytes", device.l2_bytes},
        {"shared_memory_per_sm_bytes", device.shared_memory_per_sm_bytes},
        {"registers_per_sm", device.registers_per_sm},
        {"max_threads_per_sm", device.max_threads_per_sm},
        {"power_limit_w", device.power_limit_w},
    };
    for (int i = 0; i < math_path_count; ++i) {
        const auto path = static_cast<MathPath>(i);
        list.emplace_back(fmt::format("{}_flops_per_s", name_of(path)), device.peak(path));
    }
    return list;
}

/// Prints a quantity in the unit datasheets use for it, which the end of its name tells.
std::string print_quantity(std::string_view name, double value) {
    if (name.ends_with("_flops_per_s")) return fmt::format("{:.4g} TFLOP/s", value * 1e-12);
    if (name.ends_with("_bytes_per_s")) return fmt::format("{:.4g} GB/s", value * 1e-9);
    if (name.ends_with("_hz")) return fmt::format("{:.4g} MHz", value * 1e-6);
    if (name.ends_with("_w")) return fmt::format("{:.4g} W", value);
    if (!name.ends_with("_bytes")) return fmt::format("{:.6g}", value);
    if (value < 1 << 20) return fmt::format("{:.4g} KiB", value / (1 << 10));
    if (value < 1 << 30) return fmt::format("{:.4g} MiB", value / (1 << 20));
    return fmt::format("{:.4g} GiB", value / (1 << 30));
}

Cell cell(std::string_view name, std::optional<double> value) {
    return value ? Cell{print_quantity(name, *value)} : Cell{"–", Tone::quiet};
}

std::string compute_capability(const DeviceSpec& device) {
    return fmt::format("{}.{}", device.compute_capability_major, device.compute_capability_minor);
}

/// Writes whole numbers without a decimal point.
ordered_json to_json(std::optional<double> value) {
    if (!value) return nullptr;
    constexpr double exact_limit = 9007199254740992.0;  // 2^53
    if (*value == std::trunc(*value) && *value < exact_limit) return static_cast<std::int64_t>(*value);
    return *value;
}

ordered_json to_json(const DeviceSpec& device) {
    ordered_json object{{"slug", device.slug}, {"name", device.name}, {"aliases", device.aliases}};
    object["architecture"] = name_of(device.architecture);
    object["compute_capability"] = compute_capability(device);
    for (const auto& [name, value] : quantities(device)) object[name] = to_json(value);
    return object;
}

std::string escaped(const ordered_json& text) {
    return escape_terminal(text.get<std::string>());
}

}  // namespace

std::string device_list_table(const std::vector<DeviceSpec>& devices, Style style) {
    Table table({{"device", Align::left},
                 {"architecture", Align::left},
                 {"cc"},
                 {"SMs"},
                 {"boost"},
                 {"memory"},
                 {"bandwidth"},
                 {"fp32"},
                 {"fp16 tensor"},
                 {"name", Align::left}});
    for (const DeviceSpec& device : devices) {
        table.add({{device.slug, Tone::strong},
                   {std::string(name_of(device.architecture))},
                   {compute_capability(device)},
                   cell("sms", device.sms),
                   cell("boost_clock_hz", device.boost_clock_hz),
                   cell("memory_bytes", device.memory_bytes),
                   cell("memory_bandwidth_bytes_per_s", device.memory_bandwidth_bytes_per_s),
                   cell("fp32_flops_per_s", device.peak(MathPath::fp32)),
                   cell("fp16_tensor_flops_per_s", device.peak(MathPath::fp16_tensor)),
                   {device.name, Tone::quiet}});
    }
    return table.print(style);
}

std::string device_list_json(const std::vector<DeviceSpec>& devices) {
    ordered_json list = ordered_json::array();
    for (const DeviceSpec& device : devices) list.push_back(to_json(device));
    return to_text(ordered_json{{"schema_version", 1}, {"devices", list}});
}

std::string device_table(std::string_view datasheet, Style style) {
    const ordered_json file = ordered_json::parse(datasheet);
    std::vector<std::string> aliases;
    for (const ordered_json& alias : file["aliases"]) aliases.push_back(escaped(alias));
    std::string text =
        fmt::format("{}: {}, {}, compute capability {}\n", toned(escaped(file["slug"]), Tone::strong, style),
                    escaped(file["name"]), escaped(file["architecture"]), escaped(file["compute_capability"]));
    if (!aliases.empty()) text += fmt::format("also called {}\n", fmt::join(aliases, ", "));

    Table table({{"quantity", Align::left}, {"value"}, {"source", Align::left}});
    const auto add = [&](const std::string& name, const ordered_json& quantity) {
        table.add({{name}, {print_quantity(name, quantity["value"])}, {quantity["source"], Tone::quiet}});
    };
    for (const auto& [name, value] : file.items()) {
        if (value.is_object() && value.contains("value")) add(name, value);
    }
    for (const auto& [path, value] : file["peak_flops_per_s"].items()) add(path + "_flops_per_s", value);
    text += "\n" + table.print(style) + "\n";
    for (const auto& [key, source] : file["sources"].items()) {
        text += fmt::format("{}: {}\n", escape_terminal(key), escaped(source));
    }
    for (const ordered_json& note : file.value("notes", ordered_json::array())) {
        text += fmt::format("note: {}\n", escaped(note));
    }
    return text;
}

std::string device_diff_table(const std::vector<DeviceSpec>& devices, Style style) {
    std::vector<Table::Column> columns{{"quantity", Align::left}};
    for (const DeviceSpec& device : devices) {
        columns.push_back({device.slug});
        if (&device != &devices.front()) columns.push_back({"ratio"});
    }
    Table table(columns);
    const auto first = quantities(devices.front());
    for (std::size_t i = 0; i < first.size(); ++i) {
        const auto& [name, base] = first[i];
        std::vector<Cell> row{{name}};
        for (const DeviceSpec& device : devices) {
            const std::optional<double> value = quantities(device)[i].second;
            row.push_back(cell(name, value));
            if (&device == &devices.front()) continue;
            row.push_back({base && value ? fmt::format("{:.2f}×", *value / *base) : "", Tone::quiet});
        }
        table.add(std::move(row));
    }
    return table.print(style);
}

std::string device_diff_json(const std::vector<DeviceSpec>& devices) {
    ordered_json list = ordered_json::array();
    const auto first = quantities(devices.front());
    for (const DeviceSpec& device : devices) {
        ordered_json ratios = ordered_json::object();
        const auto own = quantities(device);
        for (std::size_t i = 0; i < own.size(); ++i) {
            const auto& [name, value] = own[i];
            const std::optional<double> base = first[i].second;
            ratios[name] = base && value ? ordered_json(*value / *base) : ordered_json(nullptr);
        }
        list.push_back(to_json(device));
        list.back()["ratio_to_first"] = std::move(ratios);
    }
    return to_text(ordered_json{{"schema_version", 1}, {"devices", std::move(list)}});
}

}  // namespace ftax::report
