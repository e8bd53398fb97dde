#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibration/fit/framework_fit.hpp"
#include "calibration/fit/log_fit.hpp"
#include "calibration/fit/model_fit.hpp"
#include "calibration/fit/scoped_fit.hpp"
#include "ftax/device.hpp"
#include "ftax/framework.hpp"
#include "ftax/graph.hpp"
#include "predictors/profiles/profile_file.hpp"

/// One GPU and one framework, fitted to rows that were measured on that machine. Ratios of the generation stay.
namespace ftax::fit {

struct GpuFit {
    DeviceProfileFile profile;  ///< `start` with the parameters of this device replaced
    FitReport report;  ///< folds: in the fit; each group predicted by a fit without it and a fifth of the others
};

/// Fits what one device does differently from its generation: the clocks it sustains on CUDA cores and tensor cores,
/// the bandwidth it reaches, the shortest time a kernel takes and, where its power limit holds it back, the energy of
/// an operation. All others, and those that no row determines, keep the values of `start`. The source of each parameter
/// holds the left-out error. Throws Error{usage} for fewer rows than it takes.
[[nodiscard]] GpuFit fit_gpu(std::span<const ModelRow> rows, const DeviceSpec& device, const DeviceProfileFile& start,
                             const FitOptions& options = {});

struct HostFit {
    FrameworkProfile profile;
    FitReport report;  ///< folds: in the fit, by model or operator; each of them left out
};

/// What the CUDA runtime costs without a framework, as ftax_cuda_probe measured it (quantity → SI value).
using RuntimeQuantities = std::map<std::string, double>;

/// The gap between two kernels as a framework launches them, in a stream or in a CUDA graph, if it was measured.
[[nodiscard]] std::optional<double> kernel_gap_s(const RuntimeQuantities& runtime, const FrameworkModel& framework);

/// The parameters of a framework profile that the runtime decides: launch_latency_s and kernel_gap_s, as far as they
/// were measured, within their bounds.
[[nodiscard]] std::vector<Parameter> runtime_parameters(const RuntimeQuantities& runtime,
                                                        const FrameworkModel& framework);

/// Fits the host costs of one framework on one machine to host times of asynchronous calls (HostRow::measured_s; what
/// else a row says of the device does not count). What `runtime` measured enters the profile as it is. Kinds that no
/// row counts keep their ratio to the others: they move with the machine's scale. The cost of a BLAS library call is
/// collinear with the operators that make it; it stays. Few rows set its scale alone. Throws Error{usage} without any.
[[nodiscard]] HostFit fit_machine_host(std::span<const HostRow> rows, const FrameworkProfile& start,
                                       const std::string& host, const RuntimeQuantities& runtime = {},
                                       const FitOptions& options = {});

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
