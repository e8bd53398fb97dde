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
    bool waits = false;  ///< the batch does not fit at once: sequences wait for others
};

struct ServingScore {
    std::vector<ScoredRun> runs;
    std::vector<FrameworkProfile> profiles;  ///< fitted on all rows, with the noise of the runs left out
};

/// Fits the hosts of the frameworks that serve language models, each model left out in turn, then on all rows.
/// Rows of other frameworks and models are passed over.
[[nodiscard]] ServingScore score_serving(const std::vector<LanguageMeasurement>& rows, const std::string& source);

[[nodiscard]] std::string serving_markdown(const ServingScore& score);

}  // namespace ftax::folds
