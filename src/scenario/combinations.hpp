#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/serve.hpp"
#include "src/report/choice.hpp"
#include "src/scenario/scenario.hpp"

/// The lists that compare, generate and serve take, and how their rows are ranked.
namespace ftax::scenario {

struct ChoiceArguments {
    std::string tensor_parallel = "1";  ///< a list of numbers of cards
    std::string prices;                 ///< dollars per hour of one card: one, one for each device, or a CSV file
    std::string level;                  ///< "ttft=500ms,tpot=50ms,latency=2s"
    std::string sort;                   ///< a criterion; empty for the default
    std::int64_t top = 0;               ///< rows to keep; 0: all
};

/// One of each list.
struct Combination {
    RunArguments run;
    std::int64_t cards = 1;
    std::optional<double> dollars_per_hour;  ///< of all cards

    /// A row that says what runs; where its precision follows from the model, that is still empty.
    [[nodiscard]] report::Choice choice() const;
};

/// Every combination of the devices, frameworks and precisions of `run` and the numbers of cards, devices outermost.
/// Without devices those of the file of prices. Throws Error{usage} for names and prices that are none.
[[nodiscard]] std::vector<Combination> combinations(const RunArguments& run, const ChoiceArguments& arguments);

/// By cost where there are prices, by `without` else. Throws Error{usage} for a criterion that is none.
[[nodiscard]] report::Ranking ranking_of(const ChoiceArguments& arguments, std::optional<report::Criterion> without,
                                         std::string items);

/// Parses "ttft=500ms,tpot=50ms,latency=2s". Throws Error{usage}.
[[nodiscard]] ServiceLevel parse_level(std::string_view text, double kept_share = 1);

/// Sets whether the times of a row are within the level. Throws Error{usage} for a limit on a time that the row has
/// not.
void hold_to(const ServiceLevel& level, report::Choice& choice);

}  // namespace ftax::scenario
