#include <chrono>
#include <future>

#include "graphs/base/interruption.hpp"
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

/// JSON, table and page. Runs in a thread of its own, which Ctrl-C in the caller's ends.
std::tuple<std::string, std::string, std::string> run(const std::vector<std::string>& words, const Graph* graph,
                                                      bool with_page) {
    auto running = std::async(std::launch::async, [&] { return cli::run_in_process(words, graph, with_page); });
    while (running.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
        const nb::gil_scoped_acquire locked;
        if (PyErr_CheckSignals() == 0) continue;
        interrupted = true;
        {
            const nb::gil_scoped_release unlocked;
            running.wait();
        }
        interrupted = false;
        throw nb::python_error();  // that of the signal's handler: KeyboardInterrupt
    }
    cli::Result result = running.get();
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
