#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/device.hpp"
#include "ftax/evidence.hpp"
#include "ftax/framework.hpp"
#include "ftax/graph.hpp"
#include "ftax/memory.hpp"
#include "ftax/types.hpp"

namespace ftax {

/// Limiter of an operator or of a whole run.
enum class Bound : std::uint8_t {
    host,           ///< the GPU waits for the CPU: framework-bound
    compute,        ///< arithmetic
    memory,         ///< memory bandwidth
    latency_floor,  ///< minimum duration of a kernel
};
[[nodiscard]] std::string_view name_of(Bound bound) noexcept;

/// Library versions that determine which kernels run.
struct LibraryVersions {
    /// cuDNN 7, 8 or 9. With cuDNN 9, 1x1 convolutions need fewer layout copies, and PyTorch, which ships it from 2.4
    /// on, also fuses the bias into linear layers of 65,535 rows and more.
    int cudnn = 8;
    /// TensorRT, 100 · major + minor (806 is 8.6), 7.0 or later. Determines what its builder fuses.
    int tensorrt = 1000;
    /// Serving engine (vLLM, SGLang, TensorRT-LLM), in the same form. Determines whether a decoding step is one CUDA
    /// graph and whether the host prepares the next step while the device computes the current one.
    int engine = 6;
    /// PyTorch, in the same form; 0 = unspecified. From 2.5 on, attention without a fused kernel computes fp16 in f32.
    int torch = 0;
};

/// Kernels of experts in 4 bits: TensorRT-LLM on compute capability 10 (moe_config), vLLM on 9 (--moe-backend).
enum class MoeBackend : std::uint8_t { by_default, cutlass, trtllm, marlin };

struct PredictOptions {
    Precision precision = Precision::fp32;
    bool channels_last = false;  ///< convolutions receive NHWC activations
    LibraryVersions libraries;
    double padding = 0;  ///< share of padded tokens in the batch; frameworks with nested tensors skip them
    /// Each run waits for the previous one to complete on the GPU, like single requests. Otherwise runs are issued back
    /// to back and the latency is their mean, as in torch.utils.benchmark and trtexec.
    bool synchronized = false;
    bool copies = false;  ///< include copies of inputs and outputs; host memory is pageable, of captured engines pinned
    MoeBackend moe_backend = MoeBackend::by_default;
    bool flashinfer_gemm =
        false;  ///< layers in fp8_block under SGLang on Blackwell in FlashInfer's kernels, not DeepGEMM
};

/// Prediction for one launch: an operator of the model, or a group of them that the framework fuses.
struct OpPrediction {
    OpId op = no_op;  ///< first operator of a fused group, in Predictor::graph(); no_op for the forward call itself
    HostKind host_kind = HostKind::elementwise;
    std::int32_t kernels = 0;
    double host_s = 0;                   ///< dispatch time, including preceding nn.Module calls
    double device_s = 0;                 ///< kernel time under the power limit
    Bound bound = Bound::latency_floor;  ///< limiter of its kernels; Bound::host if it launches none
};

/// Details of one kernel's predicted time. `compute_s`, `memory_s` and the times compared in `reason` are at boost
/// clock; `seconds` combines them under the power limit of the forward pass.
struct KernelDetail {
    std::string name;    ///< algorithm, tile (n × m) and parts of the reduction
    std::string path;    ///< execution units: "fp32", "fp16_tensor"…
    std::string reason;  ///< why it was chosen, and the cost of the next best choice
    double seconds = 0, compute_s = 0, memory_s = 0;
    double waves = 0;  ///< blocks divided by resident blocks of the GPU; 0 if not modelled by blocks
    double flops = 0,
           bytes = 0;  ///< work of the operator, each operand counted once; their ratio is the arithmetic intensity
    double ridge = 0;  ///< arithmetic intensity at the roofline's ridge point (sustained rates)
    Bound bound = Bound::latency_floor;
};

/// Interval in which one operation occupies the CPU and the GPU, relative to the start of the forward pass.
struct Span {
    double host_start_s = 0, host_end_s = 0;
    double device_start_s = 0, device_end_s = 0;  ///< equal if it launches no kernel
};

/// Share of the graph covered by operators with a rule, from 0 to 1. The totals include operators without a rule, which
/// count as memory-bound with one FLOP per output element.
struct Coverage {
    double nodes = 1, flops = 1, time = 1;
};

struct Prediction {
    double latency_s = 0;          ///< latency of one run; see PredictOptions::synchronized
    double low_s = 0, high_s = 0;  ///< 90 % interval
    double host_s = 0;             ///< total dispatch time
    double device_s = 0;           ///< total kernel time
    double copies_s = 0;           ///< copies of inputs and outputs; see PredictOptions::copies
    double host_relative_stddev = 0,
           device_relative_stddev = 0;      ///< standard deviations of log(host_s) and log(device_s)
    std::string_view widest_component;      ///< largest contributor to the interval; display text
    double widest_component_stddev = 0;     ///< its contribution to the stddev of log(latency_s)
    Evidence evidence = Evidence::unrated;  ///< distance from the measured rows behind the framework's rules
    double evidence_relative_stddev = 0;    ///< the part of device_relative_stddev that this distance adds
    double closed_form_s = 0;               ///< max(host_s, device_s), see equations.hpp
    Bound bound = Bound::host;
    std::int64_t kernels = 0;
    double sm_active = 0;       ///< estimated share of the latency during which an SM holds work, averaged over the SMs
    double warp_occupancy = 0;  ///< resident warps over the maximum, averaged in the same way
    double power_w =
        0;  ///< mean power of each board over the latency; 0 for a CPU. Source: predictors/kernels/power.hpp
    Coverage coverage;
    std::vector<std::string> warnings;  ///< extrapolation, operators without a rule, values outside an export's ranges
};

/// One independent contribution to an interval.
struct Component {
    std::string_view name;  ///< display text with static lifetime
    double log_stddev = 0;  ///< contribution to the standard deviation of log(latency)
};

/// A prediction with its launches. Lists by launch have one entry each, in order; the first is the forward call itself.
struct Explanation {
    Prediction prediction;
    std::vector<OpPrediction> launches;
    std::vector<Span> timeline;
    std::vector<std::vector<KernelDetail>> kernels;  ///< kernels of each launch
    std::vector<Component> interval;                 ///< contributions to the interval, widest first
    std::string evidence;                            ///< nearest measured rows and what they lack
};

struct LaunchCosts;  // predictors/timeline/launch_costs.hpp, which is not installed

/// Predicts one graph on one device under one framework (predictors/predictor.cpp). Construction rewrites the graph as
/// the framework does and lowers it to launches (predictors/frameworks, predictors/lowering/lowering.hpp); this is the
/// expensive part. predict() binds shapes, times every kernel (predictors/kernels) and dispatch
/// (predictors/host/host_costs.hpp), applies the power limit (predictors/kernels/pass_power.hpp) and simulates the host
/// and device timelines (predictors/timeline/timeline.hpp). It takes microseconds and allocates only on the first call.
class Predictor {
  public:
    /// Keeps a reference to `graph`, which must outlive the predictor; profiles and options are copied.
    /// Throws Error{usage} if the device lacks the precision, and for an unknown framework or library version.
    Predictor(const Graph& graph, DeviceProfile device, FrameworkProfile framework, PredictOptions options = {});
    Predictor(const Graph&& temporary, DeviceProfile, FrameworkProfile, PredictOptions = {}) = delete;
    ~Predictor();
    Predictor(Predictor&&) noexcept;
    Predictor& operator=(Predictor&&) noexcept;

