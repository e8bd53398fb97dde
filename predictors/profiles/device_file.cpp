#include "predictors/profiles/device_file.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "ftax/precision.hpp"
#include "graphs/files/escape.hpp"
#include "graphs/files/file.hpp"
#include "graphs/files/json_document.hpp"
#include "graphs/files/number.hpp"
#include "predictors/profiles/quantities.hpp"

namespace ftax {
namespace {

std::pair<int, int> parse_compute_capability(const JsonField& field) {
    const std::string text = field.text();
    const auto [before, after] = split_at(text, '.');
    const auto major = parse_integer(before), minor = parse_integer(after);
    if (!major || !minor || *major < 1 || *major > 99 || *minor < 0 || *minor > 9)
        field.fail("must be a compute capability such as \"7.5\"");
    return {static_cast<int>(*major), static_cast<int>(*minor)};
}

}  // namespace

DeviceSpec parse_device(std::string_view text, const std::string& origin) {
    const JsonField root = JsonField::parse(
        text, origin, "",
        "schema_version slug name aliases host_cpu host_slowdown kernel_gap_s architecture compute_capability notes "
        "sources sms fp32_cores_per_sm base_clock_hz boost_clock_hz memory_bytes memory_bandwidth_bytes_per_s "
        "inline_ecc_share l2_bytes l2_bytes_per_clock shared_memory_per_sm_bytes registers_per_sm max_threads_per_sm "
        "power_limit_w least_power_w power_modes shipped_mode peer_bandwidth_bytes_per_s peer_access linked_cards "
        "peak_flops_per_s");
    const Quantities quantity(root);
    DeviceSpec device;
    device.slug = root["slug"].text();
    device.name = root["name"].text();
    device.aliases = root["aliases"].texts();
    if (const auto cpu = root.find("host_cpu")) device.host_cpu = cpu->text();
    if (const auto slowdown = root.find("host_slowdown")) device.host_slowdown = quantity(*slowdown);
    if (const auto gap = root.find("kernel_gap_s")) device.kernel_gap_s = quantity(*gap);
    device.architecture = parse_architecture(root["architecture"]);
    const bool gpu = !is_cpu(device);
    if (gpu)
        std::tie(device.compute_capability_major, device.compute_capability_minor) =
            parse_compute_capability(root["compute_capability"]);
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
    if (const auto least = root.find("least_power_w")) device.least_power_w = quantity(*least);
    if (const auto modes = root.find("power_modes")) {
        for (const JsonField& mode : modes->elements()) {
            mode.allow("sms clock_hz memory_bandwidth_bytes_per_s power_limit_w source");
            quantity.check_source(mode["source"]);
            device.modes.push_back({mode.key(), mode["sms"].positive_count(), mode["clock_hz"].positive(),
                                    mode["memory_bandwidth_bytes_per_s"].positive(), mode["power_limit_w"].positive()});
        }
        const auto shipped = std::ranges::find(device.modes, root["shipped_mode"].text(), &PowerMode::name);
        if (shipped == device.modes.end()) root["shipped_mode"].fail("is none of power_modes");
        std::iter_swap(device.modes.begin(), shipped);
    }
    if (const auto link = root.find("peer_bandwidth_bytes_per_s")) device.peer_bandwidth_bytes_per_s = quantity(*link);
    if (const auto access = root.find("peer_access")) device.peer_access = quantity.flag(*access);
    if (const auto cards = root.find("linked_cards")) device.linked_cards = quantity.count(*cards);
    const JsonField peaks = root["peak_flops_per_s"];
    // The last one is recorded for readers of the file; no kernel model uses it.
    peaks.allow(
        "fp64 fp32 tf32 fp16_tensor bf16_tensor int8_tensor fp16_tensor_fp16_accumulate fp8_tensor fp4_tensor fp16");
    for (const JsonField& peak : peaks.elements()) {
        const double flops_per_s = quantity(peak);
        if (const auto path = math_path_from_name(peak.key()))
            device.peak_flops_per_s[static_cast<std::size_t>(*path)] = flops_per_s;
    }
    static_cast<void>(peaks["fp32"]);
    return device;
}

DeviceSpec read_device_spec(const std::string& path) {
    return parse_device(read_file(path), escape_terminal(path));
}

}  // namespace ftax
