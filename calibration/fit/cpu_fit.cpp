#include "calibration/fit/cpu_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "calibration/fit/log_fit.hpp"
#include "ftax/error.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/kernels/cpu.hpp"
#include "predictors/lowering/kernel_shapes.hpp"

namespace ftax::fit {
namespace {

constexpr std::size_t fewest_rows = 60;
/// Start of each host cost on a CPU. Source: order of magnitude of a dispatch without a kernel launch.
constexpr double host_start_s = 3e-6;
constexpr double host_log_stddev = 1.5;

/// Latency of one row: the CPU dispatches and computes in turn.
struct CpuLatency {
    const CpuRow* row;
    const DeviceSpec* device;
    const std::vector<HostKind>* kinds;

    double operator()(double const* const* blocks) const {
        kernels::CpuModel model{*device, {}};
        std::size_t next = 0;
        visit_parameters(model.parameters, *device,
                         [&](std::string_view, double& value, const ParameterSpec&) { value = blocks[0][next++]; });
        double total = 0;
        for (const KernelShape& shape : row->kernels) {
            total += std::visit([&](const auto& s) { return model.seconds(s); }, shape);
        }
        for (std::size_t i = 0; i < kinds->size(); ++i) {
            const int count = row->dispatched[static_cast<std::size_t>((*kinds)[i])];
            if (count > 0) total += static_cast<double>(count) * blocks[1][i];
        }
        return total;
    }
};

std::vector<Parameter> parameters_of(const LogFit::Block& block, std::size_t rows) {
    std::vector<Parameter> parameters;
    for (const Unknown& u : block) {
        parameters.push_back(
            {u.name, u.value, u.relative_stddev, fmt::format("fitted: {} operators on this machine", rows)});
    }
    std::sort(parameters.begin(), parameters.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return parameters;
}

}  // namespace

CpuRow cpu_row(const Graph& graph, const DeviceSpec& device, std::string_view framework) {
    CpuRow row;
    const Schedule schedule =
        lower(graph, device, PredictOptions{}, traits_on(device, framework_model(framework).traits));
    const BoundShapes bound = bind(graph, {});
    ++row.dispatched[static_cast<std::size_t>(HostKind::forward)];
    for (const Launch& launch : schedule.launches) {
        bool launched = launch.kernel_count == 0;
        for (std::uint32_t i = 0; i < launch.kernel_count; ++i) {
            const Kernel& kernel = schedule.kernels[launch.first_kernel + i];
            if (!is_launched(graph, kernel, bound)) continue;
            launched = true;
            row.kernels.push_back(kernel_shape(graph, schedule, kernel, bound, false));
        }
        if (launched) ++row.dispatched[static_cast<std::size_t>(launch.host_kind)];
    }
    return row;
}

CpuFit fit_cpu(std::span<const CpuRow> rows, const DeviceSpec& device, std::string_view framework,
               const FitOptions& options) {
    if (rows.size() < fewest_rows) {
        throw Error(ErrorCode::usage,
                    fmt::format("{} usable operators are too few to fit a CPU, it takes {}", rows.size(), fewest_rows));
    }
    LogFit::Block kernel_block;
    kernels::CpuParameters declared;
    visit_parameters(declared, device, [&](std::string_view name, double&, const ParameterSpec& spec) {
        kernel_block.push_back(unknown(std::string(name), spec));
    });
    std::vector<HostKind> kinds;
    LogFit::Block host_block;
    for (int i = 0; i < host_kind_count; ++i) {
        const bool used =
            std::any_of(rows.begin(), rows.end(), [&](const CpuRow& row) { return row.dispatched[i] > 0; });
        if (!used) continue;
        kinds.push_back(static_cast<HostKind>(i));
        host_block.push_back({fmt::format("host.{}", name_of(kinds.back())), host_start_s, host_start_s / 100,
                              host_start_s * 100, host_log_stddev});
    }
    LogFit problem(options);
    const std::vector<std::size_t> blocks{problem.add_block(kernel_block), problem.add_block(host_block)};
    for (const CpuRow& row : rows) problem.add_row(CpuLatency{&row, &device, &kinds}, row.latency_s, blocks);

    CpuFit fit;
    fit.summary = problem.solve();
    fit.device = {device, parameters_of(problem.block(0), rows.size()), "1", {}};
    fit.framework = {std::string(framework), "measured", device.name, parameters_of(problem.block(1), rows.size()), {}};

    std::map<std::string, std::vector<double>> errors;
    std::vector<double> all;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        all.push_back(problem.log_error(i));
        errors[rows[i].group].push_back(all.back());
    }
    for (auto& [group, list] : errors) fit.errors.push_back(summarize(group, std::move(list)));
    fit.errors.push_back(summarize("all", std::move(all)));
    return fit;
}

}  // namespace ftax::fit
