#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/evidence.hpp"
#include "graphs/base/mapped.hpp"
#include "src/report/columns.hpp"

/// Ranking and verdict shared by compare, generate and serve.
namespace ftax::report {

enum class Criterion : std::uint8_t { latency, first_token, per_token, throughput, cost, energy, memory };

/// Returns the names accepted by --sort.
[[nodiscard]] std::vector<std::string> criterion_names();
[[nodiscard]] std::optional<Criterion> criterion_from_name(std::string_view name);

/// One combination of device, framework and precision, with the figures that rank it, as far as they apply.
struct Choice {
    std::string device, framework, version, host, precision;
    int cards = 1;
    std::string layout;                      ///< "2 x tp 4 dp 2 ep 8"; empty: one tensor-parallel server
    std::optional<std::int64_t> batch;       ///< nullopt if there is none, or the model fixes it
    std::optional<double> dollars_per_hour;  ///< price of all cards
    std::string skipped;                     ///< why it cannot run; otherwise empty
    bool keeps_level = true;                 ///< meets --slo, or there is none
    bool keeps_level_surely = true;          ///< meets it at the upper end of its interval, too
    bool fits = true;                        ///< fits into memory
    bool is_saturated = false;               ///< more items arrive than it serves: its queue grows without end
    bool is_paced = false;                   ///< items_per_s is the rate of arrivals, independent of the predicted time
    std::optional<double> latency_s, first_token_s, per_token_s, items_per_s, energy_per_item_j, memory_bytes;
    double low = 1, high = 1;  ///< 90 % interval of a time, as factors of the predicted time
    Evidence rests_on = Evidence::unrated;

    [[nodiscard]] bool runs() const { return skipped.empty(); }
    /// Dollars per million items (tokens, requests) at items_per_s.
    [[nodiscard]] std::optional<double> dollars_per_million() const;
    /// Dollars per hour, or cards without a price, for an item per second.
    [[nodiscard]] double cost() const { return dollars_per_hour.value_or(cards) / items_per_s.value_or(0); }
};

/// Ranking of the rows, and the --slo.
struct Ranking {
    std::optional<Criterion> by;  ///< nullopt: by latency within each batch
    std::int64_t top = 0;         ///< maximum number of rows; 0: all
    bool has_level = false;
    bool fewest_cards = false;        ///< rows with fewer cards come first; of saturated ones those that serve most
    std::string items = "items";      ///< unit of items_per_s: "items", "tokens" or "requests"
    std::string latency = "latency";  ///< what latency_s is: "p99 latency"
    std::string verdict{};            ///< first line of the report, set by ranking
};

/// device, framework, framework_version, precision, cards, batch, keeps_level, fits, items_per_s, dollars_per_million,
/// skipped. Refer to the ranking.
[[nodiscard]] Columns<Choice> choice_columns(const Ranking& ranking);

/// "4 x h100-sxm5-80gb"
[[nodiscard]] std::string with_cards(const Choice& choice);

struct Differences {
    bool device = false, framework = false, precision = false, cards = false, layout = false, batch = false;

    explicit Differences(const std::vector<const Choice*>& choices);
    /// Returns the keys of their columns, for a selection; pages always include device and framework.
    [[nodiscard]] std::string keys(bool on_page = false) const;
    /// "tensorrt, l4, fp8, batch 8": the options in which this choice differs from the others.
    [[nodiscard]] std::string name(const Choice& choice) const;
    /// "l4, fp16": the options common to all choices, for a title.
    [[nodiscard]] std::string common(const Choice& choice) const;
};

/// Order of a ranking: choices that run, keep up with their load, meet the SLO and fit come first, then by the
/// criterion. Batches that are not ranked against each other keep their order of first occurrence. Throws Error{usage}
/// for a criterion without figures.
[[nodiscard]] std::vector<std::size_t> order_of(const std::vector<const Choice*>& choices, const Ranking& ranking);

/// Returns "order: fewest cards, then p99 latency".
[[nodiscard]] std::string order_text(const Ranking& ranking);

/// Returns the best of sorted choices and its margin, considering the 90 % intervals; empty if none runs.
[[nodiscard]] std::string verdict_on(const std::vector<const Choice*>& choices, const Ranking& ranking);

/// Whether a choice keeps up with its load and none of the others that do is as fast and cheaper.
[[nodiscard]] bool is_on_front(const Choice& choice, const std::vector<const Choice*>& choices);

template <class Row>
std::vector<const Choice*> choices_of(const std::vector<Row>& rows) {
    return mapped(rows, [](const Row& row) -> const Choice* { return &row; });
}

/// Sorts the rows, sets the verdict on all of them and keeps the ranking's number of rows.
template <class Row>
void rank_rows(std::vector<Row>& rows, Ranking& ranking) {
    auto ranked = mapped(order_of(choices_of(rows), ranking), [&](std::size_t i) { return std::move(rows[i]); });
    ranking.verdict = verdict_on(choices_of(ranked), ranking);
    if (ranking.top > 0 && ranked.size() > static_cast<std::size_t>(ranking.top))
        ranked.resize(static_cast<std::size_t>(ranking.top));
    rows = std::move(ranked);
}

/// Splits rows into those that ran, for a table or page, and lines "WHAT on DEVICE: reason" for the others.
template <class Row>
std::vector<Row> rows_that_run(const std::vector<Row>& rows) {
    std::vector<Row> some;
    for (const Row& row : rows)
        if (row.runs()) some.push_back(row);
    return some;
}
[[nodiscard]] std::vector<std::string> reasons_of(const std::vector<const Choice*>& choices);

}  // namespace ftax::report
