#include "src/io/file.hpp"
#include "src/python/bindings.hpp"
#include "src/report/model_report.hpp"
#include "src/scenario/validation.hpp"

namespace ftax::python {
namespace {

std::string inspect(const Graph& graph, const std::map<std::string, std::int64_t>& dims, int depth) {
    return to_json(report::model_report(graph, {dims.begin(), dims.end()}, depth));
}

/// The report as JSON, and what the anchors left in doubt.
std::tuple<std::string, std::vector<std::string>> validate(const std::string& rows, const std::string& anchor,
                                                           const std::string& models, const std::string& by,
                                                           const std::string& profile, const std::string& host,
                                                           const std::string& predictions) {
    std::vector<std::string> warnings;
    const scenario::Validation result = scenario::validate(
        {.rows = rows, .anchor = anchor, .models = models, .by = by, .device_profile = profile, .host_profile = host},
        [&](const std::vector<std::string>& more) { warnings.insert(warnings.end(), more.begin(), more.end()); });
    if (!predictions.empty()) write_file(predictions, predictions_csv(result.table, result.rows));
    return {to_json(result.report), warnings};
}

}  // namespace

void bind_reports(nb::module_& module) {
    module.def("inspect_json", inspect, "graph"_a, "dims"_a, "depth"_a, Release());
    module.def("validate_json", validate, "rows"_a, "anchor"_a, "models"_a, "by"_a, "profile"_a, "host_profile"_a,
               "predictions"_a, Release());
}

}  // namespace ftax::python
