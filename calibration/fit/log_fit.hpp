#pragma once

#include <ceres/ceres.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "calibration/fit/fit_options.hpp"
#include "ftax/parameter.hpp"

/// Least squares over positive unknowns in log space, with a robust loss, bounds, priors and several starts.
namespace ftax::fit {

/// One positive unknown. `value` starts as the centre of its prior.
struct Unknown {
    std::string name;
    double value = 1;
    double lower = 0, upper = 0;
    double prior_log_stddev = 0;  ///< of log(value) around its start; 0 for no prior
    double relative_stddev = 0;   ///< of log(value) after the fit; 0 when unknown
    bool fixed = false;
    double log_shift = 0;  ///< how far the fit took log(value) from its start, where a prior alone leaves it
};

/// Whether no row of a fit said anything about an unknown: its posterior is its prior, in place and in width.
inline bool is_unseen(const Unknown& u) {
    const bool moved = u.log_shift > 1e-6, narrowed = u.relative_stddev <= 0.9 * u.prior_log_stddev;
    return !moved || (!narrowed && u.log_shift < 0.25 * u.prior_log_stddev);
}

/// Declares an unknown as a model does.
inline Unknown unknown(std::string name, const ParameterSpec& spec) {
    return {std::move(name), spec.initial, spec.lower, spec.upper, spec.prior_log_stddev};
}

/// A fit under construction: blocks of unknowns, then rows that depend on some of the blocks.
class LogFit {
  public:
    using Block = std::vector<Unknown>;

    /// Returns the index of the new block.
    std::size_t add_block(Block block);
    [[nodiscard]] const Block& block(std::size_t index) const { return blocks_[index]; }

    /// Adds the residual log(model(unknowns) / measured). `model(T const* const* blocks) → T` sees the values of the
    /// named blocks (not their logarithms) in the order given here.
    /// Throws std::length_error for more blocks or longer ones than a residual has room for.
    template <class Model>
    void add_row(Model model, double measured, const std::vector<std::size_t>& blocks) {
        std::vector<int> sizes;
        for (const std::size_t b : blocks) {
            if (blocks.size() > max_blocks || blocks_[b].size() > max_block) {
                throw std::length_error("a row depends on too many unknowns");
            }
            sizes.push_back(static_cast<int>(blocks_[b].size()));
        }
        auto* cost = new ceres::DynamicAutoDiffCostFunction<Residual<Model>, jet_width>(
            new Residual<Model>{std::move(model), std::log(measured), row_log_stddev_, sizes});
        for (const int size : sizes) cost->AddParameterBlock(size);
        cost->SetNumResiduals(1);
        rows_.push_back({std::unique_ptr<ceres::CostFunction>(cost), blocks});
    }

    /// `row_log_stddev` must be known when rows are added.
    explicit LogFit(FitOptions options) : options_(options), row_log_stddev_(options.row_log_stddev) {}

    /// Solves from every start, keeps the best and estimates the standard deviations.
    FitSummary solve();

  private:
    /// Derivatives taken in one pass; more unknowns than this are taken in several.
    static constexpr int jet_width = 12;

    template <class Model>
    struct Residual {
        Model model;
        double log_measured;
        double log_stddev;
        std::vector<int> sizes;

        template <class T>
        bool operator()(T const* const* log_values, T* residual) const {
            using std::exp;
            using std::log;
            std::array<std::array<T, max_block>, max_blocks> values;
            std::array<const T*, max_blocks> pointers{};
            for (std::size_t b = 0; b < sizes.size(); ++b) {
                for (int i = 0; i < sizes[b]; ++i) values[b][static_cast<std::size_t>(i)] = exp(log_values[b][i]);
                pointers[b] = values[b].data();
            }
            residual[0] = (log(model(pointers.data())) - log_measured) / log_stddev;
            return true;
        }
    };
    static constexpr std::size_t max_blocks = 6;
    static constexpr std::size_t max_block = 128;

    struct Row {
        std::unique_ptr<ceres::CostFunction> cost;
        std::vector<std::size_t> blocks;
    };

    FitOptions options_;
    double row_log_stddev_;
    std::vector<Block> blocks_;
    std::vector<Row> rows_;
};

}  // namespace ftax::fit
