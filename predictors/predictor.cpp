#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "ftax/equations.hpp"
#include "ftax/precision.hpp"
#include "ftax/predict.hpp"
#include "ftax/work.hpp"
#include "predictors/analysis/log_posterior.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/host/host_costs.hpp"
#include "predictors/kernels/all_reduce.hpp"
#include "predictors/kernels/device_model.hpp"
#include "predictors/kernels/kernel_factor.hpp"
#include "predictors/kernels/pass_power.hpp"
#include "predictors/lowering/equal_kernels.hpp"
#include "predictors/lowering/kernel_shapes.hpp"
#include "predictors/lowering/lowering.hpp"
#include "predictors/lowering/math_path.hpp"
#include "predictors/lowering/rewrites.hpp"
#include "predictors/memory.hpp"
#include "predictors/timeline/launch_costs.hpp"
#include "predictors/timeline/timeline.hpp"
#include "src/core/operands.hpp"
#include "src/core/symbol_range.hpp"

namespace ftax {
namespace {

/// Source: longformer, batch 512, Quadro RTX 8000, the longest row of framework_tax.csv.
constexpr double longest_measured_s = 8.8;
/// Standard deviation that a factor e beyond the measured range adds. Source: a guess; no data can tell.
constexpr double extrapolation_stddev = 0.1;

/// The half-precision type of the model's weights; f32 where they have none.
DType half_type_of_weights(const Graph& graph) {
    for (const Tensor& tensor : graph.tensors) {
        if (tensor.role == TensorRole::weight && (tensor.dtype == DType::f16 || tensor.dtype == DType::bf16))
            return tensor.dtype;
    }
    return DType::f32;
}

/// What a prediction keeps of a kernel's plan.
struct PlannedKernel : kernels::KernelTime {
    Factor factor = Factor::elementwise;
    Bound bound = Bound::latency_floor;
    kernels::Occupancy occupancy;
    std::int32_t launches = 1;  ///< one after the other; the times are those of all
    double energy_s = 0;        ///< see kernels::energy_seconds
};

/// Does the graph read a cache of earlier tokens? Symbols and inputs are named as in transformers' exports.
bool has_token_cache(const Graph& graph) {
    const std::vector<std::string>& symbols = graph.expressions.symbols();
    return std::find(symbols.begin(), symbols.end(), cached_tokens) != symbols.end() ||
           std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](TensorId input) {
               const std::string& name = graph.tensors[input].name;
               return name.find("past") != std::string::npos || name.find("cache") != std::string::npos;
           });
}

/// Throws Error{usage} where the framework has no way to run the model.
const Graph& checked(const Graph& graph, const FrameworkModel& model) {
    check_operands(graph);
    if (model.traits.serves_sequences && !has_token_cache(graph)) {
        throw Error(ErrorCode::usage,
                    fmt::format("{} serves language models that generate: {} reads no cache of earlier tokens",
                                model.name, graph.name));
    }
    return graph;
}

/// What the reference host adds to the scale of a module with its own CPU. Source: one TransformerEngine Linear takes
/// 13.5 µs on an H100 with a Xeon, 33.2 on a GH200, 37.1 on a GB200 (TransformerEngine#2053).
constexpr double foreign_host_log_stddev = 0.6;

}  // namespace

struct Predictor::State {
    State(const Graph& source, DeviceProfile device_profile, FrameworkProfile framework_profile, PredictOptions run)
        : device(std::move(device_profile)),
          framework(std::move(framework_profile)),
          options(executed(run)),
          model(model_of(framework)),
          engine_is_channels_last(is_channels_last(model.traits, run.precision)),
          own_graph(optimised_graph(checked(source, model), model, device.device, options)),
          graph(own_graph ? *own_graph : source),
          guessed(guessed_operators(graph)),
          guesses(static_cast<std::size_t>(std::count(guessed.begin(), guessed.end(), true))),
          schedule(lower(graph, device.device, options, traits_on(device.device, model.traits))),
          first_equal(first_equal_kernels(graph, schedule)),
          first_equal_launch(first_equal_launches(graph, schedule, first_equal)),
          kernel_models(device_model(device)),
          costs(host_costs(framework, options.precision)),
          weights(half_type_of_weights(source)) {
        widened = options.precision != run.precision;
        quantised_by_file = std::any_of(graph.ops.begin(), graph.ops.end(),
                                        [](const Op& op) { return !op.text(rewrites::operands).empty(); });
        if (has_foreign_host())
            costs.scale_relative_stddev = std::hypot(costs.scale_relative_stddev, foreign_host_log_stddev);
    }

