#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "ftax/predict.hpp"
#include "src/report/columns.hpp"

namespace ftax::report {

/// Total cost of the launches of one kind or module.
struct Share {
    std::string name;
    int launches = 0, kernels = 0;
    double host_s = 0, device_s = 0;
};

/// Columns of a table of these, whose first column has this title.
[[nodiscard]] Columns<Share> share_columns(std::string_view title, const std::vector<Share>& shares);

/// Sums the launches of a prediction by the name that `group` returns for each index; sorted by name.
[[nodiscard]] std::vector<Share> sum_by_name(const std::vector<OpPrediction>& launches,
                                             const std::function<std::string(std::size_t)>& group);

/// Sums the launches of a prediction of `graph` (Predictor::graph) by the kind of their operator; largest first, by the
/// larger of host and device time. The forward call itself is listed as "forward".
[[nodiscard]] std::vector<Share> breakdown(const Graph& graph, const std::vector<OpPrediction>& launches);

}  // namespace ftax::report
