#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ftax/equations.hpp"
#include "ftax/precision.hpp"
#include "ftax/work.hpp"
#include "graphs/ir/operands.hpp"
#include "graphs/ir/symbol_range.hpp"
#include "predictors/analysis/log_posterior.hpp"
#include "predictors/kernels/all_reduce.hpp"
#include "predictors/kernels/pass_power.hpp"
#include "predictors/lowering/math_path.hpp"
#include "predictors/steps/evidence.hpp"
#include "predictors/steps/steps.hpp"

namespace ftax {
namespace {

/// Longest measured device time. Source: longformer, batch 512, Quadro RTX 8000 in framework_tax.csv.
constexpr double longest_measured_s = 8.8;
/// Standard deviation added per factor e beyond the measured range. Source: a guess; there is no data.
constexpr double extrapolation_stddev = 0.1;

/// Widens the device's uncertainty beyond the longest measured run, with a warning. Returns what it adds.
double set_extrapolation(Prediction& result) {
    if (result.device_s <= longest_measured_s) return 0;
    const double ratio = result.device_s / longest_measured_s;
    const double stddev = extrapolation_stddev * std::log(ratio);
    result.device_relative_stddev = std::hypot(result.device_relative_stddev, stddev);
    result.warnings.push_back(
        fmt::format("extrapolated: {:.1f} s of device time is {:.1f} times the longest run that was measured",
                    result.device_s, ratio));
    return stddev;
}

/// A copy between pageable memory, the default of frameworks, and the device: a call, then bytes at a rate.
/// Buffers of a captured engine are pinned (cudaMemcpyAsync of pageable memory waits): 24 of PCIe 4.0's 31.5 GB/s.
constexpr double copy_call_s = 7e-6, pageable_bytes_per_s = 3e9, pageable_ratio = 2.2, pinned_share = 0.76;

/// Returns the time to copy inputs to the device and outputs back, in the type that the run stores them in, engines in
/// that of the file, captured engines in that of the run; caches stay on the device.
double copies_s(const PreparedModel& prepared, const BoundShapes& bound) {
    const Graph& graph = prepared.graph;
    const LoweringTraits& traits = prepared.model.traits;
    const bool pinned = traits.engine && traits.host_kind == HostKind::graph_node;
    const double bus = prepared.device.device.peer_bandwidth_bytes_per_s.value_or(kernels::pcie4_bytes_per_s);
    const double pinned_bytes_per_s = pinned_share * std::min(bus, kernels::pcie4_bytes_per_s);  // faster buses as well
    const int captured_bits = bits_of(precision_spec(prepared.options.precision).activation);
    double seconds = 0;
    for (const auto* tensors : {&graph.inputs, &graph.outputs}) {
        for (const TensorId id : *tensors) {
            const Tensor& tensor = graph.tensors[id];
            if (!tensor.known_shape || is_cache_name(tensor.name)) continue;
            const DType type = traits.engine ? tensor.dtype : prepared.schedule.storage[id];
            const int bits = pinned ? std::min(bits_of(type), captured_bits) : bits_of(type);
            const double bytes = static_cast<double>(element_count(tensor, bound)) * bits / 8;
            seconds += copy_call_s + bytes / (pinned ? pinned_bytes_per_s : pageable_bytes_per_s);
        }
    }
    return seconds;
}

}  // namespace

void set_interval(Prediction& result) {
    const LogNormal host_time{result.host_s, result.host_relative_stddev};
    const LogNormal device_time{result.device_s, result.device_relative_stddev};
    const double scale = (result.latency_s - result.copies_s) / result.closed_form_s;
    result.low_s =
        scale * quantile_of_maximum(host_time, device_time, -equations::normal_90) + result.copies_s / pageable_ratio;
    result.high_s =
        scale * quantile_of_maximum(host_time, device_time, equations::normal_90) + result.copies_s * pageable_ratio;
}

namespace {

void set_coverage(const PreparedModel& prepared, const BoundShapes& bound, const LaunchTimes& times,
                  Prediction& result) {
    if (prepared.guesses == 0) return;
    double guessed_s = 0;
    for (std::size_t i = 0; const Launch& launch : prepared.schedule.launches) {
        const LaunchCosts& costs = times.costs[prepared.first_equal_launch[++i]];
        if (launch.op != no_op && prepared.guessed[launch.op]) guessed_s += costs.host_s + costs.device_s;
    }
    const double total_s = result.host_s + result.device_s;
    result.coverage.nodes = 1 - static_cast<double>(prepared.guesses) / static_cast<double>(prepared.graph.ops.size());
    result.coverage.flops = modelled_flops(prepared.graph, bound, prepared.guessed);
    result.coverage.time = total_s > 0 ? 1 - guessed_s / total_s : 1;
    constexpr double nothing = 0.001;
    if (std::min(result.coverage.flops, result.coverage.time) < nothing)
        result.warnings.emplace_back("almost none of the model's work is modelled: the latency is unreliable");
    for (std::string& warning : warnings_of_guesses(prepared.graph, prepared.guessed))
        result.warnings.push_back(std::move(warning));
}

void warn_of_ranges(const Graph& graph, const ShapeBindings& bindings, Prediction& result) {
    for (const SymbolRange& range : graph.ranges) {
        const auto given = value_of(range, bindings);
        if (!given) continue;
        std::string warning = range_warning(range, *given);
        if (!warning.empty()) result.warnings.push_back(std::move(warning));
    }
}

/// The requested precision replaces that of the file.
void warn_of_precision(const PreparedModel& prepared, Prediction& result) {
    const PrecisionSpec& precision = precision_spec(prepared.options.precision);
    const bool built = prepared.model.traits.engine || prepared.model.traits.calls_engines;
    if (prepared.widened) {
        result.warnings.push_back(
            fmt::format("int8: {} has no tensor cores for it, the engine runs in f16", prepared.device.device.name));
    } else if (prepared.quantised_by_file) {
        result.warnings.push_back(
            fmt::format("the model specifies its quantised layers; {} applies to the rest", precision.name));
    } else if (built && precision.precision == Precision::fp8) {
        result.warnings.push_back(
            "fp8: linear layers, norms and their outputs, and attention where the version and card have an fp8 kernel "
            "(10.6 and later, Ada and newer); the rest stays bf16; not validated on measured rows");
    } else if (built && precision.precision == Precision::int8) {
        result.warnings.push_back(
            "int8: convolutions, linear layers, norms, pooling and their outputs, and attention with heads of 64 and "
            "up to 384 tokens where the version and card have the plugin's kernel; softmax and the rest stay f16");
    } else if (precision.quantizes_weights()) {
        const std::string_view rest = precision.is_of_gguf() ? ", experts and embeddings; norms and attention"
                                                             : " and experts; embeddings, norms, attention and heads";
        result.warnings.push_back(
            fmt::format("{}: linear layers{} stay {}", precision.name, rest, name_of(precision.storage)));
    }
    const DType weights = prepared.weights;
    if (weights == DType::f32 || storage_type(precision.precision) != DType::f32) return;
    result.warnings.push_back(
        fmt::format("the model's weights are {}, the prediction is for {}; use precision {} to keep them",
                    name_of(weights), precision.name, weights == DType::f16 ? "fp16" : "bf16"));
}

void warn_of_host(const PreparedModel& prepared, Prediction& result) {
    const DeviceSpec& device = prepared.device.device;
    if (prepared.has_foreign_host())
        result.warnings.push_back(fmt::format(
            "{}: runs on its own {}; the host costs are those of an x86 CPU{} and may be off by a factor of 3: "
            "calibrate them with --anchor",
            device.slug, device.host_cpu,
            device.host_slowdown ? fmt::format(", times {:g},", *device.host_slowdown) : ""));
    const std::vector<Launch>& launches = prepared.schedule.launches;
    const auto runs_on_host = [](const Launch& launch) { return launch.on_host; };
    const auto first = std::find_if(launches.begin(), launches.end(), runs_on_host);
    if (first == launches.end()) return;
    result.warnings.push_back(fmt::format(
        "{} of {} operators ({}, ...) have no CUDA kernel in ONNX Runtime: they run on the CPU, with copies "
        "both ways; their times are order-of-magnitude estimates",
        std::count_if(first, launches.end(), runs_on_host), prepared.graph.ops.size(),
        prepared.graph.ops[first->op].source));
}

std::vector<Component> widest_first(const Components& parts) {
    std::vector<Component> named(parts.begin(), std::ranges::find(parts, std::string_view(), &Component::name));
    std::ranges::stable_sort(named, std::ranges::greater(), &Component::log_stddev);
    return named;
}

}  // namespace

Prediction summarise(const PreparedModel& prepared, const BoundShapes& bound, const ShapeBindings& bindings,
                     const KernelPlans& plans, const LaunchTimes& times, std::vector<Span>& spans,
                     Explanation* explanation) {
    const HostCosts& costs = prepared.costs;
    const DeviceSpec& device = prepared.device.device;
    Prediction result;
    double energy_j = 0;
    double calls_s = 0;               // the host's second scalar
    double gaps_s = 0;                // between kernels of a device that the host keeps busy
    std::array<double, 4> bound_s{};  // device time by its limiter
    std::array<double, factor_count> class_s{};
    const TimelineOptions timeline = prepared.timeline_options();
    for (const std::uint32_t i : prepared.first_equal_launch) {
        const LaunchCosts& op = times.costs[i];
        result.host_s += op.host_s;
        result.device_s += op.device_s;
        gaps_s += op.gaps_s(costs.kernel_gap_s);
        class_s[static_cast<std::size_t>(op.factor)] += op.device_s;
        if (op.blas_call) calls_s += costs.blas_call_s;
        if (op.host_kind == HostKind::engine_call) calls_s += op.host_s;
        result.sm_active += op.sm_active_s;
        result.warp_occupancy += op.warps_active_s;
        result.kernels += op.kernels;
        bound_s[static_cast<std::size_t>(op.bound)] += op.device_s;
    }
    for (const std::uint32_t i : prepared.first_equal) energy_j += plans[i] ? plans[i]->energy_j : 0;
    result.closed_form_s = equations::closed_form_s(result.host_s, result.device_s);
    result.latency_s = times.follows_s + (prepared.synchronized() ? simulate(times.on_clocks, timeline, spans)
                                                                  : period(times.on_clocks, timeline));
    // A server draws no less while the device waits for the host (serving.csv).
    const double waits_s = prepared.model.traits.serves_sequences ? result.latency_s - result.device_s : 0;
    if (!is_cpu(device)) result.power_w = mean_power_w(device, result.latency_s, result.sm_active + waits_s, energy_j);
    result.sm_active /= result.latency_s;
    result.warp_occupancy /= result.latency_s;
    const DeviceFactors& factors = prepared.device.factors;
    const double call_share = result.host_s > 0 ? calls_s / result.host_s : 0;
    result.host_relative_stddev = costs.host_relative_stddev(call_share);
    const double host_share = equations::decisive_share(result.host_s, result.device_s);
    if (prepared.framework.evidence != nullptr && !prepared.model.traits.serves_sequences && !is_cpu(device)) {
        const Distance distance = distance_from(*prepared.framework.evidence, prepared.run, class_s);
        result.evidence = grade(distance, host_share * result.host_relative_stddev);
        result.evidence_relative_stddev = distance.log_stddev();
        if (explanation != nullptr)
            explanation->evidence = describe(distance, prepared.run, prepared.framework.framework);
    }
    result.device_relative_stddev =
        std::hypot(costs.device_relative_stddev, factors.log_stddev(class_s), result.evidence_relative_stddev);
    const double extrapolation = set_extrapolation(result);
    if (prepared.options.copies) result.latency_s += result.copies_s = copies_s(prepared, bound);
    set_interval(result);
    const Components parts =
        components(costs, host_share, call_share, factors, class_s, extrapolation, result.evidence_relative_stddev);
    const Component widest = *std::ranges::max_element(parts, {}, &Component::log_stddev);
    result.widest_component = widest.name;
    result.widest_component_stddev = widest.log_stddev;
    if (explanation != nullptr) explanation->interval = widest_first(parts);
    const auto longest = std::max_element(bound_s.begin() + 1, bound_s.end());  // after Bound::host
    result.bound = result.host_s >= result.device_s + gaps_s
                       ? Bound::host
                       : static_cast<Bound>(std::distance(bound_s.begin(), longest));
    set_coverage(prepared, bound, times, result);
    warn_of_ranges(prepared.graph, bindings, result);
    warn_of_precision(prepared, result);
    warn_of_host(prepared, result);
    return result;
}

}  // namespace ftax