    /// Whether the host costs are those of the x86 reference, while the device comes with a CPU of its own.
    bool has_foreign_host() const { return framework.host == "reference" && !device.device.host_cpu.empty(); }

    /// A builder without kernels of int8 for the chip's tensor cores takes those of f16. Source: NVIDIA's tables of
    /// BERT (demo/BERT), V100: int8 takes 1.0 to 1.1 times what fp16 does.
    PredictOptions executed(PredictOptions run) const {
        const bool without = !device.device.peak(MathPath::int8_tensor) && device.device.peak(MathPath::fp16_tensor);
        if (model_of(framework).traits.engine && run.precision == Precision::int8 && without)
            run.precision = Precision::fp16;
        return run;
    }

    DeviceProfile device;
    FrameworkProfile framework;
    PredictOptions options;
    const FrameworkModel& model;
    bool engine_is_channels_last;
    std::optional<Graph> own_graph;
    const Graph& graph;
    std::vector<bool> guessed;  ///< by operator
    std::size_t guesses;        ///< how many they are
    Schedule schedule;
    std::vector<std::uint32_t> first_equal, first_equal_launch;
    DeviceModel kernel_models;
    HostCosts costs;
    DType weights;         ///< as half_type_of_weights() has it
    bool widened = false;  ///< int8 is asked for, f16 executed
    bool quantised_by_file = false;

    BoundShapes bound;
    std::vector<std::optional<PlannedKernel>> plans;  ///< of `schedule.kernels`; empty where not launched
    std::vector<TimedLaunch> launches;
    std::vector<LaunchCosts> operators;
    std::vector<Span> spans;
    double slowdown = 0;         ///< see PassPower
    std::int64_t sequences = 1;  ///< that each forward call serves
    bool captured = false;       ///< the forward call is one CUDA graph

    PlannedKernel all_reduce(const Op& op) const {
        const TensorId sum = op.outputs[0];
        const double bytes =
            static_cast<double>(element_count(graph.tensors[sum], bound)) * bits_of(schedule.storage[sum]) / 8;
        PlannedKernel planned;
        const bool own_kernels =
            model.traits.serves_sequences && options.libraries.engine >= model.traits.sums_by_itself_from;
        const auto sum_s = own_kernels ? kernels::served_all_reduce_s : kernels::all_reduce_s;
        planned.seconds =
            sum_s(bytes, op.integer("ranks", 1),
                  device.device.peer_bandwidth_bytes_per_s.value_or(device.device.memory_bandwidth_bytes_per_s));
        planned.bound = Bound::memory;
        return planned;
    }

    /// Plans the kernels of the binding, equal ones once.
    void plan_kernels() {
        plans.assign(schedule.kernels.size(), std::nullopt);
        for (std::size_t i = 0; i < schedule.kernels.size(); ++i) {
            const Kernel& kernel = schedule.kernels[i];
            if (first_equal[i] < i) {
                plans[i] = plans[first_equal[i]];
            } else if (is_launched(graph, kernel, bound)) {
                if (kernel.op != no_op && graph.ops[kernel.op].kind == OpKind::all_reduce) {
                    plans[i] = all_reduce(graph.ops[kernel.op]);
                    continue;
                }
                const auto shape = kernel_shape(graph, schedule, kernel, bound, engine_is_channels_last);
                const auto planned = plan(kernel_models, shape, kernel.path);
                const Factor factor = factor_of(shape, kernel.path);
                const auto times = static_cast<std::int32_t>(std::min<std::int64_t>(
                    repetitions(graph, kernel, bound), std::numeric_limits<std::int32_t>::max()));
                const double scale = device.factors.scale(factor) * times;
                plans[i] = {{scale * planned.seconds, scale * planned.power_limited_s},
                            factor,
                            planned.bound(),
                            occupancy(planned, device.device.sms, device.device.max_threads_per_sm),
                            times,
                            scale * kernels::energy_seconds(planned)};
            }
        }
    }

