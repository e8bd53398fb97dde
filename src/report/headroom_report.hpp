#pragma once

#include <string>
#include <vector>

#include "ftax/headroom.hpp"
#include "src/report/prediction_report.hpp"

namespace ftax::report {

/// The same run under another framework.
struct FrameworkSwitch {
    std::string framework, version;
    double latency_s = 0;
    Bound bound = Bound::host;
    bool is_calibrated = true;  ///< false: its host costs are initial values
    Evidence evidence = Evidence::unrated;
};

/// Headroom of a model's run, and its latency under other frameworks.
struct HeadroomReport {
    PredictionReport run;  ///< one row: the original run
    double budget = 0;
    std::vector<Headroom> growths;
    std::vector<FrameworkSwitch> switches;  ///< fastest first; without the run's own framework
};

[[nodiscard]] Columns<Headroom> growth_columns(const std::vector<std::string>& warnings = {});
/// Refer to the report.
[[nodiscard]] Columns<FrameworkSwitch> switch_columns(const HeadroomReport& report);
/// The first line of the report: latency, bound, how far each property can grow, and the fastest other framework.
[[nodiscard]] std::string verdict_of(const HeadroomReport& report);
[[nodiscard]] std::string to_table(const HeadroomReport& report, Style style);
[[nodiscard]] std::string to_json(const HeadroomReport& report);
[[nodiscard]] std::string to_csv(const HeadroomReport& report);

}  // namespace ftax::report
