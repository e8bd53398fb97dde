#include "src/report/device_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "graphs/files/escape.hpp"
#include "src/report/columns.hpp"

namespace ftax::report {
namespace {

/// Prints a quantity in the usual unit of datasheets, derived from the suffix of its name.
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

/// A quantity under the name of its file; JSON writes whole numbers without a decimal point.
Column<DeviceSpec> datasheet_column(std::string name, std::string title,
                                    std::function<std::optional<double>(const DeviceSpec&)> of) {
    const auto value = [name, of = std::move(of)](const DeviceSpec& device) {
        const std::optional<double> number = of(device);
        if (!number) return Value(nullptr, "–", Tone::quiet);
        constexpr double exact_limit = 9007199254740992.0;  // 2^53
        const bool is_whole = *number == std::trunc(*number) && *number < exact_limit;
        const Json exact = is_whole ? Json(static_cast<std::int64_t>(*number)) : Json(*number);
        return Value(exact, print_quantity(name, *number));
    };
    return {std::move(name), std::move(title), Unit::plain, value};
}

/// Slug, name, aliases, architecture and compute capability, then every quantity in the order of the files.
const Columns<DeviceSpec>& device_columns() {
    using D = DeviceSpec;
    static const Columns<D> columns = [] {
        Columns<D> list{
            {"slug", "device", Unit::text, [](const D& d) { return Value(d.slug, Tone::strong); }},
            {"name", "name", Unit::text, [](const D& d) { return Value(d.name, Tone::quiet); }},
            {"aliases", "", Unit::text, &D::aliases},
            {"architecture", "architecture", Unit::text, &D::architecture},
            {"compute_capability", "cc", Unit::plain,
             [](const D& d) { return fmt::format("{}.{}", d.compute_capability_major, d.compute_capability_minor); }},
            datasheet_column("sms", "SMs", &D::sms),
            datasheet_column("base_clock_hz", "", &D::base_clock_hz),
            datasheet_column("boost_clock_hz", "boost", &D::boost_clock_hz),
            datasheet_column("memory_bytes", "memory", &D::memory_bytes),
            datasheet_column("memory_bandwidth_bytes_per_s", "bandwidth", &D::memory_bandwidth_bytes_per_s),
            datasheet_column("l2_bytes", "", &D::l2_bytes),
            datasheet_column("shared_memory_per_sm_bytes", "", &D::shared_memory_per_sm_bytes),
            datasheet_column("registers_per_sm", "", &D::registers_per_sm),
            datasheet_column("max_threads_per_sm", "", &D::max_threads_per_sm),
            datasheet_column("power_limit_w", "", &D::power_limit_w)};
        for (int i = 0; i < math_path_count; ++i) {
            const auto path = static_cast<MathPath>(i);
            const std::string title = path == MathPath::fp16_tensor ? "fp16 tensor" : std::string(name_of(path));
            list.add(datasheet_column(fmt::format("{}_flops_per_s", name_of(path)), title,
                                      [path](const D& device) { return device.peak(path); }));
        }
        return list;
    }();
    return columns;
}

constexpr std::size_t texts = 5;  ///< columns before the quantities

std::string escaped(const Json& text) {
    return escape_terminal(text.get<std::string>());
}

}  // namespace

std::string device_list_table(const std::vector<DeviceSpec>& devices, Style style) {
    return device_columns().print(
        devices,
        "slug architecture compute_capability sms boost_clock_hz memory_bytes memory_bandwidth_bytes_per_s "
        "fp32_flops_per_s fp16_tensor_flops_per_s name",
        style);
}

std::string device_list_json(const std::vector<DeviceSpec>& devices) {
    return document({{"devices", device_columns().json_rows(devices)}});
}

std::string device_table(std::string_view datasheet, Style style) {
    const Json file = Json::parse(datasheet);
    std::vector<std::string> aliases;
    for (const Json& alias : file["aliases"]) aliases.push_back(escaped(alias));
    std::string text =
        fmt::format("{}: {}, {}, compute capability {}\n", toned(escaped(file["slug"]), Tone::strong, style),
                    escaped(file["name"]), escaped(file["architecture"]), escaped(file["compute_capability"]));
    if (!aliases.empty()) text += fmt::format("also called {}\n", fmt::join(aliases, ", "));

    Table table({{"quantity", Align::left}, {"value"}, {"source", Align::left}});
    const auto add = [&](const std::string& name, const Json& quantity) {
        const Json& value = quantity["value"];
        const std::string printed = value.is_boolean() ? value ? "yes" : "no" : print_quantity(name, value);
        table.add({{name}, {printed}, {quantity["source"], Tone::quiet}});
    };
    for (const auto& [name, value] : file.items())
        if (value.is_object() && value.contains("value")) add(name, value);
    for (const auto& [path, value] : file["peak_flops_per_s"].items()) add(path + "_flops_per_s", value);
    text += fmt::format("\n{}\n", table.print(style));
    for (const auto& [key, source] : file["sources"].items())
        text += fmt::format("{}: {}\n", escape_terminal(key), escaped(source));
    for (const Json& note : file.value("notes", Json::array())) text += fmt::format("note: {}\n", escaped(note));
    return text;
}

std::string device_diff_table(const std::vector<DeviceSpec>& devices, Style style) {
    std::vector<Table::Column> columns{{"quantity", Align::left}};
    for (const DeviceSpec& device : devices) {
        columns.push_back({device.slug});
        if (&device != &devices.front()) columns.push_back({"ratio"});
    }
    Table table(columns);
    const Grid grid = device_columns().select(devices);
    for (std::size_t i = texts; i < grid.heads.size(); ++i) {
        std::vector<Cell> row{{grid.heads[i].key}};
        const Json& base = grid.rows.front()[i].exact;
        for (const std::vector<Value>& device : grid.rows) {
            const Json& value = device[i].exact;
            row.push_back({*device[i].shown, device[i].tone});
            if (&device == &grid.rows.front()) continue;
            const bool known = base.is_number() && value.is_number();
            row.push_back({known ? fmt::format("{:.2f}×", value.get<double>() / base.get<double>()) : "", Tone::quiet});
        }
        table.add(std::move(row));
    }
    return table.print(style);
}

std::string device_diff_json(const std::vector<DeviceSpec>& devices) {
    Json list = device_columns().json_rows(devices);
    for (Json& device : list) {
        Json ratios = Json::object();
        for (const auto& [name, value] : device.items()) {
            const Json& base = list.front()[name];
            if (value.is_number() || value.is_null())
                ratios[name] = base.is_number() && value.is_number() ? Json(value.get<double>() / base.get<double>())
                                                                     : Json(nullptr);
        }
        device["ratio_to_first"] = std::move(ratios);
    }
    return document({{"devices", std::move(list)}});
}

}  // namespace ftax::report
