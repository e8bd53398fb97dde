#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/device.hpp"
#include "ftax/framework.hpp"
#include "ftax/graph.hpp"
#include "ftax/memory.hpp"
#include "ftax/types.hpp"

namespace ftax {

/// What limits an operator, or a whole run.
enum class Bound : std::uint8_t {
    host,           ///< the GPU waits for the CPU: framework-bound
    compute,        ///< arithmetic
    memory,         ///< bytes over bandwidth
    latency_floor,  ///< the shortest time any kernel takes
};
[[nodiscard]] std::string_view name_of(Bound bound) noexcept;

/// Versions of the libraries whose kernels run, where they decide which.
struct LibraryVersions {
    /// cuDNN 9 has half-precision convolutions that read and write NCHW without copies; PyTorch brings it from 2.4 on
    /// and then also adds the bias of layers of 65,535 rows and more in the product. Version 7, 8 or 9.
    int cudnn = 8;
    /// TensorRT's, 100 · major + minor: 806 is 8.6. Decides what its builder fuses. From 7.0 on.
    int tensorrt = 1000;
    /// The serving engine's (vLLM, SGLang, TensorRT-LLM), in the same form: decides whether a step of decoding is one
    /// CUDA graph and whether the host prepares the next step while the device computes this one.
    int engine = 6;
    /// PyTorch's, in the same form; 0: not given. From 2.5 on attention without a fused kernel computes halves in f32.
    int torch = 0;
};

struct PredictOptions {
    Precision precision = Precision::fp32;
    bool channels_last = false;  ///< convolutions get NHWC activations
    LibraryVersions libraries;
    double padding = 0;  ///< share of padded tokens that frameworks with nested tensors skip
    /// Each run waits until the one before has left the GPU, as single requests do; else runs follow one another
    /// without a pause and the latency is their mean, as torch.utils.benchmark and trtexec time them.
    bool synchronized = false;
    bool copies = false;  ///< a run begins with its inputs and ends with its outputs in pageable memory of the host
};

/// Prediction for one launch: an operator of the model, or a group of them that the framework fuses.
struct OpPrediction {
    OpId op = no_op;  ///< first operator of a fused group, in Predictor::graph(); no_op for the forward call itself
    HostKind host_kind = HostKind::elementwise;
    std::int32_t kernels = 0;
    double host_s = 0;                   ///< of its dispatch, with the nn.Module calls before it
    double device_s = 0;                 ///< of its kernels, under the power limit
    Bound bound = Bound::latency_floor;  ///< of its kernels; Bound::host when it launches none
};

/// How one kernel is timed and why. Times are those of the kernel's parts at boost clock, which `reason` also compares;
/// seconds combines them, under the power limit of the forward pass.
struct KernelDetail {
    std::string name;    ///< algorithm, tile (n × m) and parts of the reduction
    std::string path;    ///< units it runs on: "fp32", "fp16_tensor"…
    std::string reason;  ///< what chose it, and what the next best would have cost
    double seconds = 0, compute_s = 0, memory_s = 0;
    double waves = 0;             ///< blocks over what the GPU holds at a time; 0 where blocks do not count
    double flops = 0, bytes = 0;  ///< of the operator, each operand once: flops / bytes is its arithmetic intensity
    double ridge = 0;             ///< intensity at which the sustained rate and bandwidth meet
    Bound bound = Bound::latency_floor;
};

/// When one scheduled operation occupied the CPU and the GPU, from the start of the forward pass.
struct Span {
    double host_start_s = 0, host_end_s = 0;
    double device_start_s = 0, device_end_s = 0;  ///< equal when it launches no kernel
};

/// Share of the graph that rests on a rule of its operator, from 0 to 1. What an operator without a rule counts as
/// (memory-bound, one FLOP per element of its results) is in the whole.
struct Coverage {
    double nodes = 1, flops = 1, time = 1;
};

struct Prediction {
    double latency_s = 0;                                         ///< of one run: see PredictOptions::synchronized
    double low_s = 0, high_s = 0;                                 ///< 90 % interval
    double host_s = 0;                                            ///< Σ host dispatch
    double device_s = 0;                                          ///< Σ kernel time
    double copies_s = 0;                                          ///< of inputs and outputs: see PredictOptions
    double host_relative_stddev = 0, device_relative_stddev = 0;  ///< of the logarithms of the two
    std::string_view widest_component;                            ///< what the interval allows for most, for people
    double widest_component_stddev = 0;                           ///< what that adds to the latency's logarithm
    double closed_form_s = 0;                                     ///< max(host_s, device_s), see equations.hpp
    Bound bound = Bound::host;
    std::int64_t kernels = 0;
    double sm_active = 0;       ///< share of the latency in which an SM holds work, averaged over the SMs; an estimate
    double warp_occupancy = 0;  ///< of the warps that the SMs can hold, averaged in the same way
    double power_w =
        0;  ///< mean draw of each board over the latency; 0 for a CPU. Source: predictors/kernels/power.hpp
    Coverage coverage;
    std::vector<std::string> warnings;  ///< extrapolation, operators without a rule, values an export does not hold for
};

/// A prediction with the launches that it sums up; the lists have an entry per launch each, in order, first the forward
/// call itself.
struct Explanation {
    Prediction prediction;
    std::vector<OpPrediction> launches;
    std::vector<Span> timeline;
    std::vector<std::vector<KernelDetail>> kernels;  ///< of each launch, in order
};

struct LaunchCosts;  // predictors/timeline/launch_costs.hpp

/// Predicts one graph on one device under one framework (predictors/predictor.cpp). Construction rewrites the graph as
/// the framework does and lowers it to launches (predictors/frameworks, predictors/lowering/lowering.hpp): costly once,
/// like a framework's own start. predict() binds shapes, times every kernel (predictors/kernels) and every dispatch
/// (predictors/host/host_costs.hpp), keeps the kernels within the power limit (predictors/kernels/pass_power.hpp) and
/// lets the two clocks run (predictors/timeline/timeline.hpp): microseconds, no allocation after the first call.
class Predictor {
  public:
    /// Keeps a reference to `graph`, which must outlive the predictor; profiles and options are copied.
    /// Throws Error{usage} when the device lacks the precision, for an unknown framework or library version.
    Predictor(const Graph& graph, DeviceProfile device, FrameworkProfile framework, PredictOptions options = {});
    Predictor(const Graph&& temporary, DeviceProfile, FrameworkProfile, PredictOptions = {}) = delete;
    ~Predictor();
    Predictor(Predictor&&) noexcept;
    Predictor& operator=(Predictor&&) noexcept;

