#include "src/scenario/validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <span>
#include <utility>

#include "ftax/framework.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/escape.hpp"
#include "graphs/files/file.hpp"
#include "predictors/operator_model.hpp"
#include "predictors/profiles/profile_file.hpp"
#include "src/scenario/alternatives.hpp"
#include "src/scenario/language_rows.hpp"
#include "src/scenario/row_predictor.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::scenario {
namespace {

/// Predicts each row with `predict`; errors become the reason why a row is skipped. Rows that differ in the measured
/// time alone are predicted once; not if some are `anchored`, since a row is left out of its own anchors.
template <class Row, class Predict>
std::vector<report::ValidatedRow> predict_rows(const MeasurementFile<Row>& file, bool anchored, const Watch& watch,
                                               Predict predict) {
    std::vector<report::ValidatedRow> rows;
    rows.reserve(file.rows.size());
    std::vector<std::optional<std::size_t>> known(file.rows.size());  // by the first row that is alike
    for (std::size_t i = 0; i < file.rows.size(); ++i) {
        report::ValidatedRow row{.measured_s = file.rows[i].latency_s, .skipped = file.problems[i]};
        std::optional<std::size_t>& predicted = known[anchored ? i : file.alike[i]];
        if (row.skipped.empty() && predicted) {
            row.prediction = rows[*predicted].prediction;
            row.skipped = rows[*predicted].skipped;
        } else if (row.skipped.empty()) {
            predicted = i;
            try {
                row.prediction = predict(file.rows[i]);
                if (!row.prediction) row.skipped = "no model for this operator";
            } catch (const Error& error) {
                row.skipped = error.what();
            }
        }
        rows.push_back(std::move(row));
        if (watch) watch(rows.size(), file.rows.size());
    }
    return rows;
}

template <class Row>
void warn_of_scored_anchors(std::span<const Row> rows, std::span<const Row> anchors, const Warn& warn) {
    const auto scored = std::ranges::count_if(rows, [&](const Row& row) {
        return std::ranges::any_of(anchors, [&](const Row& anchor) { return is_same_run(anchor, row); });
    });
    if (scored == 0) return;
    warn({fmt::format("{} of the {} rows are anchors themselves: their errors are smaller than those of other rows",
                      scored, rows.size())});
}

template <class Row>
void warn_of_versions(std::span<const Row> rows, const RunArguments& run, const Warn& warn) {
    std::map<std::string, std::size_t> unversioned;
    for (const Row& row : rows)
        if (row.version.empty()) ++unversioned[framework_name(row.framework)];
    for (const std::string& name : framework_names()) {
        LibraryVersions libraries;
        const auto rows_of = unversioned.find(name);
        const auto version = rows_of == unversioned.end()
                                 ? std::nullopt
                                 : chosen_framework(run_of_row(run, {}, name, {}), libraries).version;
        if (!version) continue;
        warn({fmt::format("{} row{} of {} without a version: predicted as {}.{}, the newest measured (column version)",
                          rows_of->second, rows_of->second == 1 ? "" : "s", name, *version / 100, *version % 100)});
    }
}

/// Detects a wrong unit: nearly all rows are off by the same power of a thousand.
void warn_of_units(std::span<const report::ValidatedRow> rows, const Warn& warn) {
    constexpr double share = 0.8, within = 0.35;  // share of rows; decades to either side: a factor of 2.2
    for (const double power : {-6.0, -3.0, 3.0, 6.0}) {
        std::size_t predicted = 0, off = 0;
        for (const report::ValidatedRow& row : rows) {
            if (!row.prediction) continue;
            ++predicted;
            if (std::abs(std::log10(row.measured_s / row.prediction->latency_s) - power) < within) ++off;
        }
        if (predicted == 0 || static_cast<double>(off) < share * static_cast<double>(predicted)) continue;
        warn({fmt::format(
            "{} of {} measured latencies are about {} times the predicted ones: check the unit of latency_ms", off,
            predicted,
            power < 0 ? fmt::format("1/{:.0f}", std::pow(10, -power)) : fmt::format("{:.0f}", std::pow(10, power)))});
    }
}

/// Warns of files with host costs that no row uses.
void warn_of_unused_hosts(const ValidationArguments& arguments, bool operators,
                          const std::set<report::UsedProfile>& profiles, const Warn& warn) {
    const std::optional<FrameworkProfile>& host = arguments.run.costs;
    if (!operators && !arguments.host_profile.empty())
        warn({"--host-profile is ignored: it applies to rows of operators (rows of models: --framework-profile)"});
    if (host && operators)
        warn({"--framework-profile is ignored: it applies to rows of models (rows of operators: --host-profile)"});
    else if (host && !std::ranges::count(profiles, host->framework, &report::UsedProfile::name))
        warn({fmt::format("--framework-profile is ignored: no predicted row is of {}", host->framework)});
}

std::vector<report::ValidatedRow> validate_models(RowPredictor& predictor, const MeasurementFile<Measurement>& file,
                                                  const ValidationArguments& arguments, const Warn& warn,
                                                  const Watch& watch, std::set<report::UsedProfile>& profiles) {
    warn_of_versions<Measurement>(file.rows, arguments.run, warn);
    if (!arguments.run.anchor.empty()) {
        const auto anchors = usable_rows(read_model_measurements(read_anchors(arguments.run.anchor)), warn);
        warn(predictor.anchor(anchors));
        if (anchors.size() > RowPredictor::most_left_out) warn_of_scored_anchors<Measurement>(file.rows, anchors, warn);
    }
    auto rows = predict_rows(file, !arguments.run.anchor.empty(), watch, [&](const Measurement& row) {
        const Prediction p = predictor.predict(row);
        return std::optional(
            report::RowPrediction{p.latency_s, p.low_s, p.high_s, p.bound, p.coverage.time, p.evidence});
    });
    profiles = predictor.profiles();
    return rows;
}

std::vector<report::ValidatedRow> validate_language_models(const MeasurementFile<LanguageMeasurement>& file,
                                                           const ValidationArguments& arguments, const Warn& warn,
                                                           const Watch& watch,
                                                           std::set<report::UsedProfile>& profiles) {
    LanguagePredictor predictor(arguments.run);
    warn_of_versions<LanguageMeasurement>(file.rows, arguments.run, warn);
    if (!arguments.run.anchor.empty())
        predictor.anchor(usable_rows(read_language_measurements(read_anchors(arguments.run.anchor)), warn));
    auto rows = predict_rows(file, !arguments.run.anchor.empty(), watch, [&](const LanguageMeasurement& row) {
        const Generation g = predictor.predict(row);
        return std::optional(
            report::RowPrediction{g.total_s, g.low_s, g.high_s, g.decode.bound, g.decode.coverage.time});
    });
    profiles = predictor.profiles();
    return rows;
}

std::vector<report::ValidatedRow> validate_operators(const MeasurementFile<OperatorMeasurement>& file,
                                                     const ValidationArguments& arguments, const Warn& warn,
                                                     const Watch& watch, std::set<report::UsedProfile>& profiles) {
    std::map<std::string, std::vector<OperatorMeasurement>> anchors;
    if (!arguments.run.anchor.empty()) {
        auto rows = usable_rows(read_operator_measurements(read_anchors(arguments.run.anchor)), warn);
        warn_of_scored_anchors<OperatorMeasurement>(file.rows, rows, warn);
        for (OperatorMeasurement& row : rows) anchors[device_spec(row.gpu).slug].push_back(std::move(row));
    }
    std::map<std::string, OperatorModel> models;  // by spelling of the GPU in the file
    return predict_rows(file, !arguments.run.anchor.empty(), watch,
                        [&](const OperatorMeasurement& row) -> std::optional<report::RowPrediction> {
                            auto model = models.find(row.gpu);
                            if (model == models.end()) {
                                const DeviceProfile profile = device_profile(row.gpu, arguments.run.device_profile);
                                const FrameworkProfile host =
                                    call_host_profile(profile.device.slug, arguments.host_profile);
                                model = models.emplace(row.gpu, OperatorModel(profile, host)).first;
                                model->second.anchor(anchors[profile.device.slug]);
                                add_used(profiles, profile, host);
                            }
                            const auto p = model->second.predict(row);
                            if (!p) return std::nullopt;
                            return report::RowPrediction{p->latency_s, p->low_s, p->high_s, p->bound, 1};
                        });
}

void group_rows(const CsvTable& table, const std::vector<std::string>& by, std::vector<report::ValidatedRow>& rows) {
    for (report::ValidatedRow& row : rows) row.group.reserve(by.size());
    for (const std::string& name : by) {
        auto values = report::column_values(table, name);
        if (name == "evidence" && !values) {
            values.emplace();
            for (const report::ValidatedRow& row : rows)
                values->emplace_back(row.prediction ? name_of(row.prediction->evidence) : "");
        }
        if (!values) throw_error(ErrorCode::usage, "--by {}: {} has no such column", name, table.origin());
        for (std::size_t i = 0; i < rows.size(); ++i) rows[i].group.push_back(std::move((*values)[i]));
    }
}

/// Finds the likeliest cause of the errors of rows of one framework, from a few rows of a few models drawn from them.
std::optional<report::Hypothesis> likeliest_cause(RowPredictor& predictor, std::vector<const Measurement*> rows) {
    constexpr std::size_t most_models = 3, most_rows = 4;
    const std::string framework = framework_name(rows.front()->framework);
    if (std::ranges::any_of(rows, [&](const auto* row) { return framework_name(row->framework) != framework; }))
        return std::nullopt;
    std::shuffle(rows.begin(), rows.end(), std::mt19937());
    std::map<std::string, std::size_t> taken;
    std::vector<Measurement> sample;
    std::vector<MeasuredRun> runs;
    for (const Measurement* row : rows) {
        if ((taken.size() == most_models && !taken.contains(row->model)) || taken[row->model]++ >= most_rows) continue;
        const std::string card = row->gpu + row->run;
        runs.push_back(
            {row->latency_s, static_cast<double>(row->batch), predictor.predict(*row), card, card + " " + row->model});
        sample.push_back(*row);
    }
    return rank_causes(runs, framework, [&](const Change& c) { return predictor.predict_changed(sample, c); }).front();
}

/// Explains the groups that are off by more than what their intervals allow for, or on the whole.
void diagnose_groups(RowPredictor& predictor, std::span<const Measurement> measured, Validation& validation) {
    std::map<std::vector<std::string>, std::vector<const Measurement*>> rows;
    for (std::size_t i = 0; i < measured.size(); ++i)
        if (validation.rows[i].prediction) rows[validation.rows[i].group].push_back(&measured[i]);
    for (auto& [values, errors, cause] : validation.report.groups)
        if (errors.inside < 0.9 || std::abs(errors.bias) > 0.1) cause = likeliest_cause(predictor, rows.at(values));
}

}  // namespace

