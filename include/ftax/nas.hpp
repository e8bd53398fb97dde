#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/factors.hpp"
#include "ftax/graph_builder.hpp"
#include "ftax/predict.hpp"

/// Latency as a cost function for architecture search.
namespace ftax::nas {

/// One building block of a network. Its launches depend on these numbers alone, so each is timed once.
struct Block {
    std::array<std::int16_t, 8> fields{};
    friend bool operator==(const Block&, const Block&) = default;
};

/// A search space: the text form of an architecture, its chain of blocks, and how to build each (docs/nas.md).
class Space {
  public:
    virtual ~Space() = default;
    [[nodiscard]] virtual std::string_view name() const = 0;
    /// Number of options of each choice.
    [[nodiscard]] virtual std::vector<int> options() const = 0;
    /// Returns the options of a choice that the space's authors search and random architectures use; empty: all.
    virtual std::vector<int> usual_options(std::size_t) const { return {}; }
    /// Parses an architecture. Throws Error{usage} naming the expected token and its position.
    virtual void parse(std::string_view text, std::vector<int>& choices) const = 0;
    /// Appends the blocks of an architecture in execution order.
    virtual void blocks(std::span<const int> choices, std::vector<Block>& chain) const = 0;
    /// Declares the inputs of the network; they are the first live tensors.
    virtual std::vector<TensorId> inputs(GraphBuilder& net, std::span<const int> choices) const = 0;
    /// Appends one block. `live` holds the tensors that later blocks may read; finally live[0] is the output.
    virtual void build(GraphBuilder& net, const Block& block, std::vector<TensorId>& live) const = 0;
    /// Symbolic dimensions besides `batch`, with default values.
    virtual ShapeBindings usual_dims() const { return {}; }
    /// Returns true if the host waited for the device after each block in the space's measurements.
    virtual bool waits_after_blocks() const { return false; }
};

/// Framework and host of the measurements of the built-in spaces: PyTorch 1.8 (nas_*.csv).
inline constexpr std::string_view measured_framework = "pytorch-eager";
inline constexpr std::string_view measured_host = "help-pytorch-1.8";
/// Returns `options` with the libraries of that host: its PyTorch 1.8 for CUDA 10.2 ships cuDNN 7.6.
[[nodiscard]] PredictOptions libraries_of(const FrameworkProfile& framework, PredictOptions options);

/// Returns the names of the built-in spaces.
[[nodiscard]] std::vector<std::string> space_names();
/// Returns a built-in space. Throws Error{usage} listing the spaces if there is none of that name.
[[nodiscard]] const Space& space(std::string_view name);

/// Returns the default dimensions of a space, overridden by `given`. Throws Error{usage} naming one it does not have.
[[nodiscard]] ShapeBindings dims_of(const Space& space, const ShapeBindings& given);

/// Builds the whole network of an architecture, symbolic in `batch` and the space's other dimensions. Throws
/// Error{limit} beyond a million operators, Error{model} if the architecture has none.
[[nodiscard]] Graph build_graph(const Space& space, std::span<const int> choices);

/// Deviations of one measurement campaign from the profiles.
struct Campaign {
    double host_scale = 1;                   ///< host time relative to the framework profile's host
    double device_scale = 1;                 ///< device time relative to the kernel models
    std::optional<bool> waits_after_blocks;  ///< nullopt: default of the space
    /// Device time of each kernel class relative to device_scale, by Factor; the factor of the card is device_scale.
    std::array<double, factor_count> class_scale{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
};

/// One measured architecture.
struct Sample {
    std::vector<int> choices;
    std::int64_t batch = 1;
    double latency_s = 0;
};

/// Scalars of a campaign, estimated from samples.
struct Calibration {
    Campaign campaign;
    double host_relative_stddev = 0;    ///< standard deviation of log(host_scale)
    double device_relative_stddev = 0;  ///< standard deviation of log(device_scale)
};

/// Estimates the scalars of a campaign, shared by all batches, from a handful of samples. Robust against a few
/// disturbed samples. `campaign` specifies whether the host waits; its scalars are ignored. `dims`: see CostFunction.
/// Throws Error{usage} if there are no samples or a latency is not positive.
/// Source: maximum of the posterior (predictors/analysis/log_posterior.hpp); log-normal priors keep device-bound
/// samples from changing the host scale, and all samples from changing kernel classes that they do not identify. The
/// noise is estimated from the samples.
[[nodiscard]] Calibration calibrate(const Space& space, const DeviceProfile& device, const FrameworkProfile& framework,
                                    const PredictOptions& options, std::span<const Sample> samples,
                                    Campaign campaign = {}, const ShapeBindings& dims = {});

/// Latency of architectures of one space on one device under one framework, for fixed batches.
/// The timeline of a block is a linear map in the (max, +) algebra: the state is (host clock, device clock), and blocks
/// compose like matrices. Predictor times each distinct block once; cost() only composes blocks. The result equals the
/// full predictor's timeline unless the launch queue fills (1,024 launches ahead). If the power limit slows a pass,
/// blocks are interpolated between boost clock and full throttling, which is exact unless a block synchronises; then
/// the latency is slightly too long.
class CostFunction {
  public:
    /// Throws Error{usage} if the device lacks the precision, a batch is below 1 or the space has no choices. `space`
    /// must outlive the cost function. `dims` override Space::usual_dims().
    CostFunction(const Space& space, DeviceProfile device, FrameworkProfile framework, PredictOptions options,
                 std::vector<std::int64_t> batches, Campaign campaign = {}, const ShapeBindings& dims = {});
    CostFunction(const Space&& temporary, DeviceProfile, FrameworkProfile, PredictOptions, std::vector<std::int64_t>,
                 Campaign = {}, const ShapeBindings& = {}) = delete;
    ~CostFunction();
    CostFunction(CostFunction&&) noexcept;
    CostFunction& operator=(CostFunction&&) noexcept;

    /// Writes the latency in seconds for each batch, in the order of batches(). Thread-safe.
    /// Throws Error{usage} for an invalid choice, and what Space::build and Predictor throw.
    void cost(std::span<const int> choices, std::span<double> latency_s) const;
    /// Costs many architectures on `threads` threads (0: all cores). `choices` and `latency_s` are row-major with one
    /// row per architecture, of options().size() choices and of batches().size() latencies.
    void cost(std::span<const int> choices, std::span<double> latency_s, unsigned threads) const;
    /// Writes the latency with each option of choice `site`: a row per option, a column per batch.
    void marginal_cost(std::span<const int> choices, std::size_t site, std::span<double> latency_s) const;

    [[nodiscard]] const Space& space() const;  ///< reference to the caller's object
    [[nodiscard]] const std::vector<std::int64_t>& batches() const;
    [[nodiscard]] const ShapeBindings& dims() const;  ///< all dimensions but `batch`

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace ftax::nas
