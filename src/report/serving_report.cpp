#include "src/report/serving_report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <string_view>

#include "graphs/files/escape.hpp"
#include "src/report/charts.hpp"
#include "src/report/page.hpp"
#include "src/report/quantities.hpp"

namespace ftax::report {
namespace {

using Row = ServingRow;

/// Adds a figure of each time: "ttft_p50_s", "first token p50".
void add_times(Columns<Row>& columns, std::string_view figure,
               const std::function<double(const Percentiles&, const Row&)>& of) {
    constexpr std::tuple<const char*, const char*, const char*, Percentiles Serving::*> times[] = {
        {"ttft", "first token", "time until the first token", &Serving::ttft_s},
        {"tpot", "per token", "mean time per further token", &Serving::tpot_s},
        {"itl", "between tokens", "time between two tokens", &Serving::itl_s},
        {"latency", "latency", "time of a request", &Serving::latency_s}};
    for (const auto& [key, title, meaning, time] : times) {
        columns.add({fmt::format("{}_{}_s", key, figure), fmt::format("{} {}", title, figure), Unit::milliseconds,
                     meaning, [of, time = time](const Row& row) {
                         const double seconds = of(row.serving.*time, row);
                         return row.runs() && seconds > 0 ? Value(seconds) : Value();
                     }});
    }
}

/// What JSON and CSV have of a row.
constexpr std::string_view row_keys =
    "device framework framework_version precision cards layout skipped keeps_level kept_share goodput_per_s saturated "
    "largest_rate dollars_per_million requests_per_s tokens_per_s power_w energy_per_item_j duration_s utilisation "
    "mean_sequences mean_outstanding peak_cache_share steps evictions bound ttft_mean_s ttft_p50_s ttft_p90_s "
    "ttft_p99_s tpot_mean_s tpot_p50_s tpot_p90_s tpot_p99_s itl_mean_s itl_p50_s itl_p90_s itl_p99_s latency_mean_s "
    "latency_p50_s latency_p90_s latency_p99_s tpot_low_s tpot_high_s latency_low_s latency_high_s";

/// Limits that a service level may have: what of, key in JSON, value.
constexpr std::tuple<std::string_view, const char*, double ServiceLevel::*> limits[] = {
    {"first token", "ttft_s", &ServiceLevel::ttft_s},
    {"per token", "tpot_s", &ServiceLevel::tpot_s},
    {"latency", "latency_s", &ServiceLevel::latency_s}};

std::string keys_of(const ServingReport& report) {
    return std::string(row_keys) + (report.searches > 0 ? " pareto commands" : "");
}

std::string level_text(const ServiceLevel& level) {
    std::string text;
    for (const auto& [what, key, limit] : limits)
        if (std::isfinite(level.*limit))
            text += fmt::format("{}{} within {}", text.empty() ? "" : ", ", what, duration(level.*limit));
    return fmt::format("{} for {} of the requests", text, percent(level.share));
}

constexpr std::string_view order_note =
    "; servers that do not keep up with the requests come last. Costs use the arrival rate if it is sustained";

std::string timeline_figure(const Serving& serving) {
    Chart chart{.title = "batch, queue and cache over time",
                .x_label = "seconds",
                .y_label = serving.peak_cache_share > 0 ? "sequences, or % of the cache" : "requests",
                .series = {{.label = "running, mean", .look = SeriesLook::line},
                           {.label = "waiting, mean", .look = SeriesLook::line, .category = 1, .dash = 1},
                           {.label = "cache, %", .look = SeriesLook::line, .category = 2, .dash = 2}},
                .linear = true};
    for (const ServingMoment& moment : serving.timeline) {
        chart.series[0].points.push_back({moment.time_s, moment.running});
        chart.series[1].points.push_back({moment.time_s, moment.waiting});
        chart.series[2].points.push_back({moment.time_s, 100 * moment.cache_share});
    }
    if (serving.peak_cache_share == 0) chart.series.pop_back();
    return to_figure(chart, "");
}

/// Without a search all that run, else the best and the front of cost against latency.
std::vector<Row> shown_rows(const ServingReport& report) {
    std::vector<Row> rows;
    for (const Row& row : report.rows)
        if (row.runs() && (report.searches == 0 || row.on_front || rows.empty())) rows.push_back(row);
    return rows;
}

std::string search_text(const ServingReport& report) {
    std::string text, first;
    for (const std::string& command : report.rows.front().commands) text += escape_terminal(command) + "\n";
    std::set<std::string> serving, others;
    for (const Row& row : rows_that_run(report.rows)) serving.insert(row.device);
    for (const Row& row : report.rows)
        if (!serving.contains(row.device) && others.insert(row.device).second && first.empty())
            first = row.device + ": " + row.skipped;
    if (!first.empty())
        text += fmt::format("cards that cannot serve: {}, the first {}\n", others.size(), escape_terminal(first));
    return text + fmt::format("{} layouts, above those on the front of cost against latency\n", report.searches);
}

std::string rates_figure(const ServingReport& report) {
    const bool priced = report.rows.front().dollars_per_hour.has_value();
    Chart frame{.title = report.searches > 0 ? "Latency against cost" : "Latency against rate",
                .x_label = report.searches == 0 ? "requests per second"
                           : priced             ? "$ per million tokens"
                                                : "card-seconds per token",
                .y_label = "latency: p50, shaded to p99",
                .series = {},
                .times = true};
    if (const double offered = report.offered_per_s; offered > 0 && report.searches == 0)
        frame.marks.push_back({offered, offered, offered, fmt::format("offered: {} per second", significant(offered))});
    std::vector<double> rates;
    for (const Row& row : report.rows)
        for (const Row::AtRate& point : row.rates) rates.push_back(point.rate);
    if (const double target_s = report.level.latency_s; std::isfinite(target_s) && !rates.empty()) {
        const auto [least, most] = std::ranges::minmax(rates);
        frame.series.push_back({.label = "target: " + duration(target_s),
                                .look = SeriesLook::reference,
                                .points = {{least, 1e3 * target_s}, {most, 1e3 * target_s}}});
    }
    return choice_figures(choices_of(report.rows), frame, [](const Choice& choice) {
        return mapped(static_cast<const Row&>(choice).rates, [](const Row::AtRate& at) {
            return ChartPoint{.x = at.rate, .y = 1e3 * at.p50_s, .low = 1e3 * at.p50_s, .high = 1e3 * at.p99_s};
        });
    });
}

/// Measured figures beside the predicted ones, with their intervals. Clients count tokens over the whole run.
Grid verified(const ServingReport& report) {
    Grid grid{.heads = {{"figure", "", Unit::text}, {"agrees", "agrees", Unit::text}}, .rows = {}};
    for (const char* head : {"measured", "predicted", "low", "high"}) grid.heads.push_back({head, head, Unit::plain});
    const Row& row = report.rows.front();
    for (const auto& [key, measured] : report.measured) {
        const bool is_rate = key == "tokens_per_s";
        const Json value = is_rate ? Json(report.tokens / row.serving.timeline.back().time_s)
                                   : serving_columns(report).json(row, key).value(key, Json());
        if (!value.is_number()) continue;  // a further token, of none
        const auto predicted = value.get<double>();
        const auto [low, high] = is_rate ? std::pair(predicted / row.high, predicted / row.low)
                                         : std::pair(predicted * row.low, predicted * row.high);
        const bool agrees = low <= measured && measured <= high;
        std::vector<Value>& cells = grid.rows.emplace_back();
        cells = {Value(key), Value(agrees, agrees ? "yes" : "no")};
        for (const double cell : {measured, predicted, low, high})
            cells.emplace_back(cell, is_rate ? significant(cell) + "/s" : duration(cell));
    }
    return grid;
}

}  // namespace

Columns<Row> serving_columns(const ServingReport& report) {
    const Columns<Serving> own{
        {"requests_per_s", "requests/s", Unit::significant, &Serving::requests_per_s},
        {"tokens_per_s", "tokens/s", Unit::significant,
         [&](const Serving& s) { return report.generates ? Value(s.tokens_per_s) : Value(); }},
        {"duration_s", "duration", Unit::seconds,
         "period of the rates: the steady state of --concurrency, otherwise the whole run", &Serving::duration_s},
        {"utilisation", "busy", Unit::share, "share of the time in which a step runs", &Serving::utilisation},
        {"mean_sequences", "batch", Unit::significant, "mean number of running sequences", &Serving::mean_sequences},
        {"mean_outstanding", "outstanding", Unit::significant, "mean number of requests in the system",
         &Serving::mean_outstanding},
        {"peak_cache_share", "cache", Unit::share, "largest share of the cache in use",
         [&](const Serving& s) { return report.generates ? Value(s.peak_cache_share) : Value(); }},
        {"steps", "steps", Unit::plain, &Serving::steps},
        {"evictions", "evictions", Unit::plain, "number of sequences that lost their cache", &Serving::evictions},
        {"bound", "bound", Unit::text, bound_meaning, &Serving::bound}};
    Columns<Row> columns = Columns<Row>{
        {"model", "model", Unit::text, [&](const Row&) { return report.model; }},
        {"workload", "workload", Unit::text, [&](const Row&) { return report.workload; }},
        {"layout", "layout", Unit::text, "servers and their parallelism, such as 2 x tp 4 dp 2 ep 8",
         [](const Row& row) { return row.layout.empty() ? Value() : Value(row.layout); }},
        {"pareto", "front", Unit::text, "with --cards: whether nothing cheaper is as fast",
         [](const Row& row) { return Value(row.on_front); }},
        {"commands", "", Unit::text, "with --cards: start the servers, then measure them", &Row::commands},
        {"kept_share", "kept", Unit::share, "share of the requests that meet the SLO",
         [&](const Row& row) { return report.ranking.has_level ? Value(row.kept_share) : Value(); }},
        {"goodput_per_s", "goodput/s", Unit::significant, "their rate",
         [&](const Row& row) {
             return report.ranking.has_level ? Value(row.kept_share * row.serving.requests_per_s) : Value();
         }},
        {"saturated", "saturated", Unit::text, "whether requests arrive faster than they are served: the queue grows",
         [](const Row& row) { return row.runs() ? Value(row.is_saturated) : Value(); }},
        {"largest_rate", "rate that holds", Unit::significant,
         "highest rate that meets the SLO; if saturated, the rate that is served", &Row::largest_rate},
        {"power_w", "power, W", Unit::significant, "mean power of all cards",
         [&](const Row& row) {
             if (!row.runs()) return Value();
             const Serving& s = row.serving;
             return Value(*row.energy_per_item_j * (report.generates ? s.tokens_per_s : s.requests_per_s));
         }},
        {"cache_tokens", "cache tokens", Unit::plain, "capacity of the cache",
         [&](const Row& row) { return report.generates ? Value(row.cache_tokens) : Value(); }},
        {"warnings", "", Unit::text, "messages about this row", &Row::warnings},
        {"all_warnings", "", Unit::text, [&](const Row& row) {
             return joined(report.warnings, row.warnings);
         }}}.including(choice_columns(report.ranking), [](const Row& row) {
                return &row;
            }).including(own, [](const Row& row) {
                  return row.runs() ? &row.serving : nullptr;
              }).including(memory_columns(), [](const Row& row) { return row.runs() ? &row.memory : nullptr; });
    // Of the time that steps take; queues move by more.
    add_times(columns, "low", [](const Percentiles& time, const Row& row) { return time.mean * row.low; });
    add_times(columns, "high", [](const Percentiles& time, const Row& row) { return time.mean * row.high; });
    add_times(columns, "mean", [](const Percentiles& time, const Row&) { return time.mean; });
    add_times(columns, "p50", [](const Percentiles& time, const Row&) { return time.p50; });
    add_times(columns, "p90", [](const Percentiles& time, const Row&) { return time.p90; });
    add_times(columns, "p99", [](const Percentiles& time, const Row&) { return time.p99; });
    return columns;
}

std::string to_table(const ServingReport& report, Style style) {
    const std::vector<const Choice*> choices = choices_of(report.rows);
    const Differences differences(choices);
    const std::string common = differences.common(*choices.front());
    const std::string title =
        fmt::format("{}: {}{}{}", report.model, common, common.empty() ? "" : "; ", report.workload);
    std::string text =
        print_verdict(report.ranking.verdict, style) + escape_terminal(title) + "\n\n" +
        serving_columns(report).print(
            shown_rows(report),
            differences.keys() +
                (report.generates
                     ? "?layout ?keeps_level ?dollars_per_million ?largest_rate tokens_per_s ttft_p50_s ttft_p99_s "
                       "tpot_p50_s tpot_p99_s latency_p50_s latency_p99_s requests_per_s bound mean_sequences "
                       "utilisation peak_cache_share power_w energy_per_item_j"
                     : "?keeps_level ?dollars_per_million ?largest_rate latency_p50_s latency_p90_s latency_p99_s "
                       "requests_per_s bound mean_sequences utilisation power_w energy_per_item_j"),
            style);
    text += fmt::format("\n{}{}\n", order_text(report.ranking), order_note);
    text += "batch: sequences that run, on average; busy: share of the time in which a step runs\n";
    if (report.ranking.has_level) text += fmt::format("SLO: {}\n", level_text(report.level));
    if (report.searches > 0) return text + search_text(report);
    for (const std::string& line : reasons_of(choices)) text += "not served: " + escape_terminal(line) + "\n";
    return report.measured.empty() ? text : text + "\n" + verified(report).print(style);
}

std::string to_json(const ServingReport& report) {
    Json level = nullptr;
    if (report.ranking.has_level) {
        level = {{"share", report.level.share}};
        for (const auto& [what, key, limit] : limits)
            if (std::isfinite(report.level.*limit)) level[key] = report.level.*limit;
    }
    Json fields{
        {"model", report.model},
        {"workload", report.workload},
        {"slo", level},
        {"verdict", report.ranking.verdict},
        {"rows", serving_columns(report).json_rows(report.rows, keys_of(report) + " memory cache_tokens warnings")}};
    if (!report.measured.empty()) fields["verified"] = verified(report).json();
    return document(std::move(fields), report.warnings);
}

std::string to_csv(const ServingReport& report) {
    return serving_columns(report).csv(report.rows, "model workload " + keys_of(report) +
                                                        " memory_bytes=total_bytes cache_tokens warnings=all_warnings");
}

std::string serving_page(const ServingReport& report) {
    const Row& best = report.rows.front();
    std::string commands;
    for (const std::string& command : best.commands)
        commands += fmt::format("<p><code>{}</code></p>\n", escape_markup(command));
    std::vector<std::string> warnings = report.warnings;
    for (const Row& row : report.rows) warnings = joined(std::move(warnings), row.warnings);
    const std::string html =
        verdict_line(report.ranking.verdict) +
        section("Combinations",
                serving_columns(report)
                        .select(report.searches > 0 ? shown_rows(report) : report.rows,
                                Differences(choices_of(report.rows)).keys(true) +
                                    "?layout ?keeps_level ?kept_share ?dollars_per_million ?largest_rate " +
                                    (report.generates ? "tokens_per_s ?ttft_p50_s ?ttft_p99_s ?tpot_p50_s ?tpot_p99_s "
                                                      : "requests_per_s latency_p50_s ") +
                                    "latency_p99_s utilisation energy_per_item_j =bound =total_bytes ?skipped")
                        .page_table("combinations") +
                    fmt::format("<p class=\"facts\">{}{}</p>\n", order_text(report.ranking), order_note)) +
        (commands.empty() ? "" : section("Start the best, then measure it", commands)) + rates_figure(report) +
        section("The best over time", timeline_figure(best.serving)) + warning_list(warnings);
    return page(fmt::format("{}: {}", report.model, report.workload), html);
}

}  // namespace ftax::report