    std::vector<KernelDetail> details(const Launch& launch) const {
        std::vector<KernelDetail> result;
        for (std::uint32_t i = launch.first_kernel; i < launch.first_kernel + launch.kernel_count; ++i) {
            const Kernel& kernel = schedule.kernels[i];
            if (!is_launched(graph, kernel, bound)) continue;
            result.push_back(kernel_detail(
                kernel_models, kernel_shape(graph, schedule, kernel, bound, engine_is_channels_last), kernel.path));
            const PlannedKernel& planned = *plans[i];
            result.back().seconds =
                planned.seconds + slowdown * throttling_seconds(planned.seconds, planned.power_limited_s);
        }
        return result;
    }

    /// The symbols of a step that generates: one new token for each of `batch` sequences. Others count as none.
    void find_step(const ShapeBindings& bindings) {
        const auto batch = bindings.find("batch");
        const auto seq = bindings.find("seq");
        sequences = batch == bindings.end() ? 1 : batch->second;
        captured = has(options.libraries, model.traits.captures_decoding_from) && seq != bindings.end() &&
                   seq->second == 1 && sequences <= model.traits.most_captured_sequences &&
                   device.device.compute_capability_major >= model.traits.captures_from_capability_major;
    }

    bool calls_blas(const Launch& launch) const {
        if (captured) return false;
        if (launch.blas_call != BlasCall::at_batch_one) return launch.blas_call == BlasCall::always;
        return bound[graph.tensors[graph.ops[launch.op].inputs[0]].shape[0]] == 1;
    }

    /// Time of an operator that the CPU computes, and of its copies. Orders of magnitude: pinned memory over PCIe 3.0
    /// x16, eight cores with vector instructions of 8 bits, one channel of memory.
    double on_host_s(const Launch& launch) const {
        if (!launch.on_host) return 0;
        constexpr double copied_bytes_per_s = 12e9, operations_per_s = 2e11, touched_bytes_per_s = 10e9;
        double copied = 0;
        for (const TensorId id : launch.crossing)
            copied +=
                static_cast<double>(element_count(graph.tensors[id], bound)) * bits_of(graph.tensors[id].dtype) / 8;
        const Work work = work_of(graph, graph.ops[launch.op], bound);
        return copied / copied_bytes_per_s +
               std::max(static_cast<double>(work.flops) / operations_per_s,
                        static_cast<double>(work.read_bytes + work.write_bytes) / touched_bytes_per_s);
    }

    /// What further kernels of one call take the host; a CUDA graph has them already.
    double step_launch_s(const LaunchCosts& costed, std::uint32_t further_calls = 0) const {
        return costed.host_kind == HostKind::graph_node ? 0
                                                        : (costed.step_launches + further_calls) * costs.step_launch_s;
    }

    /// Costs one launch: its kernels on the device, its dispatch on the host.
    void time_launch(const Launch& launch, TimedLaunch& timed, LaunchCosts& prediction) const {
        double longest_s = 0;
        prediction = {{.op = launch.op, .host_kind = launch.host_kind, .bound = Bound::host}};
        for (std::uint32_t i = 0; i < launch.kernel_count; ++i) {
            const std::optional<PlannedKernel>& one = plans[launch.first_kernel + i];
            if (!one) continue;
            prediction.boost_s += one->seconds;
            prediction.power_limited_s += one->power_limited_s;
            prediction.throttling_s += throttling_seconds(one->seconds, one->power_limited_s);
            prediction.sm_active_s += one->seconds * one->occupancy.sms;
            prediction.warps_active_s += one->seconds * one->occupancy.warps;
            prediction.kernels += one->launches;
            prediction.step_launches += one->launches - 1;
            if (one->seconds >= longest_s) {
                prediction.bound = one->bound;
                prediction.factor = one->factor;
            }
            longest_s = std::max(longest_s, one->seconds);
        }
        const bool skipped = launch.kernel_count > 0 && prediction.kernels == 0;
        if (skipped && schedule.kernels[launch.first_kernel].condition != LaunchCondition::unless_viewable) {
            timed = {};
            return;
        }
        // What would have been a copy is a view for these shapes.
        if (skipped) prediction.host_kind = HostKind::view;
        if (captured) prediction.host_kind = HostKind::graph_node;
        prediction.module_calls = static_cast<std::int32_t>(launch.module_calls);
        prediction.list_parts = static_cast<std::int32_t>(launch.list_parts);
        prediction.blas_call = calls_blas(launch);
        prediction.host_s = costs[prediction.host_kind] + launch.module_calls * costs[HostKind::module_call] +
                            launch.list_parts * costs[HostKind::list_part] +
                            step_launch_s(prediction, launch.further_calls) +
                            (prediction.blas_call ? costs.blas_call_s : 0) + on_host_s(launch);
        prediction.device_s = prediction.boost_s;
        // What one call launches for each step follows without a framework's gap: the kernels' floor has theirs.
        timed = {prediction.host_s, prediction.device_s, prediction.kernels - prediction.step_launches,
                 launch.host_kind == HostKind::synchronize || launch.on_host, step_launch_s(prediction)};
    }

