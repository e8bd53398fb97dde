#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "calibration/rows/measurement_file.hpp"
#include "ftax/anchor.hpp"
#include "ftax/version.hpp"
#include "graphs/base/throw_error.hpp"
#include "src/cli/scenario_options.hpp"
#include "src/report/charts.hpp"
#include "src/report/launch_report.hpp"
#include "src/report/pages.hpp"
#include "src/report/prediction_report.hpp"
#include "src/scenario/alternatives.hpp"

namespace ftax::cli {
namespace {

struct PredictArguments : PredictedRun {
    std::string batches;
    std::string measured;
    bool suggest_anchors = false, explain_interval = false, advises = false;
};

constexpr std::size_t most_branches = 16;  ///< each needs a separate import

/// Predicts a model with data-dependent If nodes for both branches of each.
class BranchRange {
  public:
    /// `graph` is the model as loaded, with the longer branch of every If.
    BranchRange(const Graph& graph, const PredictArguments& arguments)
        : undecided_(graph.undecided), arguments_(arguments) {
        if (undecided_.size() <= most_branches) return;
        print_warnings({fmt::format("{} conditions depend on data; the range covers the branches of the first {}",
                                    undecided_.size(), most_branches)});
        undecided_.resize(most_branches);
    }

    /// Determines the cheaper and the more expensive branch of each If, with the others as loaded, and predicts the
    /// model with all cheaper and with all more expensive branches. Widens the interval of `loaded` to cover both.
    /// Returns nullopt if no condition depends on data.
    std::optional<report::LatencyRange> widen(Prediction& loaded, const ShapeBindings& bindings) {
        if (undecided_.empty()) return std::nullopt;
        Choice shortest(undecided_.size()), longest(undecided_.size());
        for (std::size_t i = 0; i < undecided_.size(); ++i) {
            Choice flipped(undecided_.size());
            flipped[i] = true;
            const double latency_s = predict(flipped, bindings).latency_s;
            shortest[i] = latency_s < loaded.latency_s;
            longest[i] = latency_s > loaded.latency_s;
        }
        const Prediction low = predict(shortest, bindings), high = predict(longest, bindings);
        loaded.low_s = std::min(low.low_s, loaded.low_s);
        loaded.high_s = std::max(high.high_s, loaded.high_s);
        return report::LatencyRange{low.latency_s, high.latency_s};
    }

  private:
    /// Per undecided If: true if the branch differs from the loaded one.
    using Choice = std::vector<bool>;
    struct Variant {
        Graph graph;
        std::optional<Predictor> predictor{};  ///< predictor of this graph
    };

    Prediction predict(const Choice& choice, const ShapeBindings& bindings) {
        auto& [graph, predictor] = variants_[choice];
        if (!predictor) {
            ModelArguments model = arguments_.model;
            for (std::size_t i = 0; i < choice.size(); ++i) {
                const bool then = undecided_[i].then_taken != choice[i];
                model.limits.branches[undecided_[i].name] = then;  // an If within a branch that is not taken is not met
            }
            graph = load_graph(model);
            predictor.emplace(make_predictor(graph, model, arguments_.run));
        }
        return predictor->predict(bindings);
    }

