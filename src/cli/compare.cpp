#include <set>

#include "ftax/error.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "src/cli/scenario_options.hpp"
#include "src/cli/verbs.hpp"
#include "src/report/comparison_report.hpp"
#include "src/report/pages.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::cli {
using namespace scenario;
namespace {

struct CompareArguments {
    ModelArguments model;
    RunArguments run;  ///< device and framework are lists
    std::string batches;
    OutputArguments output;
};

/// One framework on one device, over all batches. A pair that does not exist (a precision the device lacks, a host the
/// framework was not calibrated on) is a row with the reason.
std::vector<report::ComparisonRow> compare_pair(const Graph& graph, const CompareArguments& arguments,
                                                const RunArguments& pair,
                                                const std::vector<std::optional<std::int64_t>>& batches) {
    LibraryVersions libraries;
    const FrameworkModel& model = framework_model(take_version(pair.framework, libraries).name);
    const bool versioned = pair.framework.find('@') != std::string::npos;
    report::ComparisonRow row{.device = pair.device,
                              .framework = versioned ? pair.framework : std::string(model.name),
                              .unmeasured = std::string(unmeasured_family(model, graph))};
    std::optional<Predictor> predictor;
    try {
        predictor = make_predictor(graph, arguments.model, pair);
    } catch (const Error& error) {
        if (error.code() != ErrorCode::usage) throw;
        row.skipped = error.what();
        return {row};
    }
    row.device_profile = predictor->device().version;
    row.framework_version = predictor->framework().version;
    row.host = predictor->framework().host;
    std::vector<report::ComparisonRow> rows;
    for (const auto batch : batches) {
        report::PredictionRow predicted = predicted_row(*predictor, dimension_bindings(arguments.model), batch);
        row.batch = batch;
        row.memory = predicted.memory;
        row.prediction = std::move(predicted.prediction);
        for (const auto& more : {predictor->framework().warnings, predictor->device().warnings}) {
            row.prediction->warnings.insert(row.prediction->warnings.begin(), more.begin(), more.end());
        }
        rows.push_back(row);
    }
    return rows;
}

int run_compare(const CompareArguments& arguments) {
    const Precision precision = parse_precision(arguments.run.precision);
    // A misspelt name is a mistake, not a pair that cannot run: found before any model is read.
    std::vector<std::string> devices;
    for (const std::string& name : split_list(arguments.run.device)) {
        devices.push_back(name.ends_with(".json") ? name : device_spec(name).slug);
    }
    std::vector<std::string> frameworks;
    for (const std::string& name : split_list(arguments.run.framework)) {
        LibraryVersions ignored;
        (void)framework_model(take_version(name, ignored).name);
        frameworks.push_back(name);
    }
    const Graph graph = load_graph(arguments.model);
    const auto batches = batches_for(graph, arguments.batches);
    report::ComparisonReport report{.model = arguments.model.model,
                                    .precision = precision,
                                    .dims = dimension_bindings(arguments.model),
                                    .rows = {}};
    bool any = false;
    std::set<std::string> told;
    for (const std::string& device : devices) {
        for (const std::string& framework : frameworks) {
            RunArguments pair = arguments.run;
            pair.device = device;
            pair.framework = framework;
            for (report::ComparisonRow& row : compare_pair(graph, arguments, pair, batches)) {
                any = any || row.prediction.has_value();
                if (row.prediction) told.insert(row.prediction->warnings.begin(), row.prediction->warnings.end());
                report.rows.push_back(std::move(row));
            }
        }
    }
    if (!any) throw Error(ErrorCode::usage, report.rows.front().skipped);
    report.warnings = warnings_besides(told);
    rank(report);
    Forms forms = forms_of(report);
    forms.html = [&] { return comparison_page(report); };
    write_result(arguments.output, forms);
    return 0;
}

}  // namespace

void setup_compare(Verb app, Action& action) {
    const Verb verb =
        app.add_subcommand("compare", "frameworks and devices side by side: --device A,B --framework X,Y");
    CompareArguments& arguments = run_with(verb, action, run_compare);
    add_model_options(verb, arguments.model);
    add_run_options(verb, arguments.run);
    add_batch_option(verb, arguments.batches);
    add_html_option(verb, arguments.output, "with chart and table");
    add_data_options(verb, arguments.output);
}

}  // namespace ftax::cli
