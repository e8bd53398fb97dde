#include <fmt/format.h>

#include <utility>

#include "graphs/base/throw_error.hpp"
#include "src/cli/scenario_options.hpp"
#include "src/report/pages.hpp"

namespace ftax::cli {
namespace {

constexpr std::size_t most_predictions = 5'000;  ///< 300 kB of page

struct ExploreArguments : PredictedRun {  // its device is a list
    std::string batches = "1:256:x2";
    std::string over;
};

/// "seq=64:1024:x2" → name and values; both empty if no dimension varies.
std::pair<std::string, std::vector<std::int64_t>> parse_over(const std::string& text) {
    if (text.empty()) return {"", {1}};
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
        throw_error(ErrorCode::usage, "--over '{}' is not of the form NAME=LIST", text);
    return {text.substr(0, equals), parse_batches(std::string_view(text).substr(equals + 1), "--over")};
}

int run_explore(const ExploreArguments& arguments) {
    const auto [dimension, values] = parse_over(arguments.over);
    const std::vector<std::int64_t> batches = parse_batches(arguments.batches);
    const std::vector<std::string> devices = split_list(arguments.run.device);
    if (devices.size() * values.size() * batches.size() > most_predictions)
        throw_error(ErrorCode::limit, "more than {} predictions for one page", most_predictions);
    const Graph graph = load_graph(arguments.model);
    const ShapeBindings given = dimension_bindings(graph, arguments.model);
    require_batch(graph, given);
    report::ExplorerReport report{
        .model = arguments.model.model, .dims = given, .dimension = dimension, .values = values, .batches = batches};
    for (const std::string& device : devices) {
        RunArguments run = arguments.run;
        run.device = device;
        Predictor predictor = make_predictor(graph, arguments.model, run);
        report::ExplorerCard card{predictor.device().device.name, {}};
        for (const std::int64_t value : values) {
            ShapeBindings dims = report.dims;
            if (!dimension.empty()) dims[dimension] = value;
            report::ExplorerCurve& curve = card.curves.emplace_back();
            for (const std::int64_t batch : batches) curve.rows.push_back(predicted_row(predictor, dims, batch));
            curve.crossovers = crossover_report(predictor, dims).crossovers;
        }
        report.cards.push_back(std::move(card));
        report.precision = predictor.precision();
        report.framework = fmt::format("{} {}", predictor.framework().framework, predictor.framework().version);
        report.host = predictor.framework().host;
    }
    report.warnings = warnings_besides({});
    write_output(arguments.output.html, explorer_page(report));
    return 0;
}

}  // namespace

void setup_explore(CLI::App& verb, Action& action) {
    ExploreArguments& arguments = run_with(verb, action, run_explore);
    add_model_options(verb, arguments.model);
    add_run_options(verb, arguments.run);
    add_batch_option(verb, arguments.batches, "");
    verb.get_option("--batch")->capture_default_str();
    add_option(verb, "--over", "NAME=LIST", arguments.over, "dimension to vary: seq=64:1024:x2");
    add_option(verb, "--html", "FILE", arguments.output.html, "the page to write")->required();
}

}  // namespace ftax::cli