    /// Threads that share a predictor must take turns: it keeps buffers. Throws what bind() throws.
    [[nodiscard]] Prediction predict(const ShapeBindings& bindings);
    /// Predicts and tells launch by launch how: some ten times as slow. Throws what bind() throws.
    [[nodiscard]] Explanation explain(const ShapeBindings& bindings);
    /// Predicts and fills in what the launches cost, as explain() lists them. Throws what bind() throws.
    [[nodiscard]] Prediction predict(const ShapeBindings& bindings, std::vector<LaunchCosts>& launches);

    /// Sums up the device memory that a run takes at its peak (predictors/memory.hpp). Throws what bind()
    /// throws.
    [[nodiscard]] MemoryUse memory(const ShapeBindings& bindings);

    /// Whether the latency is that of runs which wait for one another: asked for, or the framework's way.
    [[nodiscard]] bool synchronized() const;
    /// The graph that OpPrediction::op counts in: the framework's rewritten one, or the caller's where it rewrites
    /// none. Valid as long as the predictor and the caller's graph.
    [[nodiscard]] const Graph& graph() const;
    [[nodiscard]] const DeviceProfile& device() const;
    [[nodiscard]] const FrameworkProfile& framework() const;
    /// The precision that was asked for; a builder without kernels of it may run another, with a warning.
    [[nodiscard]] Precision precision() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Host time of all operations of one kind.
struct HostCause {
    HostKind kind = HostKind::elementwise;
    std::int64_t operations = 0;
    double host_s = 0;
};

/// Batch at which the host takes as long as the device.
struct Crossover {
    double batch = 0;               ///< where Σ host = Σ device, interpolated; see equations.hpp
    double low = 0, high = 0;       ///< 90 % interval
    bool gpu_waits_above = false;   ///< the GPU waits for the framework above the crossover; usually it does so below
    double host_s = 0;              ///< Σ host at the crossover
    std::vector<HostCause> causes;  ///< the kinds that cost the host most, largest first, at most three
};

/// Finds the crossovers along the symbol `batch` between 1 and `largest`, the other symbols as bound, in ascending
/// order; consecutive ones have opposite directions. An engine that reads its weights in every step and schedules each
/// sequence starts bound by the GPU and ends bound by the framework. Returns none when one side dominates over the
/// whole range (Prediction::bound names it). Throws what bind() throws.
[[nodiscard]] std::vector<Crossover> find_crossovers(Predictor& predictor, ShapeBindings bindings,
                                                     std::int64_t largest = 4096);

}  // namespace ftax
