#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/report/columns.hpp"

/// What compare, generate and serve decide between: one ranking and one verdict for the three.
namespace ftax::report {

/// What a ranking goes by.
enum class Criterion : std::uint8_t { latency, first_token, per_token, throughput, cost, energy, memory };

/// As --sort names them.
[[nodiscard]] const std::vector<std::string>& criterion_names();
[[nodiscard]] std::optional<Criterion> criterion_from_name(std::string_view name);

/// One combination of what runs a model, with the figures that rank it; each absent where it does not apply.
struct Choice {
    std::string device, framework, version, host, precision;
    int cards = 1;
    std::optional<std::int64_t> batch;       ///< nullopt where there is none, or the model fixes it
    std::optional<double> dollars_per_hour;  ///< of all cards
    std::string skipped;                     ///< why it cannot run; else empty
    bool keeps_level = true;                 ///< keeps what --slo asks for, or nothing is asked for
    bool keeps_level_surely = true;          ///< also at the upper end of its interval
    bool fits = true;                        ///< into the memory
    bool is_paced = false;                   ///< items come at a given rate, whatever the time predicted
    std::optional<double> latency_s, first_token_s, per_token_s, items_per_s, energy_per_item_j, memory_bytes;
    double low = 1, high = 1;  ///< 90 % interval of a time, as factors of the time predicted

    [[nodiscard]] bool runs() const { return skipped.empty(); }
    /// Dollars per million items (tokens, requests) at full use of the cards.
    [[nodiscard]] std::optional<double> dollars_per_million() const;
};

/// How rows are ranked, and what --slo asked for.
struct Ranking {
    std::optional<Criterion> by;  ///< nullopt: by latency within each batch
    std::int64_t top = 0;         ///< so many rows at most; 0: all
    bool has_level = false;
    bool fewest_cards = false;    ///< whatever needs fewer cards stands first
    std::string items = "items";  ///< what items_per_s counts: "items", "tokens" or "requests"
    std::string verdict{};        ///< the first line of the report, once its rows are ranked
};

/// device, framework, framework_version, precision, cards, batch, keeps_level, fits, items_per_s, dollars_per_million,
/// skipped. Refer to the ranking.
[[nodiscard]] Columns<Choice> choice_columns(const Ranking& ranking);

/// What differs between choices.
struct Differences {
    bool device = false, framework = false, precision = false, cards = false, batch = false;

    explicit Differences(const std::vector<const Choice*>& choices);
    /// The keys of their columns, for a selection; a page always names device and framework, a terminal its version.
    [[nodiscard]] std::string keys(bool on_page = false) const;
    /// "tensorrt, l4, fp8, batch 8": what tells a choice from the others.
    [[nodiscard]] std::string name(const Choice& choice) const;
    /// "l4, fp16": what they have in common, for a title.
    [[nodiscard]] std::string common(const Choice& choice) const;
};

/// The order of a ranking: those that run, keep the level and fit first, then by the criterion. Batches keep the order
/// in which they first occur where they are not ranked among each other. Throws Error{usage} for a criterion that no
/// choice has a figure for.
[[nodiscard]] std::vector<std::size_t> order_of(const std::vector<const Choice*>& choices, const Ranking& ranking);

/// The best of choices in order and by how much, against the 90 % intervals; empty where there is nothing to decide.
[[nodiscard]] std::string verdict_on(const std::vector<const Choice*>& choices, const Ranking& ranking);
/// The verdict as a line of the terminal.
[[nodiscard]] std::string print_verdict(const Ranking& ranking, Style style);

template <class Row>
std::vector<const Choice*> choices_of(const std::vector<Row>& rows) {
    std::vector<const Choice*> choices;
    for (const Row& row : rows) choices.push_back(&row);
    return choices;
}

/// Sorts the rows, takes the verdict on all of them and keeps the first of the ranking's number.
template <class Row>
void rank_rows(std::vector<Row>& rows, Ranking& ranking) {
    std::vector<Row> ranked;
    for (const std::size_t i : order_of(choices_of(rows), ranking)) ranked.push_back(std::move(rows[i]));
    ranking.verdict = verdict_on(choices_of(ranked), ranking);
    if (ranking.top > 0 && ranked.size() > static_cast<std::size_t>(ranking.top))
        ranked.resize(static_cast<std::size_t>(ranking.top));
    rows = std::move(ranked);
}

/// Rows of a table or page that ran; the others as lines "WHAT on DEVICE: reason".
template <class Row>
std::vector<Row> rows_that_run(const std::vector<Row>& rows) {
    std::vector<Row> some;
    for (const Row& row : rows)
        if (row.runs()) some.push_back(row);
    return some;
}
[[nodiscard]] std::vector<std::string> reasons_of(const std::vector<const Choice*>& choices);

}  // namespace ftax::report
