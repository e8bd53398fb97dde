#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <type_traits>

#include "ftax/error.hpp"
#include "src/io/data_folder.hpp"
#include "src/io/file.hpp"

// generate DATA OUTPUT.cpp: reads a folder laid out as data/ as the program would and writes it down as C++ tables.

// Structured bindings name all members, so a new member does not compile until it is written here.

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
std::string literal(double value) {
    return fmt::format("{:a}", value);
}

std::string literal(const std::optional<double>& value) {
    return value ? literal(*value) : "std::nullopt";
}

std::string literal(int value) {
    return std::to_string(value);
}

std::string literal(Architecture architecture) {
    return fmt::format("Architecture{{{}}}", static_cast<int>(architecture));
}

/// A list in braces.
template <class List, class = std::enable_if_t<!std::is_convertible_v<const List&, std::string_view>>>
std::string literal(const List& items) {
    std::string list;
    for (const auto& item : items) list += literal(item) + ", ";
    return "{" + list + "}";
}

std::string row(const Parameter& parameter, std::string_view scope_and_key = "") {
    const auto& [name, value, relative_stddev, source] = parameter;
    return fmt::format("    {{{}, {}, {}, {}{}}},\n", literal(name), literal(value), literal(relative_stddev),
                       literal(source), scope_and_key);
}

std::string datasheet(const DeviceSpec& device) {
    const auto& [slug, name, aliases, host_cpu, architecture, compute_capability_major, compute_capability_minor, sms,
                 base_clock_hz, boost_clock_hz, memory_bytes, memory_bandwidth_bytes_per_s, inline_ecc_share, l2_bytes,
                 l2_bytes_per_clock, shared_memory_per_sm_bytes, registers_per_sm, max_threads_per_sm, power_limit_w,
                 least_power_w, peer_bandwidth_bytes_per_s, peak_flops_per_s] = device;
    const auto row = [](const auto&... members) {
        return fmt::format("    specs.push_back({{{}}});\n", fmt::join(std::array{literal(members)...}, ", "));
    };
    return row(slug, name, aliases, host_cpu, architecture, compute_capability_major, compute_capability_minor, sms,
               base_clock_hz, boost_clock_hz, memory_bytes, memory_bandwidth_bytes_per_s, inline_ecc_share, l2_bytes,
               l2_bytes_per_clock, shared_memory_per_sm_bytes, registers_per_sm, max_threads_per_sm, power_limit_w,
               least_power_w, peer_bandwidth_bytes_per_s, peak_flops_per_s);
}

std::vector<DeviceSpec> read_datasheets(const std::string& folder) {
    std::vector<DeviceSpec> specs;
    for (const auto& path : json_files(folder)) specs.push_back(read_device_spec(path.string()));
    std::ranges::sort(specs, [](const auto& a, const auto& b) { return a.slug < b.slug; });
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
    text += fmt::format("}};\nconstexpr std::string_view fitted_on[] = {};\n", literal(fitted_on));
    text += fmt::format("constexpr std::array<PartlyFittedRow, {}> partly_fitted_on{{{{\n", partly_fitted_on.size());
    for (const auto& [slug, kernels] : partly_fitted_on) {
        text += fmt::format("    {{{}, {{{}}}}},\n", literal(slug), fmt::join(kernels, ", "));
    }
    text += "}};\n\n";
    std::string frameworks;
    for (const auto& [framework, version, host, parameters, warnings, correlation, own_model] :
         read_framework_profiles(data)) {
        if (!warnings.empty()) throw Error(ErrorCode::profile, warnings.front());
        const auto index = std::ranges::count(frameworks, '\n');
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
