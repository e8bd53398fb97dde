#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "ftax/error.hpp"
#include "src/io/data_folder.hpp"
#include "src/io/device_file.hpp"
#include "src/io/file.hpp"

// generate DATA OUTPUT.cpp: reads a folder laid out as data/ as the program would and writes it down as C++ tables.

// Structured bindings name all members of what is written: one that is added does not compile until it is written here.

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

std::string row(const Parameter& parameter, std::string_view scope_and_key = "") {
    const auto& [name, value, relative_stddev, source] = parameter;
    return fmt::format("    {{{}, {}, {}, {}{}}},\n", literal(name), number(value), number(relative_stddev),
                       literal(source), scope_and_key);
}

std::string datasheet(const DeviceSpec& device) {
    const auto& [slug, name, aliases, host_cpu, architecture, compute_capability_major, compute_capability_minor, sms,
                 base_clock_hz, boost_clock_hz, memory_bytes, memory_bandwidth_bytes_per_s, inline_ecc_share, l2_bytes,
                 l2_bytes_per_clock, shared_memory_per_sm_bytes, registers_per_sm, max_threads_per_sm, power_limit_w,
                 least_power_w, peer_bandwidth_bytes_per_s, peak_flops_per_s] = device;
    std::string text = "    specs.push_back({\n";
    const auto field = [&](std::string_view member, const std::string& value) {
        text += fmt::format("        .{} = {},\n", member, value);
    };
    field("slug", literal(slug));
    field("name", literal(name));
    field("aliases", "{" + literals(aliases) + "}");
    field("host_cpu", literal(host_cpu));
    field("architecture", fmt::format("Architecture{{{}}}", static_cast<int>(architecture)));
    field("compute_capability_major", std::to_string(compute_capability_major));
    field("compute_capability_minor", std::to_string(compute_capability_minor));
    field("sms", std::to_string(sms));
    field("base_clock_hz", optional_number(base_clock_hz));
    field("boost_clock_hz", number(boost_clock_hz));
    field("memory_bytes", number(memory_bytes));
    field("memory_bandwidth_bytes_per_s", number(memory_bandwidth_bytes_per_s));
    field("inline_ecc_share", optional_number(inline_ecc_share));
    field("l2_bytes", number(l2_bytes));
    field("l2_bytes_per_clock", optional_number(l2_bytes_per_clock));
    field("shared_memory_per_sm_bytes", number(shared_memory_per_sm_bytes));
    field("registers_per_sm", number(registers_per_sm));
    field("max_threads_per_sm", std::to_string(max_threads_per_sm));
    field("power_limit_w", number(power_limit_w));
    field("least_power_w", optional_number(least_power_w));
    field("peer_bandwidth_bytes_per_s", optional_number(peer_bandwidth_bytes_per_s));
    std::string peaks;
    for (const auto& peak : peak_flops_per_s) peaks += optional_number(peak) + ", ";
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
    const auto [device_version, fitted_on, partly_fitted_on, device_parameters] = read_device_profiles(data);
    for (const auto& [parameter, scope, key] : device_parameters) {
        text += row(parameter, fmt::format(", ParameterScope{{{}}}, {}", static_cast<int>(scope), literal(key)));
    }
    text += fmt::format("}};\nconstexpr std::string_view fitted_on[] = {{{}}};\n", literals(fitted_on));
    text += fmt::format("constexpr std::array<PartlyFittedRow, {}> partly_fitted_on{{{{\n", partly_fitted_on.size());
    for (const auto& [slug, kernels] : partly_fitted_on) {
        text += fmt::format("    {{{}, {{{}}}}},\n", literal(slug), fmt::join(kernels, ", "));
    }
    text += "}};\n\n";
    std::string frameworks;
    for (const auto& [framework, version, host, parameters, warnings, correlation, own_model] :
         read_framework_profiles(data)) {
        if (!warnings.empty()) throw Error(ErrorCode::profile, warnings.front());
        const auto index = std::count(frameworks.begin(), frameworks.end(), '\n');
        text += fmt::format("constexpr ParameterRow host_parameters_{}[] = {{\n", index);
        for (const Parameter& parameter : parameters) text += row(parameter);
        text += "};\n";
        frameworks += fmt::format("    {{{}, {}, {}, host_parameters_{}}},\n", literal(framework), literal(version),
                                  literal(host), index);
    }
    text += fmt::format(
        "constexpr FrameworkProfileTable frameworks[] = {{\n{}}};\n\n}}  // namespace\n\n"
        "const DeviceProfileTable device_profile{{{}, fitted_on, partly_fitted_on, device_parameters}};\n"
        "const std::span<const FrameworkProfileTable> framework_profiles = frameworks;\n\n"
        "std::vector<DeviceSpec> datasheets() {{\n    std::vector<DeviceSpec> specs;\n",
        frameworks, literal(device_version));
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
