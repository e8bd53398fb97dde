#include <nlohmann/json.hpp>

#include "ftax/equations.hpp"
#include "src/io/json_document.hpp"
#include "src/report/memory_report.hpp"
#include "src/report/prediction_report.hpp"

namespace ftax::report {
namespace {

using Json = nlohmann::ordered_json;

Json row_json(const PredictionRow& row) {
    const Prediction& p = row.prediction;
    Json json = {{"batch", row.batch ? Json(*row.batch) : Json(nullptr)},
                 {"latency_s", p.latency_s},
                 {"low_s", p.low_s},
                 {"high_s", p.high_s},
                 {"host_s", p.host_s},
                 {"device_s", p.device_s},
                 {"closed_form_s", p.closed_form_s},
                 {"widest_component", {{"name", p.widest_component}, {"stddev", p.widest_component_stddev}}},
                 {"bound", name_of(p.bound)},
                 {"kernels", p.kernels},
                 {"framework_overhead", equations::framework_overhead(p.latency_s, p.device_s)},
                 {"sm_active", p.sm_active},
                 {"warp_occupancy", p.warp_occupancy},
                 {"coverage", {{"nodes", p.coverage.nodes}, {"flops", p.coverage.flops}, {"time", p.coverage.time}}},
                 {"warnings", p.warnings}};
    if (row.memory) {
        json["memory"] = memory_json(*row.memory);
        json["fits"] = row.memory->fits();
    }
    if (row.branches) json["branches_s"] = {{"min", row.branches->min_s}, {"max", row.branches->max_s}};
    if (row.measured) json["measured_latency_s"] = row.measured->latency_s;
    if (row.measured && row.measured->device_s) json["measured_device_s"] = *row.measured->device_s;
    return json;
}

Json crossover_json(const Crossover& crossover) {
    Json json = {{"batch", crossover.batch},   {"low", crossover.low},
                 {"high", crossover.high},     {"gpu_waits", crossover.gpu_waits_above ? "above" : "below"},
                 {"host_s", crossover.host_s}, {"causes", Json::array()}};
    for (const HostCause& cause : crossover.causes) {
        json["causes"].push_back(
            {{"kind", name_of(cause.kind)}, {"operations", cause.operations}, {"host_s", cause.host_s}});
    }
    return json;
}

/// The first crossover, with the others in `further`.
Json crossovers_json(const CrossoverReport& report) {
    Json json = {{"searched_to", report.largest}, {"batch", nullptr}};
    if (report.crossovers.empty()) {
        json["bound"] = name_of(report.bound);
        return json;
    }
    json.update(crossover_json(report.crossovers.front()));
    json["further"] = Json::array();
    for (std::size_t i = 1; i < report.crossovers.size(); ++i)
        json["further"].push_back(crossover_json(report.crossovers[i]));
    return json;
}

Json anchors_json(const AnchorPlan& plan) {
    Json json = {{"half_width", plan.half_width}, {"runs", Json::array()}};
    for (const SuggestedAnchor& run : plan.runs)
        json["runs"].push_back({{"batch", run.batch}, {"half_width", run.half_width}});
    return json;
}

}  // namespace

std::string to_json(const PredictionReport& report) {
    Json json = {{"schema_version", 1},
                 {"model", report.model},
                 {"device",
                  {{"slug", report.device.device.slug},
                   {"name", report.device.device.name},
                   {"profile_version", report.device.version}}},
                 {"framework",
                  {{"name", report.framework.framework},
                   {"version", report.framework.version},
                   {"host", report.framework.host}}},
                 {"precision", name_of(report.precision)},
                 {"dims", report.dims},
                 {"predictions", Json::array()}};
    for (const PredictionRow& row : report.rows) json["predictions"].push_back(row_json(row));
    if (report.crossover) json["crossover"] = crossovers_json(*report.crossover);
    if (report.anchors) json["suggested_anchors"] = anchors_json(*report.anchors);
    json["warnings"] = report.warnings;
    return to_text(json);
}

}  // namespace ftax::report