    /// Slows the kernels of a pass whose energy exceeds what the board may draw meanwhile.
    void limit_power() {
        PassPower pass;
        for (const LaunchCosts& op : operators) {
            pass.add({op.boost_s + (op.kernels - op.step_launches) * costs.kernel_gap_s, op.power_limited_s,
                      op.throttling_s});
        }
        slowdown = pass.slowdown();
        if (slowdown == 0) return;
        for (std::size_t i = 0; i < operators.size(); ++i) {
            LaunchCosts& op = operators[i];
            if (op.throttling_s == 0) continue;
            op.device_s = launches[i].device_s = op.boost_s + slowdown * op.throttling_s;
            op.sm_active_s *= op.device_s / op.boost_s;
            op.warps_active_s *= op.device_s / op.boost_s;
        }
    }

    /// Sequences of nested tensors are as long as their own tokens: on average the share that is not padding.
    void bind_shapes(const ShapeBindings& bindings) {
        const auto seq = bindings.find("seq");
        if (!model.traits.skips_padding || options.padding <= 0 || seq == bindings.end())
            return bind(graph, bindings, bound);
        ShapeBindings shorter = bindings;
        shorter["seq"] =
            std::max<std::int64_t>(1, std::llround(static_cast<double>(seq->second) * (1 - options.padding)));
        ftax::bind(graph, shorter, bound);  // not std::bind, which fits a map that may change better
    }

    Prediction predict(const ShapeBindings& bindings) {
        bind_shapes(bindings);
        find_step(bindings);
        plan_kernels();
        launches.resize(schedule.launches.size() + 1);
        operators.resize(schedule.launches.size() + 1);
        const HostKind beginning = model.traits.calls_engines ? HostKind::engine_call : HostKind::forward;
        operators[0] = {{.op = no_op, .host_kind = beginning, .host_s = costs[beginning], .bound = Bound::host}};
        const double sequences_s =
            model.traits.serves_sequences ? static_cast<double>(sequences) * costs[HostKind::sequence] : 0;
        operators[0].host_s += sequences_s;
        // An engine that schedules ahead prepares the pass meanwhile; what it does for each sequence's token follows.
        const double follows_s = has(options.libraries, model.traits.schedules_ahead_from) ? sequences_s : 0;
        launches[0] = {.host_s = operators[0].host_s - follows_s,
                       .device_s = operators[0].device_s,
                       .kernels = operators[0].device_s > 0 ? 1 : 0};
        for (std::size_t i = 0; i < schedule.launches.size(); ++i) {
            const std::uint32_t first = first_equal_launch[i];
            if (first == i) {
                time_launch(schedule.launches[i], launches[i + 1], operators[i + 1]);
                continue;
            }
            launches[i + 1] = launches[first + 1];
            operators[i + 1] = operators[first + 1];
            operators[i + 1].op = schedule.launches[i].op;
        }
        limit_power();
        Prediction result;
        double compute_s = 0;
        double memory_s = 0;
        double floor_s = 0;
        double energy_s = 0;
        double calls_s = 0;  // the host's second scalar
        std::array<double, factor_count> class_s{};
        for (const LaunchCosts& op : operators) {
            result.host_s += op.host_s;
            result.device_s += op.device_s;
            class_s[static_cast<std::size_t>(op.factor)] += op.device_s;
            if (op.blas_call) calls_s += costs.blas_call_s;
            if (op.host_kind == HostKind::engine_call) calls_s += op.host_s;
            result.sm_active += op.sm_active_s;
            result.warp_occupancy += op.warps_active_s;
            result.kernels += op.kernels;
            if (op.bound == Bound::compute) compute_s += op.device_s;
            if (op.bound == Bound::memory) memory_s += op.device_s;
            if (op.bound == Bound::latency_floor) floor_s += op.device_s;
        }
        for (const std::optional<PlannedKernel>& kernel : plans) energy_s += kernel ? kernel->energy_s : 0;
        result.closed_form_s = equations::closed_form_s(result.host_s, result.device_s);
        result.latency_s = follows_s + (synchronized() ? simulate(launches, timeline_options(), spans)
                                                       : period(launches, timeline_options()));
        if (!is_cpu(device.device))
            result.power_w = device.device.idle_power_w() +
                             kernels::arithmetic_power_w(device.device) * std::min(1.0, energy_s / result.latency_s);
        result.sm_active /= result.latency_s;
        result.warp_occupancy /= result.latency_s;
        const double call_share = result.host_s > 0 ? calls_s / result.host_s : 0;
        result.host_relative_stddev = costs.host_relative_stddev(call_share);
        result.device_relative_stddev = std::hypot(costs.device_relative_stddev, device.factors.log_stddev(class_s));
        const double extrapolation = set_extrapolation(result);
        set_interval(result);
        const double host_share = equations::decisive_share(result.host_s, result.device_s);
        const Component widest =
            widest_component(costs, host_share, call_share, device.factors, class_s, extrapolation);
        result.widest_component = widest.name;
        result.widest_component_stddev = widest.log_stddev;
        if (result.host_s >= result.device_s) {
            result.bound = Bound::host;
        } else if (compute_s >= memory_s && compute_s >= floor_s) {
            result.bound = Bound::compute;
        } else {
            result.bound = memory_s >= floor_s ? Bound::memory : Bound::latency_floor;
        }
        set_coverage(result);
        warn_of_ranges(bindings, result);
        warn_of_precision(result);
        warn_of_host(result);
        return result;
    }

