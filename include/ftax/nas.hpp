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

/// One building block of a network. Its launches depend on these numbers alone (kind, widths, resolution, choice), so
/// that a block that was timed once is never timed again.
struct Block {
    std::array<std::int16_t, 8> fields{};
    friend bool operator==(const Block&, const Block&) = default;
};

/// A search space: how an architecture is written, which chain of blocks it is, and how each block is built.
///
///     class Plain final : public Space {  // three layers of 16, 32 or 64 channels, written "16-64-32"
///       public:
///         std::string_view name() const override { return "plain"; }
///         std::vector<int> options() const override { return {3, 3, 3}; }
///         void parse(std::string_view text, std::vector<int>& choices) const override;  // "16-64-32" → {0, 2, 1}
///         void blocks(std::span<const int> choices, std::vector<Block>& chain) const override {
///             std::int16_t in = 3;
///             for (const int choice : choices) {
///                 const auto out = static_cast<std::int16_t>(16 << choice);
///                 chain.push_back({{in, out}});
///                 in = out;
///             }
///         }
///         std::vector<TensorId> inputs(GraphBuilder& net, std::span<const int>) const override {
///             return {net.input("x", {"batch", "3", "32", "32"})};
///         }
///         void build(GraphBuilder& net, const Block& block, std::vector<TensorId>& live) const override {
///             live[0] = net.relu(net.conv(live[0], block.fields[1], {.kernel = 3, .pad = 1}));
///         }
///     };
class Space {
  public:
    virtual ~Space() = default;
    [[nodiscard]] virtual std::string_view name() const = 0;
    /// Number of options of each choice.
    [[nodiscard]] virtual std::vector<int> options() const = 0;
    /// Reads an architecture. Throws Error{usage} saying what was expected and where.
    virtual void parse(std::string_view text, std::vector<int>& choices) const = 0;
    /// Appends the blocks of an architecture in execution order.
    virtual void blocks(std::span<const int> choices, std::vector<Block>& chain) const = 0;
    /// Declares the inputs of the network; they are the first live tensors.
    virtual std::vector<TensorId> inputs(GraphBuilder& net, std::span<const int> choices) const = 0;
    /// Appends one block. `live` holds the tensors that later blocks may read; live[0] is the output at the end.
    virtual void build(GraphBuilder& net, const Block& block, std::vector<TensorId>& live) const = 0;
    /// Dimensions besides `batch` that the networks leave open, with what they are where a caller does not say.
    virtual ShapeBindings usual_dims() const { return {}; }
    /// Whether the host waits for the device after each block in the runs that the space is known from.
    virtual bool waits_after_blocks() const { return false; }
};

/// Framework and host that the built-in spaces are known from: PyTorch 1.8 as nas_*.csv were measured with it.
inline constexpr std::string_view measured_framework = "pytorch-eager";
inline constexpr std::string_view measured_host = "help-pytorch-1.8";

/// Names of the built-in spaces.
[[nodiscard]] std::vector<std::string> space_names();
/// Throws Error{usage} listing the spaces when there is none of that name.
[[nodiscard]] const Space& space(std::string_view name);

/// The usual dimensions of a space with those that a caller gives in their place. Throws Error{usage} naming a
/// dimension that the space does not leave open.
[[nodiscard]] ShapeBindings dims_of(const Space& space, const ShapeBindings& given);

/// The whole network of an architecture, symbolic in `batch` and the dimensions that the space leaves open. Throws
/// Error{limit} beyond a million operators, Error{model} when the architecture has none.
[[nodiscard]] Graph build_graph(const Space& space, std::span<const int> choices);

/// What sets one measuring campaign apart from the profiles.
struct Campaign {
    double host_scale = 1;                   ///< host time against the framework profile's host
    double device_scale = 1;                 ///< device time against the kernel models
    std::optional<bool> waits_after_blocks;  ///< nullopt: as the space says
    /// Device time of each class of kernels against device_scale, by Factor; that of the card is device_scale.
    std::array<double, factor_count> class_scale{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
};

/// One measured architecture.
struct Sample {
    std::vector<int> choices;
    std::int64_t batch = 1;
    double latency_s = 0;
};

/// Scalars of a campaign as samples show them.
struct Calibration {
    Campaign campaign;
    double host_relative_stddev = 0;    ///< of log(host_scale)
    double device_relative_stddev = 0;  ///< of log(device_scale)
};

/// Estimates the scalars of a campaign from a handful of samples; all batches share them. Robust: a few samples that
/// something disturbed do not move them. `campaign` says whether the host waits; its scalars are ignored.
/// `dims` as CostFunction takes them. Throws Error{usage} without samples or for a latency that is not positive.
/// Source: maximum of the posterior (predictors/analysis/log_posterior.hpp); log-normal priors keep a column that the
/// device decides from moving the host, and samples from moving classes of kernels that they do not tell apart. The
/// noise is what the samples themselves show.
[[nodiscard]] Calibration calibrate(const Space& space, const DeviceProfile& device, const FrameworkProfile& framework,
                                    const PredictOptions& options, std::span<const Sample> samples,
                                    Campaign campaign = {}, const ShapeBindings& dims = {});

/// Latency of architectures of one space on one device under one framework, for fixed batches.
/// The timeline of a block is a linear map in the (max, +) algebra: the state is (host clock, device clock), and blocks
/// compose like matrices. Each distinct block is timed once through Predictor; cost() then only composes, and equals
/// the full predictor's timeline as long as the launch queue does not fill (1,024 launches ahead). A pass that the
/// power limit slows interpolates between its blocks at boost clock and fully slowed: exact without waits inside, else
/// at most a little long.
class CostFunction {
  public:
    /// Throws Error{usage} when the device lacks the precision, a batch is below 1 or the space has no choices.
    /// `space` must outlive the cost function. `dims` take the place of Space::usual_dims().
    CostFunction(const Space& space, DeviceProfile device, FrameworkProfile framework, PredictOptions options,
                 std::vector<std::int64_t> batches, Campaign campaign = {}, const ShapeBindings& dims = {});
    CostFunction(const Space&& temporary, DeviceProfile, FrameworkProfile, PredictOptions, std::vector<std::int64_t>,
                 Campaign = {}, const ShapeBindings& = {}) = delete;
    ~CostFunction();
    CostFunction(CostFunction&&) noexcept;
    CostFunction& operator=(CostFunction&&) noexcept;

    /// Latency in seconds per batch, in the order of batches(). Thread-safe.
    /// Throws Error{usage} for a choice that its site does not have, what Space::build and Predictor throw.
    void cost(std::span<const int> choices, std::span<double> latency_s) const;
    /// Costs many architectures on `threads` threads (0: all cores). `choices` and `latency_s` are row-major:
    /// one architecture a row, options().size() choices, batches().size() latencies.
    void cost(std::span<const int> choices, std::span<double> latency_s, unsigned threads) const;
    /// Latency with each option of choice `site` instead of the one taken: rows of options, columns of batches.
    void marginal_cost(std::span<const int> choices, std::size_t site, std::span<double> latency_s) const;

    [[nodiscard]] const Space& space() const;  ///< the caller's
    [[nodiscard]] const std::vector<std::int64_t>& batches() const;
    [[nodiscard]] const ShapeBindings& dims() const;  ///< all but `batch`

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace ftax::nas
