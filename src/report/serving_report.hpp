#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ftax/memory.hpp"
#include "ftax/serve.hpp"
#include "src/report/choice.hpp"
#include "src/report/columns.hpp"

namespace ftax::report {

/// One combination; its figures are those of tokens, or of requests where none are generated, and the 99th percentile
/// of the latency.
struct ServingRow : Choice {
    Serving serving;
    std::string layout;                  ///< "2 x tp 4 dp 2 ep 8"; empty: one server whose cards share every layer
    double idle_w = 0;                   ///< that a board draws between steps
    double kept_share = 1;               ///< of the requests that keep the level
    std::optional<double> largest_rate;  ///< that keeps the level, or, where more arrive than it takes, that it serves
    MemoryUse memory;                    ///< with the cache at its fullest
    std::int64_t cache_tokens = 0;       ///< that the cache has room for; 0: the model has none
    /// p50 and p99 of the latency at rates below and above the one that was asked for.
    struct AtRate {
        double rate = 0, p50_s = 0, p99_s = 0;
    };
    std::vector<AtRate> rates;
    std::vector<std::string> warnings;
};

struct ServingReport {
    std::string model, workload;  ///< "1000 requests at 4 per second, 512 tokens in and 128 out"
    bool generates = true;        ///< else every request is one run's item
    ServiceLevel level;
    Ranking ranking;
    std::vector<ServingRow> rows;  ///< best first
    std::vector<std::string> warnings;
};

/// Refer to the report.
[[nodiscard]] Columns<ServingRow> serving_columns(const ServingReport& report);
[[nodiscard]] std::string to_table(const ServingReport& report, Style style);
/// Schema: docs/formats.md.
[[nodiscard]] std::string to_json(const ServingReport& report);
[[nodiscard]] std::string to_csv(const ServingReport& report);
/// The page of `ftax serve`: the rows, latency against rate, and batch, queue and cache of the best over time.
[[nodiscard]] std::string serving_page(const ServingReport& report);

}  // namespace ftax::report