    MemoryUse memory(const ShapeBindings& bindings) {
        bind_shapes(bindings);
        return memory_use(graph, schedule, bound, model, device.device);
    }

    Explanation explain(const ShapeBindings& bindings) {
        Explanation result{.prediction = predict(bindings)};
        result.launches.assign(operators.begin(), operators.end());
        simulate(launches, timeline_options(), result.timeline);
        result.kernels.resize(1);  // the forward call has none
        for (const Launch& launch : schedule.launches) result.kernels.push_back(details(launch));
        return result;
    }

    bool synchronized() const { return synchronizes_runs(model, options); }

    TimelineOptions timeline_options() const {
        if (is_cpu(device.device)) return {.blocking = true};
        return {.launch_latency_s = costs.launch_latency_s, .kernel_gap_s = costs.kernel_gap_s};
    }

    /// Beyond the longest run that the models were compared with, their errors are a guess: wider, and said so. Returns
    /// by how much, as a standard deviation of the logarithm.
    double set_extrapolation(Prediction& result) const {
        if (result.device_s <= longest_measured_s) return 0;
        const double ratio = result.device_s / longest_measured_s;
        const double stddev = extrapolation_stddev * std::log(ratio);
        result.device_relative_stddev = std::hypot(result.device_relative_stddev, stddev);
        result.warnings.push_back(
            fmt::format("extrapolated: {:.1f} s of device time is {:.1f} times the longest run that was measured",
                        result.device_s, ratio));
        return stddev;
    }

    void warn_of_ranges(const ShapeBindings& bindings, Prediction& result) const {
        for (const SymbolRange& range : graph.ranges) {
            const auto given = value_of(range, bindings);
            if (!given) continue;
            std::string warning = range_warning(range, *given);
            if (!warning.empty()) result.warnings.push_back(std::move(warning));
        }
    }

    void warn_of_host(Prediction& result) const {
        if (has_foreign_host()) {
            result.warnings.push_back(fmt::format(
                "{} runs on its own {}; the host costs are those of an x86 CPU and may be off by a factor of 3: "
                "calibrate them with --anchor",
                device.device.name, device.device.host_cpu));
        }
        const auto runs_on_host = [](const Launch& launch) { return launch.on_host; };
        const auto first = std::find_if(schedule.launches.begin(), schedule.launches.end(), runs_on_host);
        if (first == schedule.launches.end()) return;
        result.warnings.push_back(fmt::format(
            "{} of {} operators ({}, ...) have no CUDA kernel in ONNX Runtime: they run on the CPU, with copies "
            "both ways, in times that are orders of magnitude",
            std::count_if(first, schedule.launches.end(), runs_on_host), graph.ops.size(),
            graph.ops[first->op].source));
    }

