#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ftax/memory.hpp"
#include "ftax/serve.hpp"
#include "src/report/choice.hpp"
#include "src/report/columns.hpp"

namespace ftax::report {

/// One combination; its figures refer to tokens, or to requests if none are generated, and to the p99 latency.
struct ServingRow : Choice {
    Serving serving;
    double idle_w = 0;                   ///< power of a board between steps
    double kept_share = 1;               ///< share of requests that meet the SLO
    std::optional<double> largest_rate;  ///< highest rate that meets the SLO, or the served rate under overload
    MemoryUse memory;                    ///< at peak cache use
    std::int64_t cache_tokens = 0;       ///< capacity of the cache; 0: no cache
    /// p50 and p99 of the latency at rates around the requested one; of a search, at the cost of those on the front.
    struct AtRate {
        double rate = 0, p50_s = 0, p99_s = 0;
    };
    std::vector<AtRate> rates;
    std::vector<std::string> commands;  ///< of a search: start the servers, and send such requests
    bool on_front = false;              ///< of a search: see is_on_front()
    std::vector<std::string> warnings;
};

/// What a benchmark measured, by the key of its column: "ttft_p50_s", "tokens_per_s".
using MeasuredFigures = std::vector<std::pair<std::string, double>>;

struct ServingReport {
    std::string model, workload;  ///< "1000 requests at 4 per second, 512 tokens in and 128 out"
    bool generates = true;        ///< false: every request is one item of a run
    ServiceLevel level;
    double offered_per_s = 0;  ///< rate of arrivals; 0: as earlier requests end
    Ranking ranking;
    std::size_t searches = 0;      ///< layouts that were tried; 0: no search
    std::vector<ServingRow> rows;  ///< best first
    MeasuredFigures measured;      ///< of a run like the first; empty: none
    double tokens = 0;             ///< that its requests generate
    std::vector<std::string> warnings;
};

/// Refer to the report.
[[nodiscard]] Columns<ServingRow> serving_columns(const ServingReport& report);
[[nodiscard]] std::string to_table(const ServingReport& report, Style style);
[[nodiscard]] std::string to_json(const ServingReport& report);
[[nodiscard]] std::string to_csv(const ServingReport& report);
/// Writes the page of `ftax serve`: the rows, latency over rate, and batch, queue and cache of the best over time.
[[nodiscard]] std::string serving_page(const ServingReport& report);

}  // namespace ftax::report
