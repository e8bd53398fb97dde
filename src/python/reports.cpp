#include "src/cli/in_process.hpp"
#include "src/python/bindings.hpp"
#include "src/report/model_report.hpp"

namespace ftax::python {
namespace {

std::string inspect(const Graph& graph, const std::map<std::string, std::int64_t>& dims, int depth) {
    const ShapeBindings bindings(dims.begin(), dims.end());
    return report::is_bound(graph, bindings) ? to_json(report::model_report(graph, bindings, depth))
                                             : to_json(report::open_model_report(graph, bindings));
}

/// JSON, table and page.
std::tuple<std::string, std::string, std::string> run(const std::vector<std::string>& words, const Graph* graph,
                                                      bool with_page) {
    cli::Result result = cli::run_in_process(words, graph, with_page);
    return {std::move(result.json), std::move(result.table), std::move(result.page)};
}

std::map<std::string, std::string> options(const std::string& command) {
    const auto list = cli::options_of(command);
    return {list.begin(), list.end()};
}

}  // namespace

void bind_reports(nb::module_& module) {
    module.def("inspect_json", inspect, "graph"_a, "dims"_a, "depth"_a, Release());
    module.def("run", run, "words"_a, "graph"_a.none(), "with_page"_a, Release());
    module.def("options", options, "command"_a);
}

}  // namespace ftax::python
