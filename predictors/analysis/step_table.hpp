#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "ftax/generate.hpp"
#include "ftax/serve.hpp"

namespace ftax {

/// A function of two whole numbers, computed where it bends: between two points it is taken as straight once one in the
/// middle confirms that to `tolerance`. Points begin at powers of two.
class BendingTable {
  public:
    using Function = std::function<StepCost(std::int64_t x, std::int64_t y)>;

    explicit BendingTable(Function function) : function_(std::move(function)) {}
    [[nodiscard]] StepCost at(std::int64_t x, double y);
    [[nodiscard]] std::size_t points() const { return points_; }

  private:
    using Interval = std::pair<std::int64_t, std::int64_t>;
    /// The points of one x, and which intervals of y are straight.
    struct Curve {
        std::map<std::int64_t, StepCost> costs;
        std::map<Interval, bool> straight;
    };

    const StepCost& point(std::int64_t x, Curve& curve, std::int64_t y);
    [[nodiscard]] StepCost along(std::int64_t x, double y);

    Function function_;
    std::map<std::int64_t, Curve> curves_;
    std::map<std::pair<Interval, std::int64_t>, bool> straight_;  ///< intervals of x by the power of two below y
    std::size_t points_ = 0;
};

/// Costs the steps of an engine that serves a language model, by exact predictions of passes and a table of them.
class StepTable {
  public:
    /// Keeps a reference. `schedules_ahead`: host and device of successive steps run side by side. `sampling_s`: time
    /// of the sampler's kernels for each token.
    StepTable(Generator& generator, bool schedules_ahead, double sampling_s = 0);

    /// A step of prompts and decoding sequences is that of a pass over all of its tokens, and what the sequences' keys
    /// and values take beyond it.
    [[nodiscard]] StepCost operator()(const StepLoad& load);
    /// The same without the table.
    [[nodiscard]] StepCost exact(const StepLoad& load);

  private:
    [[nodiscard]] StepCost prompts(std::int64_t tokens, double keys);
    [[nodiscard]] StepCost decoding(std::int64_t sequences, std::int64_t context);
    template <class Prompts, class Decoding>
    [[nodiscard]] StepCost cost(const StepLoad& load, const Prompts& prompts, const Decoding& decoding) const;
    [[nodiscard]] StepCost with_sampling(StepCost cost, const StepLoad& load) const;

    Generator& generator_;
    bool schedules_ahead_;
    double sampling_s_;
    BendingTable prompts_, decoding_;
};

}  // namespace ftax
