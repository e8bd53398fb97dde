#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "src/io/data_folder.hpp"
#include "src/io/device_file.hpp"
#include "src/io/file.hpp"

// generate DATA OUTPUT.cpp: reads a folder laid out as data/ as the program would and writes it down as C++ tables.

namespace {

using namespace ftax;

/// A C++ literal: UTF-8 as it is, quotes and control characters escaped.
std::string literal(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        if (static_cast<unsigned char>(c) < ' ') {
            result += fmt::format("\\{:03o}", static_cast<unsigned>(c));
        } else {
            result += c;
        }
    }
    return result + "\"";
}

/// A double that reads back as the same number.
std::string number(double value) {
    return fmt::format("{:a}", value);
}

std::string optional_number(const std::optional<double>& value) {
    return value ? number(*value) : "std::nullopt";
}

std::string literals(const std::vector<std::string>& texts) {
    std::string list;
    for (const std::string& text : texts) list += literal(text) + ", ";
    return list;
}

std::string row(const Parameter& p, std::string_view scope_and_key = "") {
    return fmt::format("    {{{}, {}, {}, {}{}}},\n", literal(p.name), number(p.value), number(p.relative_stddev),
                       literal(p.source), scope_and_key);
}

std::string datasheet(const DeviceSpec& d) {
    std::string peaks;
    for (const auto& peak : d.peak_flops_per_s) peaks += optional_number(peak) + ", ";
    std::string text = "    specs.push_back({\n";
    const auto field = [&](std::string_view name, const std::string& value) {
        text += fmt::format("        .{} = {},\n", name, value);
    };
    field("slug", literal(d.slug));
    field("name", literal(d.name));
    field("aliases", "{" + literals(d.aliases) + "}");
    field("architecture", fmt::format("Architecture::{}", name_of(d.architecture)));
    field("compute_capability_major", std::to_string(d.compute_capability_major));
    field("compute_capability_minor", std::to_string(d.compute_capability_minor));
    field("sms", std::to_string(d.sms));
    field("base_clock_hz", optional_number(d.base_clock_hz));
    field("boost_clock_hz", number(d.boost_clock_hz));
    field("memory_bytes", number(d.memory_bytes));
    field("memory_bandwidth_bytes_per_s", number(d.memory_bandwidth_bytes_per_s));
    field("inline_ecc_share", optional_number(d.inline_ecc_share));
    field("l2_bytes", number(d.l2_bytes));
    field("shared_memory_per_sm_bytes", number(d.shared_memory_per_sm_bytes));
    field("registers_per_sm", number(d.registers_per_sm));
    field("max_threads_per_sm", std::to_string(d.max_threads_per_sm));
    field("power_limit_w", number(d.power_limit_w));
    field("peak_flops_per_s", "{" + peaks + "}");
    return text + "    });\n";
}

std::vector<DeviceSpec> read_datasheets(const std::filesystem::path& folder) {
    std::vector<DeviceSpec> specs;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() == ".json") specs.push_back(read_device_spec(entry.path().string()));
    }
    std::sort(specs.begin(), specs.end(), [](const auto& a, const auto& b) { return a.slug < b.slug; });
    return specs;
}

std::string tables(const std::string& data) {
    std::string text =
        "#include \"src/io/embedded/tables.hpp\"\n\nnamespace ftax::embedded {\nnamespace {\n\n"
        "constexpr ParameterRow device_parameters[] = {\n";
    const DeviceProfileFile device = read_device_profiles(data);
    for (const ScopedParameter& p : device.parameters) {
        text += row(p.parameter, fmt::format(", ParameterScope{{{}}}, {}", static_cast<int>(p.scope), literal(p.key)));
    }
    text += fmt::format("}};\nconstexpr std::string_view fitted_on[] = {{{}}};\n\n", literals(device.fitted_on));
    std::string frameworks;
    for (const FrameworkProfile& profile : read_framework_profiles(data)) {
        const auto index = std::count(frameworks.begin(), frameworks.end(), '\n');
        text += fmt::format("constexpr ParameterRow host_parameters_{}[] = {{\n", index);
        for (const Parameter& p : profile.parameters) text += row(p);
        text += "};\n";
        frameworks += fmt::format("    {{{}, {}, {}, host_parameters_{}}},\n", literal(profile.framework),
                                  literal(profile.version), literal(profile.host), index);
    }
    text += fmt::format(
        "constexpr FrameworkProfileTable frameworks[] = {{\n{}}};\n\n}}  // namespace\n\n"
        "const DeviceProfileTable device_profile{{{}, fitted_on, device_parameters}};\n"
        "const std::span<const FrameworkProfileTable> framework_profiles = frameworks;\n\n"
        "std::vector<DeviceSpec> datasheets() {{\n    std::vector<DeviceSpec> specs;\n",
        frameworks, literal(device.version));
    for (const DeviceSpec& spec : read_datasheets(data + "/devices")) text += datasheet(spec);
    return text + "    return specs;\n}\n\n}  // namespace ftax::embedded\n";
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fputs("usage: generate DATA OUTPUT.cpp\n", stderr);
        return 2;
    }
    try {
        write_file(argv[2], tables(argv[1]));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
