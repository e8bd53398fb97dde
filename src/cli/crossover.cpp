#include <algorithm>
#include <cstdint>
#include <set>

#include "src/cli/scenario_options.hpp"
#include "src/report/pages.hpp"
#include "src/scenario/alternatives.hpp"

namespace ftax::cli {
namespace {

struct CrossoverArguments : PredictedRun {
    bool advises = false;
};

/// Predictions for the chart: the powers of two from 1 to well beyond the crossover.
report::PredictionReport curve_around(report::PredictionReport report, Predictor& predictor,
                                      const ShapeBindings& dims) {
    constexpr double without_crossover = 256;
    const auto& crossovers = report.crossover->crossovers;
    const double last = crossovers.empty() ? without_crossover : std::max(16.0, 4 * crossovers.back().batch);
    report.rows.clear();
    for (std::int64_t batch = 1; static_cast<double>(batch) <= last; batch *= 2)
        report.rows.push_back({batch, predictor.predict(with_batch(dims, batch)), {}, {}});
    return report;
}

int run_crossover(const CrossoverArguments& arguments) {
    const Graph graph = load_graph(arguments.model);
    const ShapeBindings dims = dimension_bindings(graph, arguments.model);
    // A crossover needs a variable batch; the message explains how to get one.
    require_batch(graph, dims);
    Predictor predictor = make_predictor(graph, arguments.model, arguments.run);

    report::PredictionReport report = report_on(predictor, arguments.model);
    report.crossover = crossover_report(predictor, dims);
    std::set<std::int64_t> sides;
    for (const Crossover& crossover : report.crossover->crossovers)
        sides.insert({static_cast<std::int64_t>(crossover.batch), static_cast<std::int64_t>(crossover.batch) + 1});
    if (sides.empty()) sides = {1, 2};
    for (const std::int64_t side : sides) report.rows.push_back(predicted_row(predictor, dims, side));
    if (arguments.advises) report.advice = advise(graph, arguments.model, arguments.run, *sides.begin());
    add_warnings(report);
    return write_result(arguments.output, forms_of(report, [&] {
                            return crossover_page(report, curve_around(report, predictor, dims), predictor.graph());
                        }));
}

}  // namespace

void setup_crossover(CLI::App& verb, Action& action) {
    CrossoverArguments& arguments = run_with(verb, action, run_crossover);
    add_model_options(verb, arguments.model);
    add_run_options(verb, arguments.run);
    add_advice_option(verb, arguments.advises);
    add_html_option(verb, arguments.output, "with the curve of both sides");
    add_data_options(verb, arguments.output);
}

}  // namespace ftax::cli