    /// Not thread-safe: reuses internal buffers. Throws what bind() throws.
    [[nodiscard]] Prediction predict(const ShapeBindings& bindings);
    /// Like predict(), with per-launch details; about 10x slower. Throws what bind() throws.
    [[nodiscard]] Explanation explain(const ShapeBindings& bindings);
    /// Like predict(), and fills in the cost of each launch, in the order of explain(). Throws what bind() throws.
    [[nodiscard]] Prediction predict(const ShapeBindings& bindings, std::vector<LaunchCosts>& launches);

    /// Returns the peak device memory of a run (predictors/memory.hpp). Throws what bind() throws.
    [[nodiscard]] MemoryUse memory(const ShapeBindings& bindings);

    /// Returns true if each run waits for the previous one, because of the options or of the framework.
    [[nodiscard]] bool synchronized() const;
    /// Returns the graph that OpPrediction::op indexes: the framework's rewritten graph, or the caller's if it is not
    /// rewritten. Valid as long as the predictor and the caller's graph.
    [[nodiscard]] const Graph& graph() const;
    [[nodiscard]] const DeviceProfile& device() const;
    [[nodiscard]] const FrameworkProfile& framework() const;
    /// Returns the requested precision; an engine builder without kernels for it may run another, with a warning.
    [[nodiscard]] Precision precision() const;
    /// Returns the options as they are executed, library versions included.
    [[nodiscard]] const PredictOptions& options() const;

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

/// Batch at which host time equals device time, with the gaps between the device's kernels.
struct Crossover {
    double batch = 0;               ///< interpolated
    double low = 0, high = 0;       ///< 90 % interval
    bool gpu_waits_above = false;   ///< the GPU waits for the framework above the crossover, not below as usual
    double host_s = 0;              ///< total host time at the crossover
    std::vector<HostCause> causes;  ///< the most expensive kinds of host work, largest first, at most three
};

/// Finds the crossovers for `batch` from 1 to `largest`, with the other symbols bound, in ascending order; consecutive
/// ones have opposite directions. A serving engine, which reads its weights in every step and schedules each sequence,
/// is GPU-bound at small and framework-bound at large batches. Returns none if one side dominates over the whole range
/// (see Prediction::bound). Throws what bind() throws.
[[nodiscard]] std::vector<Crossover> find_crossovers(Predictor& predictor, ShapeBindings bindings,
                                                     std::int64_t largest = 4096);

}  // namespace ftax
