#include "ftax/headroom.hpp"

#include "src/cli/scenario_options.hpp"
#include "src/core/throw_error.hpp"
#include "src/io/escape.hpp"
#include "src/io/number.hpp"
#include "src/report/pages.hpp"
#include "src/scenario/alternatives.hpp"

namespace ftax::cli {
namespace {

struct HeadroomArguments {
    ModelArguments model;
    RunArguments run;
    std::string batch;
    std::string budget = "5%";
    OutputArguments output;
};

/// Parses "5%" or "0.05".
double parse_budget(const std::string& text) {
    const bool is_percent = text.ends_with('%');
    const auto number = parse_number(std::string_view(text).substr(0, text.size() - (is_percent ? 1 : 0)));
    const double budget = number.value_or(0) / (is_percent ? 100 : 1);
    if (!number || !(budget > 0) || budget > 10)
        throw_error(ErrorCode::usage, "invalid budget '{}': give a share above 0 and up to 1000%, e.g. 5%",
                    escape_terminal(text));
    return budget;
}

int run_headroom(const HeadroomArguments& arguments) {
    const double budget = parse_budget(arguments.budget);
    const Graph graph = load_graph(arguments.model);
    const ShapeBindings dims = dimension_bindings(graph, arguments.model);
    const auto batch = one_batch_for(graph, arguments.batch, dims, "headroom starts from");
    const ShapeBindings bindings = with_batch(dims, batch);

    Predictor predictor = make_predictor(graph, arguments.model, arguments.run);
    report::HeadroomReport report{
        .run = report_on(predictor, arguments.model), .budget = budget, .growths = {}, .switches = {}};
    report.run.rows.push_back(predicted_row(predictor, bindings, batch));
    add_warnings(report.run);
    report.growths =
        find_headroom(graph, predictor.device(), predictor.framework(), predictor.options(), bindings, budget);
    report.switches = other_frameworks(graph, predictor, arguments.model, arguments.run, batch);
    return write_result(arguments.output, forms_of(report, [&] { return headroom_page(report, predictor.graph()); }));
}

}  // namespace

void setup_headroom(CLI::App& verb, Action& action) {
    HeadroomArguments& arguments = run_with(verb, action, run_headroom);
    add_model_options(verb, arguments.model);
    add_run_options(verb, arguments.run);
    add_option(verb, "--batch", "N", arguments.batch, "batch size to start from (default: 1)");
    verb.add_option("--budget", arguments.budget, "acceptable increase of the latency")->capture_default_str();
    add_data_options(verb, arguments.output);
    add_html_option(verb, arguments.output, "with growth and other frameworks");
}

}  // namespace ftax::cli
