#include "src/scenario/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/in_parallel.hpp"
#include "graphs/base/throw_error.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "src/report/quantities.hpp"
#include "src/scenario/generation.hpp"

namespace ftax::scenario {
namespace {

/// Makes the row that of as many equal servers as the rate takes. Its latency is that of the first item of a batch: it
/// waits for the others and, on average, for the batches ahead. Source: M/D/1, constant service times.
void serve_rate(double rate, double items, report::ComparisonRow& row) {
    constexpr double most = 1e6, largest_load = 0.98;
    const double servers = std::ceil(rate / (largest_load * *row.items_per_s));
    if (servers > most) throw_error(ErrorCode::usage, "--rate {} takes more than {} servers", rate, most);
    const double load = rate / (servers * *row.items_per_s);
    *row.latency_s += (items - 1) * servers / rate + load / (2 * (1 - load)) * *row.latency_s;
    row.cards *= static_cast<int>(servers);
    if (row.dollars_per_hour) *row.dollars_per_hour *= servers;
    row.items_per_s = rate;
    row.is_paced = true;
}

std::vector<report::ComparisonRow> compare_one(const Graph& graph, const ComparisonArguments& arguments,
                                               Combination one, const std::vector<std::optional<std::int64_t>>& batches,
                                               const ServiceLevel& level) {
    const FrameworkModel& model = framework_model(unversioned(one.run.framework));
    report::ComparisonRow row{one.choice()};
    if (split_at(one.run.framework, '@').second.empty()) row.framework = model.name;
    std::optional<Predictor> predictor;
    try {
        row.precision = one.run.precision = name_of(precision_of(graph, one.run));
        predictor = make_predictor(graph, arguments.model, one.run);
        if (one.cards > 1) require_shards(predictor->framework(), predictor->device().device, one.cards);
    } catch (const Error& error) {
        if (error.code() != ErrorCode::usage) throw;
        row.skipped = error.what();
        return {row};
    }
    row.device_profile = predictor->device().version;
    row.version = predictor->framework().version;
    row.host = predictor->framework().host;
    std::vector<report::ComparisonRow> rows;
    for (const auto batch : batches) {
        report::PredictionRow predicted =
            predicted_row(*predictor, dimension_bindings(graph, arguments.model), batch, one.run.held);
        Prediction& p = row.prediction.emplace(std::move(predicted.prediction));
        p.power_w *= static_cast<double>(one.cards);
        row.batch = batch;
        row.memory = predicted.memory;
        row.fits = row.memory->fits();
        row.memory_bytes = row.memory->total_bytes();
        row.latency_s = p.latency_s;
        row.low = p.low_s / p.latency_s;
        row.rests_on = p.evidence;
        row.high = p.high_s / p.latency_s;
        const auto items = static_cast<double>(batch ? *batch : fixed_batch(graph).value_or(1));
        row.items_per_s = items / p.latency_s;
        row.energy_per_item_j = p.power_w * p.latency_s / items;
        if (arguments.rate > 0) serve_rate(arguments.rate, items, row);
        hold_to(level, row);
        p.warnings =
            report::joined(report::joined(predictor->device().warnings, predictor->framework().warnings), p.warnings);
        rows.push_back(row);
    }
    return rows;
}

}  // namespace

report::ComparisonReport compare(const Graph& graph, const ComparisonArguments& arguments) {
    const ShapeBindings dims = dimension_bindings(graph, arguments.model);
    const auto batches = batches_for(graph, arguments.batches, dims);
    const ServiceLevel level = parse_level(arguments.choice.level);
    // Without a criterion, rows of different batches are not ranked against each other; a latency limit ranks them.
    const auto without = arguments.choice.level.empty() ? std::nullopt : std::optional(report::Criterion::throughput);
    report::ComparisonReport report{.model = arguments.model.model,
                                    .dims = dims,
                                    .rows = {},
                                    .ranking = ranking_of(arguments.choice, without, "items")};
    if (arguments.rate > 0 && !report.ranking.by) report.ranking.by = report::Criterion::latency;
    report.ranking.fewest_cards = arguments.rate > 0 && report.ranking.by != report::Criterion::cost;
    const std::vector<Combination> all = combinations(arguments.run, arguments.choice);
    std::vector<std::vector<report::ComparisonRow>> rows(all.size());
    std::vector<HeldWarnings> warnings(all.size());
    Shards shards;
    in_parallel(all.size(), 0, [&](std::size_t i) {
        Combination one = all[i];
        one.run.held = &warnings[i];
        const auto shard = one.cards > 1 ? shards.load(arguments.model, one.cards) : nullptr;
        rows[i] = compare_one(shard ? *shard : graph, arguments, std::move(one), batches, level);
    });
    std::vector<std::string> precisions;
    bool any = false;
    std::set<std::string> reported;
    for (std::size_t i = 0; i < all.size(); ++i) {
        release(warnings[i]);
        for (report::ComparisonRow& row : rows[i]) {
            if (std::ranges::count(precisions, row.precision) == 0) precisions.push_back(row.precision);
            any = any || row.runs();
            if (row.prediction) reported.insert(row.prediction->warnings.begin(), row.prediction->warnings.end());
            report.rows.push_back(std::move(row));
        }
    }
    if (!any) throw Error(ErrorCode::usage, report.rows.front().skipped);
    report.precision = fmt::format("{}", fmt::join(precisions, ","));
    report.warnings = warnings_besides(reported);
    rank(report);
    return report;
}

}  // namespace ftax::scenario