Validation validate(const ValidationArguments& given, const Warn& tell, const Watch& watch) {
    ValidationArguments arguments = given;
    std::vector<std::string> warnings;
    const Warn warn = [&](const std::vector<std::string>& more) {
        warnings.insert(warnings.end(), more.begin(), more.end());
        tell(more);
    };
    Validation result{read_csv(arguments.rows), {}, {}};
    std::set<report::UsedProfile> profiles;
    if (const std::string path = std::exchange(arguments.run.framework_profile, {}); !path.empty())
        arguments.run.costs = parse_framework_profile(read_file(path), escape_terminal(path));
    RowPredictor predictor(arguments.run);
    std::vector<Measurement> measured;  // of models
    const bool operators = holds_operators(result.table);
    const auto predict = [&](auto file, const auto& rows_of) {
        result.rows = rows_of(file, arguments, warn, watch, profiles);
        result.table = std::move(file.table);
    };
    if (operators) {
        predict(read_operator_measurements(std::move(result.table)), validate_operators);
    } else if (holds_language_models(result.table)) {
        predict(read_language_measurements(std::move(result.table)), validate_language_models);
    } else {
        predict(read_model_measurements(std::move(result.table)), [&](auto& file, auto&... rest) {
            auto rows = validate_models(predictor, file, rest...);
            measured = std::move(file.rows);
            return rows;
        });
    }
    warn_of_unused_hosts(arguments, operators, profiles, warn);
    warn_of_units(result.rows, warn);
    const std::string by = !arguments.by.empty() ? arguments.by
                           : operators           ? "gpu,op,precision"
                                                 : "gpu,framework,precision";
    group_rows(result.table, split_list(by), result.rows);
    result.report = summarise(result.table, split_list(by), result.rows);
    if (!measured.empty()) diagnose_groups(predictor, measured, result);
    if (arguments.suggest_anchors) result.report.anchors = predictor.suggest(measured);
    result.report.profiles.assign(profiles.begin(), profiles.end());
    result.report.warnings = std::move(warnings);
    return result;
}

}  // namespace ftax::scenario
