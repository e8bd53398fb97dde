#include "calibration/nas/additive.hpp"

#include <Eigen/Dense>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "calibration/nas/score.hpp"

namespace ftax::nas_study {
namespace {

constexpr std::size_t scored_of = 4;

/// One column for each option of each choice, behind a constant one.
class Design {
  public:
    explicit Design(const nas::Space& space) : space_(space), options_(space.options()) {
        for (const int options : options_) {
            first_.push_back(columns_);
            columns_ += options;
        }
    }

    Eigen::VectorXd row(std::vector<int> choices) const {
        Eigen::VectorXd row = Eigen::VectorXd::Zero(columns_);
        row[0] = 1;
        const std::vector<nas::Block> chain = blocks(choices);
        for (std::size_t i = 0; i < choices.size(); ++i) {
            // The kernel of a block that a shallow stage leaves out, say, is no choice.
            const int chosen = choices[i];
            choices[i] = chosen > 0 ? chosen - 1 : options_[i] - 1;
            if (blocks(choices) != chain) row[first_[i] + chosen] = 1;
            choices[i] = chosen;
        }
        return row;
    }

    Eigen::Index columns() const { return columns_; }

  private:
    std::vector<nas::Block> blocks(const std::vector<int>& choices) const {
        std::vector<nas::Block> chain;
        space_.blocks(choices, chain);
        return chain;
    }

    const nas::Space& space_;
    std::vector<int> options_;
    std::vector<Eigen::Index> first_;
    Eigen::Index columns_ = 1;
};

}  // namespace

double additive_spearman(const Column& column) {
    const Design design(*column.space);
    // A ridge of one row holds what the rows do not tell apart.
    Eigen::MatrixXd normal = Eigen::MatrixXd::Identity(design.columns(), design.columns());
    Eigen::VectorXd right = Eigen::VectorXd::Zero(design.columns());
    std::vector<Eigen::VectorXd> scored;
    std::vector<double> measured_s;
    for (std::size_t i = 0; i < column.samples.size(); ++i) {
        const nas::Sample& sample = column.samples[i];
        Eigen::VectorXd row = design.row(sample.choices);
        if (i % scored_of == 0) {
            scored.push_back(std::move(row));
            measured_s.push_back(sample.latency_s);
        } else {
            normal.selfadjointView<Eigen::Lower>().rankUpdate(row);
            right += std::log(sample.latency_s) * row;
        }
    }
    const Eigen::VectorXd numbers = normal.selfadjointView<Eigen::Lower>().ldlt().solve(right);
    std::vector<double> predicted;
    for (const Eigen::VectorXd& row : scored) predicted.push_back(row.dot(numbers));
    return spearman(predicted, measured_s);
}

}  // namespace ftax::nas_study
