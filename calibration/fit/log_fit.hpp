#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ftax/parameter.hpp"

/// Least squares over positive unknowns in log space, with a robust loss, bounds, priors and several starts.
namespace ftax::fit {

struct FitOptions {
    int starts = 3;               ///< the first from the priors' centres, the others scattered within the priors
    int iterations = 60;          ///< per start
    double row_log_stddev = 0.1;  ///< residual of one row that counts as usual; beyond it the loss grows linearly
};

/// One positive unknown. `value` starts as the centre of its prior.
struct Unknown {
    std::string name;
    double value = 1;
    double lower = 0, upper = 0;
    double prior_log_stddev = 0;  ///< width of log(value) around its start; 0 for no prior
    double relative_stddev = 0;   ///< posterior of log(value); 0 if unknown
    bool fixed = false;
    double log_shift = 0;  ///< how far the fit took log(value) from its start, where a prior alone leaves it
};

/// Whether no row of a fit said anything about an unknown: its posterior is its prior, in place and in width.
inline bool is_unseen(const Unknown& u) {
    const bool moved = u.log_shift > 1e-6, narrowed = u.relative_stddev <= 0.9 * u.prior_log_stddev;
    return !moved || (!narrowed && u.log_shift < 0.25 * u.prior_log_stddev);
}

inline Unknown unknown(std::string name, const ParameterSpec& spec) {
    return {std::move(name), spec.initial, spec.lower, spec.upper, spec.prior_log_stddev};
}

/// A fit under construction: blocks of unknowns, then rows that depend on some of the blocks.
class LogFit {
  public:
    using Block = std::vector<Unknown>;

    std::size_t add_block(Block block);
    [[nodiscard]] const Block& block(std::size_t index) const { return blocks_[index]; }

    /// Seconds of a row as a function of the values of the blocks that it depends on.
    using Model = std::function<double(double const* const* blocks)>;

    /// Adds the residual log(model(blocks) / measured). `model` reads the values of the named blocks (not their
    /// logarithms) in the order given here.
    void add_row(Model model, double measured, std::vector<std::size_t> blocks) {
        rows_.push_back({std::move(model), std::log(measured), std::move(blocks)});
    }

    explicit LogFit(FitOptions options) : options_(options) {}

    /// Solves from every start, keeps the best, estimates standard deviations. Returns whether the best converged.
    bool solve();

  private:
    struct Row {
        Model model;
        double log_measured;
        std::vector<std::size_t> blocks;
    };
    class Residual;

    FitOptions options_;
    std::vector<Block> blocks_;
    std::vector<Row> rows_;
};

}  // namespace ftax::fit
