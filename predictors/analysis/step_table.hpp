#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "ftax/generate.hpp"
#include "ftax/serve.hpp"

namespace ftax {

/// A function of two whole numbers that is computed where it bends. An interval between two points that begin at powers
/// of two is tested once it has been asked for several times: it is straight where points inside agree with the line
/// between its ends, else its halves are looked at. Until then, and in intervals of one, the function itself answers.
class BendingTable {
  public:
    using Function = std::function<StepCost(std::int64_t x, std::int64_t y)>;

    explicit BendingTable(Function function) : function_(std::move(function)) {}
    [[nodiscard]] StepCost at(std::int64_t x, double y);

  private:
    using Interval = std::pair<std::int64_t, std::int64_t>;
    struct Straightness {
        int asked = 0;
        std::optional<bool> straight;  ///< nullopt: not tested yet
    };
    /// The points of one x, which intervals of y are straight, and the last one that was asked for, with its ends.
    struct Curve {
        std::unordered_map<std::int64_t, StepCost> costs;
        std::map<Interval, Straightness> intervals;
        Interval straight{};
        std::pair<const StepCost*, const StepCost*> ends{};
    };

    template <class IsStraight>
    static std::optional<Interval> straight_interval(std::int64_t value, std::map<Interval, Straightness>& intervals,
                                                     const IsStraight& is_straight);
    const StepCost& point(std::int64_t x, Curve& curve, std::int64_t y);
    [[nodiscard]] StepCost along(std::int64_t x, double y);

    Function function_;
    std::unordered_map<std::int64_t, Curve> curves_;
    std::map<std::int64_t, std::map<Interval, Straightness>> intervals_;  ///< of x, by the power of two below y
};

/// What a step takes beside the pass over its tokens.
struct StepOptions {
    bool schedules_ahead = true;       ///< host and device of successive steps run side by side
    double sampling_s = 0;             ///< of the sampler's kernels, for each token
    std::int64_t captured_tokens = 0;  ///< of the largest step with prompts that is CUDA graphs between attentions
    std::int64_t draft_tokens = 0;     ///< that are verified for each sequence
    Generator* draft = nullptr;        ///< what predicts them, one pass for each; null: nothing that takes time
};

/// Costs the steps of an engine that serves a language model, by exact predictions of passes and a table of them.
class StepTable {
  public:
    /// Keeps references.
    StepTable(Generator& generator, const StepOptions& options);

    /// A step of prompts and decoding sequences is a pass over all of its tokens, and what keys and values add.
    [[nodiscard]] StepCost operator()(const StepLoad& load);

  private:
    [[nodiscard]] StepCost prompts(std::int64_t tokens, double keys);
    [[nodiscard]] StepCost decoding(std::int64_t sequences, std::int64_t context);
    void add_device(StepCost& cost, double seconds, double energy_j) const;

    Generator& generator_;
    StepOptions options_;
    BendingTable prompts_, decoding_;
    std::map<std::array<std::int64_t, 3>, StepCost> passes_;  ///< prompts: sequences, new and cached tokens of each
    std::map<std::int64_t, StepCost> images_;                 ///< of the encoder
    double sequence_s_;                                       ///< host time per sequence of a step
    double forward_s_ = 0;  ///< host time of a step before it launches kernels one by one
    double pieces_s_ = 0;   ///< host time of a step whose attention operators alone it launches
};

}  // namespace ftax
