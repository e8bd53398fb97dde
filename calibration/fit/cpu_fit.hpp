#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "calibration/fit/log_fit.hpp"
#include "calibration/fit/scoped_fit.hpp"
#include "ftax/device.hpp"
#include "ftax/framework.hpp"
#include "ftax/graph.hpp"
#include "predictors/lowering/kernel_shapes.hpp"

namespace ftax::fit {

/// One measured operator: what its call dispatches, and the kernels that run one after another in it.
struct CpuRow {
    std::string group;  ///< for the report: "conv"
    std::vector<CountedKernel> kernels;
    std::array<int, host_kind_count> dispatched{};  ///< launches by kind, once per call the forward pass included
    double latency_s = 0;
};

/// What one operator dispatches and computes, as its network of one operator is lowered for a CPU.
[[nodiscard]] CpuRow cpu_row(const Graph& graph, const DeviceSpec& device, std::string_view framework);

struct CpuFit {
    DeviceProfile device;
    FrameworkProfile framework;
    FitReport report;  ///< its fold: in the fit, by group
};

/// Fits the CPU model and the framework's host costs to operators: latency = Σ dispatch + Σ kernels.
/// Throws Error{usage} for fewer rows than it takes to tell the parameters apart.
[[nodiscard]] CpuFit fit_cpu(std::span<const CpuRow> rows, const DeviceSpec& device, std::string_view framework,
                             const FitOptions& options);

}  // namespace ftax::fit