    std::vector<UndecidedBranch> undecided_;
    const PredictArguments& arguments_;
    std::map<Choice, Variant> variants_;
};

/// Suggests runs to measure, among the predicted batches and powers of two around them.
AnchorPlan plan_anchors(Predictor& predictor, const ShapeBindings& dims,
                        const std::vector<std::optional<std::int64_t>>& predicted) {
    std::vector<std::int64_t> batches;
    for (const auto& batch : predicted) {
        if (!batch) throw Error(ErrorCode::usage, "--suggest-anchors needs a model whose batch can vary");
        batches.push_back(*batch);
    }
    const std::int64_t largest = std::max<std::int64_t>(64, 2 * *std::max_element(batches.begin(), batches.end()));
    std::set<std::int64_t> candidates(batches.begin(), batches.end());
    for (std::int64_t batch = 1; batch <= largest; batch *= 2) candidates.insert(batch);
    return ftax::suggest_anchors(predictor, dims, batches, std::vector(candidates.begin(), candidates.end()));
}

/// Reads measured times. Returns none for the name of a file, or without a text.
std::vector<double> read_times(const std::string& text) {
    const bool begins_as_number = text.find_first_of("-.0123456789ni") == 0;  // "ni" for nan and inf
    if (!begins_as_number || text.ends_with(".csv") || text.find('/') != std::string::npos) return {};
    std::vector<double> times;
    for (const std::string& word : split_list(text)) {
        const std::string problem = read_quantity(word, time_quantity(), times.emplace_back());
        if (!problem.empty()) throw_error(ErrorCode::usage, "--measured: {}, nor a file of rows (.csv)", problem);
    }
    return times;
}

/// Adds measured rows of the same model, device, framework, version, precision and shape to the predictions. Rows
/// without a version are assumed to have the predicted one.
void add_measured(report::PredictionReport& report, const RunArguments& run, const std::string& path) {
    LibraryVersions libraries;
    const auto version = chosen_framework(run, libraries).version;
    std::size_t other_versions = 0;
    const auto file = read_model_measurements(read_csv(path));
    const auto device_column = file.table.column("kernel_ms");
    const auto seq = report.dims.find("seq");
    for (std::size_t i = 0; i < file.rows.size(); ++i) {
        const Measurement& row = file.rows[i];
        if (!file.problems[i].empty() || row.model != report.model ||
            framework_name(row.framework) != report.framework.framework || row.precision != report.precision ||
            device_spec(row.gpu).slug != report.device.device.slug ||
            (seq != report.dims.end() && row.seq.value_or(row.input.value_or(seq->second)) != seq->second)) {
            continue;
        }
        if (const auto named = version_number(row.version); version && named && *named != *version) {
            ++other_versions;
            continue;
        }
        const auto device_ms = device_column ? parse_number(file.table.row(i)[*device_column]) : std::nullopt;
        for (report::PredictionRow& predicted : report.rows) {
            if (predicted.batch != row.batch) continue;
            predicted.measured = {.latency_s = row.latency_s, .device_s = {}};
            if (device_ms) predicted.measured->device_s = *device_ms * 1e-3;
        }
    }
    if (std::ranges::none_of(report.rows, [](const auto& predicted) { return predicted.measured.has_value(); }))
        print_warnings({fmt::format("{} has no usable row of this run", path)});
    if (other_versions > 0)
        print_warnings({fmt::format("{}: {} rows of other versions of {} are not compared", path, other_versions,
                                    report.framework.framework)});
}

int run_predict(const PredictArguments& arguments) {
    const std::vector<double> times = read_times(arguments.measured);
    const Graph graph = load_graph(arguments.model);
    const ShapeBindings dims = dimension_bindings(graph, arguments.model);
    const auto batches = batches_for(graph, arguments.batches, dims);
    if (!times.empty() && times.size() != batches.size())
        throw Error(ErrorCode::usage, "--measured TIME needs a single --batch, or one TIME for each");
    Predictor predictor = make_predictor(graph, arguments.model, arguments.run);

    BranchRange branches(graph, arguments);
    report::PredictionReport report = report_on(predictor, arguments.model);
    if (batches.front()) report.crossover = crossover_report(predictor, dims);
    for (const auto batch : batches) {
        report.rows.push_back(predicted_row(predictor, dims, batch));
        report.rows.back().branches = branches.widen(report.rows.back().prediction, with_batch(dims, batch));
    }
    if (arguments.suggest_anchors) report.anchors = plan_anchors(predictor, dims, batches);
    const auto explain_last = [&] { return predictor.explain(with_batch(dims, batches.back())); };
    if (arguments.explain_interval) report.explained = explain_last();
    if (!arguments.measured.empty()) {
        if (times.empty()) add_measured(report, arguments.run, arguments.measured);
        for (std::size_t i = 0; i < times.size(); ++i) report.rows[i].measured = {times[i], {}};
        diagnose(graph, arguments.model, arguments.run, report);
    }
    if (arguments.advises) report.advice = advise(graph, arguments.model, arguments.run, batches.front());
    add_warnings(report);
    Forms forms = forms_of(report);
    forms.trace = [&] { return timeline_trace(report, predictor.graph(), explain_last()); };
    forms.html = [&] { return prediction_page(report, predictor.graph(), explain_last()); };
    forms.svg = [&] { return to_svg(latency_chart(report)); };
    return write_result(arguments.output, forms);
}

}  // namespace

void setup_predict(CLI::App& verb, Action& action) {
    PredictArguments& arguments = run_with(verb, action, run_predict);
    add_model_options(verb, arguments.model);
    add_run_options(verb, arguments.run);
    add_batch_option(verb, arguments.batches);
    add_option(verb, "--measured", "TIME,...|ROWS.csv", arguments.measured,
               "measured latency to explain, such as 12ms, one for each batch, or measured rows (CSV)");
    add_advice_option(verb, arguments.advises);
    verb.add_flag("--suggest-anchors", arguments.suggest_anchors,
                  "list the runs whose measurement would narrow the intervals most");
    verb.add_flag("--explain-interval", arguments.explain_interval,
                  "list the parts of the last batch's interval, and the measured rows nearest to it");
    add_option(verb, "--trace", "FILE", arguments.output.trace,
               "write the timeline of the last batch for ui.perfetto.dev");
    add_option(verb, "--svg", "FILE", arguments.output.svg, "write the chart of latency against batch");
    add_html_option(verb, arguments.output, "with chart, predictions and launches");
    add_data_options(verb, arguments.output);
}

}  // namespace ftax::cli
