#include "calibration/fit/cpu_fit.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "predictors/frameworks/framework_model.hpp"
#include "predictors/host/host_costs.hpp"
#include "predictors/kernels/cpu.hpp"
#include "src/core/throw_error.hpp"

namespace ftax::fit {
namespace {

constexpr std::size_t fewest_rows = 60;
/// Start of each host cost on a CPU. Source: order of magnitude of a dispatch without a kernel launch.
constexpr double host_start_s = 3e-6;
constexpr double host_log_stddev = 1.5;

std::vector<Parameter> parameters_of(const LogFit::Block& block, std::size_t rows) {
    std::vector<Parameter> parameters;
    for (const Unknown& u : block)
        set_parameter(parameters,
                      {u.name, u.value, u.relative_stddev, fmt::format("fitted: {} operators on this machine", rows)});
    return parameters;
}

}  // namespace

CpuRow cpu_row(const Graph& graph, const DeviceSpec& device, std::string_view framework) {
    CpuRow row;
    const Schedule schedule = lower(graph, device, PredictOptions{}, framework_model(framework).traits);
    const BoundShapes bound = bind(graph, {});
    ++row.dispatched[static_cast<std::size_t>(HostKind::forward)];
    for (const Launch& launch : schedule.launches) {
        const auto kernels = std::span(schedule.kernels).subspan(launch.first_kernel, launch.kernel_count);
        const bool launched = kernels.empty() || std::ranges::any_of(kernels, [&](const Kernel& kernel) {
                                  return is_launched(graph, kernel, bound);
                              });
        if (launched) ++row.dispatched[static_cast<std::size_t>(launch.host_kind)];
    }
    row.kernels = list_kernels(graph, schedule, bound);
    return row;
}

CpuFit fit_cpu(std::span<const CpuRow> rows, const DeviceSpec& device, std::string_view framework,
               const FitOptions& options) {
    if (rows.size() < fewest_rows) {
        throw_error(ErrorCode::usage, "{} usable operators are too few to fit a CPU, it takes {}", rows.size(),
                    fewest_rows);
    }
    std::vector<HostKind> kinds;
    LogFit::Block host_block;
    for (int i = 0; i < host_kind_count; ++i) {
        const bool used = std::ranges::any_of(rows, [&](const CpuRow& row) { return row.dispatched[i] > 0; });
        if (!used) continue;
        kinds.push_back(static_cast<HostKind>(i));
        host_block.push_back({fmt::format("host.{}", name_of(kinds.back())), host_start_s, host_start_s / 100,
                              host_start_s * 100, host_log_stddev});
    }
    ScopedFit engine{.kernel_class = "cpu", .options = options, .folds = false, .host = host_block};
    engine.device = [](const DeviceSpec& cpu) { return declared<kernels::CpuParameters>({}, cpu); };
    for (const CpuRow& row : rows)
        engine.rows.push_back({.device = &device, .latency_s = row.latency_s, .group = row.group});
    // The CPU dispatches and computes in turn.
    engine.latency_s = [&](std::size_t i, ScopedValues values, bool) {
        const kernels::CpuModel model{device, take_all<kernels::CpuParameters>(values, device)};
        double total = 0;
        for (const CountedKernel& kernel : rows[i].kernels)
            total += kernel.count * std::visit([&](const auto& s) { return model.seconds(s); }, kernel.shape);
        for (std::size_t kind = 0; kind < kinds.size(); ++kind)
            total += rows[i].dispatched[static_cast<std::size_t>(kinds[kind])] * values.host[kind];
        return total;
    };
    auto [report, unknowns] = solve(engine);
    return {{device, parameters_of(unknowns.devices.at(device.slug), rows.size()), "1", {}},
            {std::string(framework),
             "measured",
             device.name,
             parameters_of(unknowns.hosts.at(device.slug), rows.size()),
             {}},
            std::move(report)};
}

}  // namespace ftax::fit
