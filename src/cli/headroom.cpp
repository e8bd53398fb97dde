#include "ftax/headroom.hpp"

#include "src/cli/scenario_options.hpp"
#include "src/report/pages.hpp"
#include "src/scenario/alternatives.hpp"

namespace ftax::cli {
namespace {

struct HeadroomArguments : PredictedRun {
    std::string batch;
    double budget = 0.05;
};

int run_headroom(const HeadroomArguments& arguments) {
    const Graph graph = load_graph(arguments.model);
    const ShapeBindings dims = dimension_bindings(graph, arguments.model);
    const auto batch = one_batch_for(graph, arguments.batch, dims, "headroom starts from");
    const ShapeBindings bindings = with_batch(dims, batch);

    Predictor predictor = make_predictor(graph, arguments.model, arguments.run);
    report::HeadroomReport report{
        .run = report_on(predictor, arguments.model), .budget = arguments.budget, .growths = {}, .switches = {}};
    report.run.rows.push_back(predicted_row(predictor, bindings, batch));
    add_warnings(report.run);
    report.growths = find_headroom(graph, predictor, bindings, arguments.budget);
    report.switches = other_frameworks(graph, predictor, arguments.model, arguments.run, batch);
    return write_result(arguments.output, forms_of(report, [&] {
                            for (Headroom& growth : report.growths)
                                if (growth.property == "width" && growth.skipped.empty())
                                    draw_width(graph, predictor, bindings, growth);
                            return headroom_page(report, predictor.graph());
                        }));
}

}  // namespace

void setup_headroom(CLI::App& verb, Action& action) {
    HeadroomArguments& arguments = run_with(verb, action, run_headroom);
    add_model_options(verb, arguments.model);
    add_run_options(verb, arguments.run);
    add_option(verb, "--batch", "N", arguments.batch, "batch size to start from (default: 1)");
    add_option(verb, "--budget", "SHARE", arguments.budget, "acceptable increase of the latency")
        ->default_str("5%")
        ->transform(is_quantity(budget_quantity()));
    add_data_options(verb, arguments.output);
    add_html_option(verb, arguments.output, "with growth and other frameworks");
}

}  // namespace ftax::cli
