#include "ftax/headroom.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ftax/generate.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "src/cli/scenario_options.hpp"
#include "src/cli/verbs.hpp"
#include "src/core/throw_error.hpp"
#include "src/io/escape.hpp"
#include "src/io/number.hpp"
#include "src/report/pages.hpp"
#include "src/scenario/comparison.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::cli {
using namespace scenario;
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
    if (!number || !(budget > 0) || budget > 10) {
        throw_error(ErrorCode::usage, "invalid budget '{}': give a share above 0 and up to 1000%, e.g. 5%",
                    escape_terminal(text));
    }
    return budget;
}

/// Predicts the run under every other framework that supports it, fastest first, as `ftax compare` does.
std::vector<report::FrameworkSwitch> switches(const Graph& graph, const Predictor& predictor,
                                              const HeadroomArguments& arguments) {
    std::vector<std::string> others = framework_names();
    std::erase_if(others, [&](const std::string& name) {
        return name == predictor.framework().framework ||
               (framework_model(name).traits.serves_sequences && !is_decoder(graph));
    });
    ComparisonArguments compared{
        .model = arguments.model, .run = arguments.run, .choice = {}, .batches = arguments.batch};
    compared.model.strict = false;  // of the run itself, not of what it could be
    compared.run.framework = fmt::format("{}", fmt::join(others, ","));
    compared.run.precision = name_of(predictor.precision());
    compared.run.host.clear();
    compared.run.framework_profile.clear();
    HeldWarnings of_others;
    const GivenGraph same(GivenGraph::of_this_thread(), &of_others);
    std::vector<report::FrameworkSwitch> result;
    for (const report::ComparisonRow& row : compare(graph, compared).rows) {
        if (row.runs())
            result.push_back({row.framework, row.version, *row.latency_s, row.prediction->bound,
                              !host_names(row.framework).empty(), row.prediction->evidence});
    }
    return result;
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
    report.switches = switches(graph, predictor, arguments);
    Forms forms = forms_of(report);
    forms.html = [&] { return headroom_page(report, predictor.graph()); };
    write_result(arguments.output, forms);
    return 0;
}

}  // namespace

void setup_headroom(CLI::App& app, Action& action) {
    CLI::App& verb =
        *app.add_subcommand("headroom", "how much width, depth, length or batch can grow at the same latency");
    HeadroomArguments& arguments = run_with(verb, action, run_headroom);
    add_model_options(verb, arguments.model);
    add_run_options(verb, arguments.run);
    verb.add_option("--batch", arguments.batch, "batch size to start from (default: 1)")->type_name("N");
    verb.add_option("--budget", arguments.budget, "acceptable increase of the latency")->capture_default_str();
    add_data_options(verb, arguments.output);
    add_html_option(verb, arguments.output, "with growth and other frameworks");
}

}  // namespace ftax::cli
