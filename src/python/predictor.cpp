#include <mutex>

#include "ftax/error.hpp"
#include "ftax/headroom.hpp"
#include "ftax/predict.hpp"
#include "src/cli/in_process.hpp"
#include "src/python/bindings.hpp"
#include "src/report/charts.hpp"
#include "src/report/headroom_report.hpp"
#include "src/report/launch_report.hpp"
#include "src/report/quantities.hpp"
#include "src/scenario/alternatives.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::python {
namespace {

using Batches = std::vector<std::optional<std::int64_t>>;  ///< nullopt: the model fixes it

/// A predictor that threads may share: prediction changes its state.
class SharedPredictor {
  public:
    SharedPredictor(const Graph& graph, const std::vector<std::string>& options) : graph_(graph) {
        scenario::HeldWarnings held;
        scenario::RunArguments run = cli::run_of(options);
        run.held = &held;
        predictor_ = std::make_unique<Predictor>(scenario::make_predictor(graph, {.model = graph.name}, run));
        warnings_ = graph.warnings;
        for (auto& [warning, prints] : held) warnings_.push_back(std::move(warning));
    }

    /// As JSON, under the names of `ftax predict --json`.
    [[nodiscard]] std::string predict(const ShapeBindings& dims) {
        const std::lock_guard guard(mutex_);
        scenario::HeldWarnings in_row;
        report::PredictionRow row = scenario::predicted_row(*predictor_, dims, std::nullopt, &in_row);
        std::vector<std::string>& warnings = row.prediction.warnings;
        warnings.insert(warnings.begin(), warnings_.begin(), warnings_.end());
        static const report::PredictionReport any;
        static const auto columns = report::prediction_row_columns(any);
        return columns
            .json(row,
                  "latency_s low_s high_s host_s device_s closed_form_s widest_component evidence bound kernels "
                  "sm_active warp_occupancy power_w coverage.nodes=coverage_nodes coverage.flops=coverage_flops "
                  "coverage.time=coverage_time warnings memory_bytes=total_bytes fits parts")
            .dump();
    }
    /// Table and chart of a sweep.
    [[nodiscard]] std::pair<std::string, std::string> render(const Batches& batches, const ShapeBindings& dims) {
        const std::lock_guard guard(mutex_);
        scenario::HeldWarnings reported_before;
        report::PredictionReport report = scenario::report_on(*predictor_, {.model = graph_.name});
        report.dims = dims;
        for (const auto& batch : batches)
            report.rows.push_back(scenario::predicted_row(*predictor_, report.dims, batch, &reported_before));
        return {to_table(report, {}), to_svg(latency_chart(report))};
    }
    [[nodiscard]] std::string crossovers(const ShapeBindings& dims, std::int64_t largest) {
        const std::lock_guard guard(mutex_);
        return report::crossover_columns()
            .json_rows(find_crossovers(*predictor_, dims, largest), "batch low high host_s gpu_waits causes")
            .dump();
    }
    [[nodiscard]] std::string headroom(const ShapeBindings& dims, double budget) const {
        const std::string problem = read_quantity(format_number(budget), scenario::budget_quantity(), budget);
        if (!problem.empty()) throw Error(ErrorCode::usage, problem);
        return report::growth_columns()
            .json_rows(find_headroom(graph_, *predictor_, dims, budget),
                       "name=property start=from end=to latency_s bound is_open=open skipped")
            .dump();
    }
    /// Every launch with its times and when it ran.
    [[nodiscard]] std::string operators(const ShapeBindings& dims) {
        const std::lock_guard guard(mutex_);
        const Explanation explanation = predictor_->explain(dims);
        report::Json rows =
            report::launch_columns(predictor_->graph())
                .json_rows(explanation.launches, "operator source module host_kind kernels host_s device_s bound");
        for (std::size_t i = 0; i < explanation.timeline.size(); ++i) {
            const Span& span = explanation.timeline[i];
            rows[i]["host_start_s"] = span.host_start_s;
            rows[i]["device_start_s"] = span.device_start_s;
            rows[i]["device_end_s"] = span.device_end_s;
        }
        return rows.dump();
    }
    [[nodiscard]] const Predictor& get() const { return *predictor_; }
    [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

  private:
    const Graph& graph_;  // which Python keeps alive
    std::unique_ptr<Predictor> predictor_;
    std::mutex mutex_;
    std::vector<std::string> warnings_;
};

}  // namespace

void bind_predictor(nb::module_& module) {
    nb::class_<SharedPredictor>(module, "Predictor",
                                "Predicts one graph on one device under one framework. Threads may share it; each "
                                "prediction takes microseconds and releases the interpreter lock.")
        .def(nb::init<const Graph&, const std::vector<std::string>&>(), "graph"_a, "options"_a, nb::keep_alive<1, 2>(),
             Release())
        .def("predict", &SharedPredictor::predict, "dims"_a, Release())
        .def("render", &SharedPredictor::render, "batches"_a, "dims"_a, Release())
        .def("crossovers", &SharedPredictor::crossovers, "dims"_a, "largest"_a, Release())
        .def("headroom", &SharedPredictor::headroom, "dims"_a, "budget"_a, Release())
        .def("operators", &SharedPredictor::operators, "dims"_a, Release())
        .def_prop_ro("device", [](const SharedPredictor& p) { return p.get().device().device.slug; })
        .def_prop_ro("framework", [](const SharedPredictor& p) { return p.get().framework().framework; })
        .def_prop_ro("host", [](const SharedPredictor& p) { return p.get().framework().host; })
        .def_prop_ro("precision", [](const SharedPredictor& p) { return std::string(name_of(p.get().precision())); })
        .def_prop_ro("warnings", &SharedPredictor::warnings);
}

}  // namespace ftax::python
