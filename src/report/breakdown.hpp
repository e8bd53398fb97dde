#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "ftax/predict.hpp"
#include "src/report/columns.hpp"

namespace ftax::report {

/// What the launches of one kind or module cost together.
struct Share {
    std::string name;
    int launches = 0, kernels = 0;
    double host_s = 0, device_s = 0;
};

/// Of a table whose first column has this title.
[[nodiscard]] Columns<Share> share_columns(std::string_view title);

/// Adds up the launches of a prediction by the name that `group` gives the launch at an index; in order of name.
[[nodiscard]] std::vector<Share> sum_by_name(const std::vector<OpPrediction>& launches,
                                             const std::function<std::string(std::size_t)>& group);

/// Adds up the launches of a prediction, which count in `graph` (Predictor::graph), by the name that `group` gives
/// their operator; dearest first, by the larger of host and device time. The forward call itself stands as "forward".
[[nodiscard]] std::vector<Share> breakdown(const Graph& graph, const std::vector<OpPrediction>& launches,
                                           const std::function<std::string(const Op&)>& group);

/// Group: what the operator does ("conv").
[[nodiscard]] std::string kind_of(const Op& op);
/// Group: the module two levels below the model ("encoder.layer", "layer1.0"), where its stages differ.
[[nodiscard]] std::string stage_of(const Op& op);

}  // namespace ftax::report
