#pragma once

#include <string>
#include <vector>

#include "ftax/framework.hpp"
#include "ftax/measurement.hpp"

namespace ftax::folds {

/// One run as predicted without the rows of its model.
struct ScoredRun {
    LanguageMeasurement row;
    double predicted_s = 0;
    double low_s = 0, high_s = 0;  ///< 90 % interval
    bool waits = false;            ///< the batch does not fit at once: sequences wait for others
};

struct ServingScore {
    std::vector<ScoredRun> runs;
    /// The same with one run of the model as an anchor, that which is measured fastest: batch 1, the fewest tokens.
    /// That run itself is left out.
    std::vector<ScoredRun> anchored;
    std::vector<FrameworkProfile> profiles;  ///< fitted on all rows, with the noise of the runs left out
};

/// Fits the hosts of the frameworks that serve language models, each model left out in turn, then on all rows.
/// Rows of a framework at batch 1 only do not tell its two host costs apart: they are predicted with start values. Rows
/// of other frameworks and models are passed over.
[[nodiscard]] ServingScore score_serving(const std::vector<LanguageMeasurement>& rows, const std::string& source);

/// The runs of both folds as rows, and in the fold "costs" what was fitted for each framework: host_s of a pass,
/// device_s of a sequence.
[[nodiscard]] std::string serving_csv(const ServingScore& score);

}  // namespace ftax::folds
