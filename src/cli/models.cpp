#include <algorithm>

#include "ftax/import.hpp"
#include "graphs/base/mapped.hpp"
#include "src/cli/verbs.hpp"
#include "src/report/model_report.hpp"

namespace ftax::cli {
namespace {

struct SizedModel : ZooModel {
    report::ModelReport report;
};

/// Bindings for one item with the first 128 tokens of a text, without other symbolic sizes.
SizedModel sized(const ZooModel& model) {
    const Graph graph = load_graph("zoo:" + model.name);
    ShapeBindings sizes{{"batch", 1}, {"seq", 128}, {"past", 0}};
    const auto& symbols = graph.expressions.symbols();
    std::erase_if(sizes, [&](const auto& size) { return std::ranges::count(symbols, size.first) == 0; });
    return {model, report::model_report(graph, sizes, 1)};
}

int run_models(const OutputArguments& output) {
    using report::Unit;
    static const report::Columns<SizedModel> columns{
        {"name", "model", Unit::text, &SizedModel::name},
        {"parameters", "parameters", Unit::amount, [](const SizedModel& m) { return m.report.parameters; }},
        {"flops", "FLOPs", Unit::amount, [](const SizedModel& m) { return m.report.total.flops; }},
        {"source", "source", Unit::text, &SizedModel::source},
        {"aliases", "also called", Unit::text, &SizedModel::aliases},
        {"note", "note", Unit::text, &SizedModel::note}};
    const report::Grid grid = columns.select(mapped(zoo_models(), sized));
    const std::string below = "\nFLOPs: of one item, of 128 tokens where there are tokens\n";
    return write_result(output, forms_of(grid, "models", below));
}

}  // namespace

void setup_models(CLI::App& verb, Action& action) {
    add_data_options(verb, run_with(verb, action, run_models));
}

}  // namespace ftax::cli
