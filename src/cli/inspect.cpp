#include "ftax/error.hpp"
#include "src/cli/scenario_options.hpp"
#include "src/cli/verbs.hpp"
#include "src/report/launch_report.hpp"
#include "src/report/model_report.hpp"
#include "src/report/stream_report.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::cli {
using namespace scenario;
namespace {

struct InspectArguments {
    ModelArguments model;
    RunArguments run;
    std::string batch;
    bool kernels = false;
    bool all = false;
    bool stream = false;
    int depth = 1;
    OutputArguments output;
};

/// Inspects the model itself, or its launches on one device and framework.
int run_inspect(const InspectArguments& arguments) {
    const Graph graph = load_graph(arguments.model);
    const bool needs_numbers = arguments.stream || arguments.kernels;
    const bool open_batch = !needs_numbers && arguments.batch.empty() && has_batch(graph);
    const auto batch = open_batch ? std::nullopt : one_batch_for(graph, arguments.batch, "inspect looks at");
    const ShapeBindings bindings = with_batch(dimension_bindings(arguments.model), batch);
    if (!needs_numbers && !report::is_bound(graph, bindings)) {
        write_result(arguments.output, forms_of(report::open_model_report(graph, bindings)));
        return 0;
    }
    if (arguments.stream) {
        const auto stream = report::op_stream(graph, bindings);
        write_result(arguments.output, {.table = [&] { return stream_table(stream, report::standard_output_style()); },
                                        .json = [&] { return stream_json(stream); },
                                        .csv = [&] { return stream_csv(stream); }});
        return 0;
    }
    if (!arguments.kernels) {
        const report::ModelReport report = report::model_report(graph, bindings, arguments.depth);
        const auto guesses = report.warnings.begin() + static_cast<std::ptrdiff_t>(graph.warnings.size());
        print_warnings({guesses, report.warnings.end()});
        write_result(arguments.output, forms_of(report));
        return 0;
    }
    if (arguments.run.device.empty()) throw Error(ErrorCode::usage, "inspect --kernels needs a --device");
    Predictor predictor = make_predictor(graph, arguments.model, arguments.run);
    const Explanation explanation = predictor.explain(bindings);
    report::PredictionReport header = report_on(predictor, arguments.model);
    header.rows.push_back({batch, explanation.prediction, {}});
    print_warnings(explanation.prediction.warnings);
    write_result(arguments.output,
                 {.table =
                      [&] {
                          const report::Style style = report::standard_output_style();
                          return print_header(header, style) +
                                 (arguments.all ? report::launches_table : report::launches_summary)(
                                     predictor.graph(), explanation, style);
                      },
                  .json = [&] { return report::launches_json(predictor.graph(), explanation, warnings_besides({})); },
                  .csv = [&] { return report::launches_csv(predictor.graph(), explanation); }});
    return 0;
}

}  // namespace

void setup_inspect(CLI::App& app, Action& action) {
    CLI::App& verb = add_verb(app, "inspect");
    InspectArguments& arguments = run_with(verb, action, run_inspect);
    add_model_options(verb, arguments.model);
    verb.add_option("--batch", arguments.batch, "batch size")->type_name("N");
    CLI::Option* depth =
        verb.add_option("--depth", arguments.depth, "depth of the module listing")->capture_default_str();
    CLI::Option* kernels = verb.add_flag("--kernels", arguments.kernels,
                                         "host and device time of launches on --device: a summary and the ten longest");
    CLI::Option* all = verb.add_flag("--all", arguments.all, "with --kernels: every launch, in order");
    all->needs(kernels);
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