    /// The precision that is asked for replaces the file's.
    void warn_of_precision(Prediction& result) const {
        const PrecisionSpec& precision = precision_spec(options.precision);
        if (widened) {
            result.warnings.push_back(
                fmt::format("int8: {} has no tensor cores for it, the engine runs in f16", device.device.name));
        } else if (quantised_by_file) {
            result.warnings.push_back(
                fmt::format("the model says what is quantised; {} is for the rest", name_of(options.precision)));
        } else if (const bool built = model.traits.engine || model.traits.calls_engines;
                   built && options.precision == Precision::fp8) {
            result.warnings.push_back(
                "fp8: linear layers, norms and what they hand on, attention where the version and card have a kernel "
                "of fp8 (10.6 and later, Ada and newer); the rest stays bf16; no rows stand behind it");
        } else if (built && options.precision == Precision::int8) {
            result.warnings.push_back(
                "int8: convolutions, linear layers, norms, pooling and what they hand on, attention with heads of 64 "
                "and up to 384 tokens where the version and card have the plugin's kernel; heads, softmax and the rest "
                "stay f16");
        } else if (precision.quantizes_weights()) {
            result.warnings.push_back(
                fmt::format("{}: linear layers and experts; embeddings, norms, attention and heads stay {}",
                            precision.name, name_of(precision.storage)));
        }
        if (weights == DType::f32 || storage_type(options.precision) != DType::f32) return;
        result.warnings.push_back(
            fmt::format("the model's weights are {}, the prediction is for {}: the precision {} "
                        "takes them as they are",
                        name_of(weights), name_of(options.precision), weights == DType::f16 ? "fp16" : "bf16"));
    }

    /// The 5 % and 95 % quantiles of the later of two clocks that are off by log-normal factors, host and device.
    void set_interval(Prediction& result) const {
        const LogNormal host_time{result.host_s, result.host_relative_stddev};
        const LogNormal device_time{result.device_s, result.device_relative_stddev};
        const double scale = result.latency_s / result.closed_form_s;
        result.low_s = scale * quantile_of_maximum(host_time, device_time, -equations::normal_90);
        result.high_s = scale * quantile_of_maximum(host_time, device_time, equations::normal_90);
    }

    void set_coverage(Prediction& result) const {
        if (guesses == 0) return;
        double guessed_s = 0;
        for (const LaunchCosts& op : operators) {
            if (op.op != no_op && guessed[op.op]) guessed_s += op.host_s + op.device_s;
        }
        const double total_s = result.host_s + result.device_s;
        result.coverage.nodes = 1 - static_cast<double>(guesses) / static_cast<double>(graph.ops.size());
        result.coverage.flops = modelled_flops(graph, bound, guessed);
        result.coverage.time = total_s > 0 ? 1 - guessed_s / total_s : 1;
        for (std::string& warning : warnings_of_guesses(graph, guessed)) result.warnings.push_back(std::move(warning));
    }
};

Predictor::Predictor(const Graph& graph, DeviceProfile device, FrameworkProfile framework, PredictOptions options)
    : state_(std::make_unique<State>(graph, std::move(device), std::move(framework), options)) {}
Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;

Prediction Predictor::predict(const ShapeBindings& bindings) {
    return state_->predict(bindings);
}
Prediction Predictor::predict(const ShapeBindings& bindings, std::vector<LaunchCosts>& launches) {
    Prediction prediction = state_->predict(bindings);
    launches = state_->operators;
    return prediction;
}
Explanation Predictor::explain(const ShapeBindings& bindings) {
    return state_->explain(bindings);
}
MemoryUse Predictor::memory(const ShapeBindings& bindings) {
    return state_->memory(bindings);
}
bool Predictor::synchronized() const {
    return state_->synchronized();
}
const Graph& Predictor::graph() const {
    return state_->graph;
}
const DeviceProfile& Predictor::device() const {
    return state_->device;
}
const FrameworkProfile& Predictor::framework() const {
    return state_->framework;
}

}  // namespace ftax
