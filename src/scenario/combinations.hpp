#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/serve.hpp"
#include "src/report/choice.hpp"
#include "src/scenario/scenario.hpp"

/// List arguments of compare, generate and serve, and the ranking of their rows.
namespace ftax::scenario {

struct ChoiceArguments {
    std::string tensor_parallel = "1";  ///< list of card counts
    std::string prices;                 ///< dollars per hour of one card: a number, one per device, or a CSV file
    std::string level;                  ///< "ttft=500ms,tpot=50ms,latency=2s"
    std::string sort;                   ///< ranking criterion; empty: default
    std::int64_t top = 0;               ///< rows to keep; 0: all
};

struct Combination {
    RunArguments run;
    std::int64_t cards = 1;
    std::optional<double> dollars_per_hour;  ///< price of all cards

    /// Returns a row that describes the combination; its precision is empty if it follows from the model.
    [[nodiscard]] report::Choice choice() const;
};

/// Returns every combination of the devices, frameworks and precisions of `run` and the card counts, devices outermost.
/// Without devices, uses those of the price file. Throws Error{usage} for invalid names and prices.
[[nodiscard]] std::vector<Combination> combinations(const RunArguments& run, const ChoiceArguments& arguments);

/// Returns the ranking: by cost if there are prices, else by `without`. Throws Error{usage} for an unknown criterion.
[[nodiscard]] report::Ranking ranking_of(const ChoiceArguments& arguments, std::optional<report::Criterion> without,
                                         std::string items);

/// Parses "ttft=500ms,tpot=50ms,latency=2s". Throws Error{usage}.
[[nodiscard]] ServiceLevel parse_level(std::string_view text, double kept_share = 1);

/// Sets whether the times of a row meet the level. Throws Error{usage} for a limit on a time that the row lacks.
void hold_to(const ServiceLevel& level, report::Choice& choice);

}  // namespace ftax::scenario
