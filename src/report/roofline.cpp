#include "src/report/roofline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "src/report/units.hpp"

namespace ftax::report {
namespace {

std::optional<double> peak_of(const DeviceSpec& device, std::string_view path) {
    for (int i = 0; i < math_path_count; ++i) {
        if (name_of(static_cast<MathPath>(i)) == path) return device.peak(static_cast<MathPath>(i));
    }
    return std::nullopt;
}

std::string note_of(const RooflineKernel& kernel, double device_s) {
    std::string note = fmt::format("{} × {} ({}, {}): {} each, {} of device time; {} at {} FLOP per byte",
                                   kernel.launches, kernel.op, kernel.name, kernel.path, duration(kernel.seconds),
                                   percent(kernel.launches * kernel.seconds / device_s),
                                   quantity(kernel.flops_per_s(), "FLOP/s"), significant(kernel.intensity()));
    if (kernel.roof_flops_per_s > 0) {
        note += fmt::format(", {:.0f} % of the roof", 100 * kernel.of_roof());
    }
    return note;
}

/// The slope of the memory and the flat roof of one kind of units, between two intensities.
Series roof(std::string_view path, double peak, double bandwidth, double from, double to) {
    return {.label = fmt::format("{} {}", path, quantity(peak, "FLOP/s")),
            .look = SeriesLook::reference,
            .points = {{from, from * bandwidth}, {peak / bandwidth, peak}, {to, peak}}};
}

}  // namespace

std::vector<RooflineKernel> roofline_kernels(const DeviceSpec& device, const Graph& graph,
                                             const Explanation& explanation) {
    std::map<std::tuple<std::string, std::string, std::string, double, double, double>, RooflineKernel> groups;
    for (std::size_t i = 0; i < explanation.launches.size(); ++i) {
        const OpPrediction& launch = explanation.launches[i];
        const std::string op(launch.op == no_op ? name_of(launch.host_kind) : name_of(graph.ops[launch.op].kind));
        for (const KernelDetail& detail : explanation.kernels[i]) {
            if (!(detail.flops > 0 && detail.bytes > 0 && detail.seconds > 0)) continue;
            const auto [at, added] = groups.try_emplace(
                {op, detail.name, detail.path, detail.flops, detail.bytes, detail.seconds}, RooflineKernel{detail, op});
            RooflineKernel& kernel = at->second;
            ++kernel.launches;
            if (!added) continue;
            const double slope = kernel.intensity() * device.memory_bandwidth_bytes_per_s;
            kernel.roof_flops_per_s = std::min(peak_of(device, detail.path).value_or(slope), slope);
        }
    }
    std::vector<RooflineKernel> kernels;
    for (auto& [key, kernel] : groups) kernels.push_back(std::move(kernel));
    std::stable_sort(kernels.begin(), kernels.end(), [](const RooflineKernel& a, const RooflineKernel& b) {
        return a.launches * a.seconds > b.launches * b.seconds;
    });
    return kernels;
}

Chart roofline_chart(const std::vector<RooflineKernel>& kernels, const DeviceSpec& device, std::string_view title) {
    Chart chart{.title = std::string(title), .x_label = "FLOP per byte", .y_label = "achieved FLOP/s"};
    double low = kernels.front().intensity(), high = low, device_s = 0;
    std::map<double, std::string_view> peaks;  // paths that calculate, by their rate
    for (const RooflineKernel& kernel : kernels) {
        low = std::min(low, kernel.intensity());
        high = std::max(high, kernel.intensity());
        device_s += kernel.launches * kernel.seconds;
        if (const auto peak = peak_of(device, kernel.path)) peaks.emplace(*peak, kernel.path);
    }
    const double bandwidth = device.memory_bandwidth_bytes_per_s;
    if (!peaks.empty()) high = std::max(high, 4 * peaks.rbegin()->first / bandwidth);
    for (const auto& [peak, path] : peaks) chart.series.push_back(roof(path, peak, bandwidth, low, high));
    constexpr double largest = 14, least = 3;
    for (const Bound bound : {Bound::compute, Bound::memory, Bound::latency_floor}) {
        Series series{.label = std::string(name_of(bound)), .look = SeriesLook::scatter, .points = {}, .category = 0};
        series.category = bound == Bound::compute ? 0 : bound == Bound::memory ? 2 : 1;
        for (const RooflineKernel& kernel : kernels) {
            if (kernel.bound != bound) continue;
            const double share = kernel.launches * kernel.seconds / device_s;
            series.points.push_back({kernel.intensity(), kernel.flops_per_s(),
                                     std::max(least, largest * std::sqrt(share)), note_of(kernel, device_s)});
        }
        if (!series.points.empty()) chart.series.push_back(std::move(series));
    }
    return chart;
}

}  // namespace ftax::report
