#include "ftax/error.hpp"
#include "src/cli/scenario_options.hpp"
#include "src/report/launch_report.hpp"
#include "src/report/model_report.hpp"

namespace ftax::cli {
namespace {

struct InspectArguments : PredictedRun {
    std::string batch;
    bool kernels = false;
    bool all = false;
    bool stream = false;
    int depth = 1;
};

/// Inspects the model itself, or its launches on one device and framework.
int run_inspect(const InspectArguments& arguments) {
    const Graph graph = load_graph(arguments.model);
    const bool needs_numbers = arguments.stream || arguments.kernels;
    const bool open_batch = !needs_numbers && arguments.batch.empty() && has_batch(graph);
    const ShapeBindings dims = dimension_bindings(graph, arguments.model);
    const auto batch = open_batch ? std::nullopt : one_batch_for(graph, arguments.batch, dims, "inspect looks at");
    const ShapeBindings bindings = with_batch(dims, batch);
    if (!needs_numbers && !report::is_bound(graph, bindings))
        return write_result(arguments.output, forms_of(report::open_model_report(graph, bindings)));
    if (arguments.stream) {
        const report::Grid stream = report::stream_columns().select(report::op_stream(graph, bindings));
        return write_result(arguments.output, forms_of(stream, "stream", ""));
    }
    if (!arguments.kernels) {
        const report::ModelReport report = report::model_report(graph, bindings, arguments.depth);
        const auto guesses = report.warnings.begin() + static_cast<std::ptrdiff_t>(graph.warnings.size());
        print_warnings({guesses, report.warnings.end()});
        return write_result(arguments.output, forms_of(report));
    }
    if (arguments.run.device.empty()) throw Error(ErrorCode::usage, "inspect --kernels needs a --device");
    Predictor predictor = make_predictor(graph, arguments.model, arguments.run);
    const Explanation explanation = predictor.explain(bindings);
    report::PredictionReport header = report_on(predictor, arguments.model);
    header.rows.push_back({batch, explanation.prediction, {}});
    print_warnings(explanation.prediction.warnings);
    const auto launches = arguments.all ? report::launches_table : report::launches_summary;
    const std::string verdict = verdict_of(header);
    Forms forms;
    forms.table = [&](report::Style style) {
        return print_verdict(verdict, style) + print_header(header, style) +
               launches(predictor.graph(), explanation, style);
    };
    forms.json = [&] { return report::launches_json(predictor.graph(), explanation, verdict, warnings_besides({})); };
    forms.csv = [&] { return report::launches_csv(predictor.graph(), explanation); };
    return write_result(arguments.output, forms);
}

}  // namespace

void setup_inspect(CLI::App& verb, Action& action) {
    InspectArguments& arguments = run_with(verb, action, run_inspect);
    add_model_options(verb, arguments.model);
    add_option(verb, "--batch", "N", arguments.batch, "batch size");
    CLI::Option* depth =
        verb.add_option("--depth", arguments.depth, "depth of the module listing")->capture_default_str();
    CLI::Option* kernels = verb.add_flag("--kernels", arguments.kernels,
                                         "host and device time of launches on --device: a summary and the ten longest");
    verb.add_flag("--all", arguments.all, "with --kernels: every launch, in order")->needs(kernels);
    CLI::Option* stream =
        verb.add_flag("--stream", arguments.stream, "every operator in order, as eager PyTorch dispatches it");
    add_data_options(verb, arguments.output);
    CLI::App& group = *verb.add_option_group("With --kernels");
    add_run_options(group, arguments.run);
    group.get_option("--device")->required(false);
    // Options without effect on the requested form are errors.
    for (CLI::Option* option : group.get_options()) option->needs(kernels);
    for (CLI::Option* form : {kernels, stream}) depth->excludes(form);
    stream->excludes(kernels);
}

}  // namespace ftax::cli
