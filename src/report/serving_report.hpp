#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ftax/memory.hpp"
#include "ftax/serve.hpp"
#include "src/report/columns.hpp"

namespace ftax::report {

/// One combination of device, framework, precision and number of cards.
struct ServingRow {
    std::string device, framework, version, precision;
    int cards = 1;
    std::string skipped;  ///< why there is no result; else empty
    Serving serving;
    double low = 1, high = 1;  ///< 90 % interval of a step's time, against the time predicted
    double idle_w = 0;         ///< that a board draws between steps
    double kept_share = 1;     ///< of the requests that keep the level
    bool keeps_level = true;
    std::optional<double> largest_rate;  ///< that keeps the level, or, where more arrive than it takes, that it serves
    MemoryUse memory;                    ///< with the cache at its fullest
    std::int64_t cache_tokens = 0;       ///< that the cache has room for; 0: the model has none
    std::optional<double> dollars_per_hour;  ///< of all cards
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
    bool has_level = false, has_price = false, finds_rate = false;
    std::vector<ServingRow> rows;  ///< best first
    std::vector<std::string> warnings;
};

/// Sorts the rows: those that keep the level first, then by dollars per token, or cards and latency without prices.
void rank(ServingReport& report);

/// Refer to the report.
[[nodiscard]] Columns<ServingRow> serving_columns(const ServingReport& report);
[[nodiscard]] std::string to_table(const ServingReport& report, Style style);
/// Schema: docs/formats.md.
[[nodiscard]] std::string to_json(const ServingReport& report);
[[nodiscard]] std::string to_csv(const ServingReport& report);
/// The page of `ftax serve`: the rows, latency against rate, and batch, queue and cache of the best over time.
[[nodiscard]] std::string serving_page(const ServingReport& report);

}  // namespace ftax::report
