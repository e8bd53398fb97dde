#include "src/cli/kineto.hpp"

#include <fmt/format.h>

#include "predictors/frameworks/framework_model.hpp"
#include "predictors/host/host_costs.hpp"
#include "src/core/throw_error.hpp"
#include "src/io/file.hpp"
#include "src/io/kineto_trace.hpp"
#include "src/io/profile_file.hpp"
#include "src/report/trace_comparison.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::cli {
using namespace scenario;
namespace {

/// Returns parameters that reproduce the trace's host cost of each kind; the others are unchanged.
std::vector<report::TracedParameter> traced_parameters(const report::TraceComparison& comparison,
                                                       const FrameworkProfile& profile, Precision precision) {
    const HostCosts costs = host_costs(profile, precision);
    std::vector<report::TracedParameter> parameters;
    if (!comparison.has_kernels) return parameters;  // CPU times include the operators' work
    for (const report::HostKindTimes& kind : comparison.host_kinds) {
        const double beside_s = kind.predicted_s - costs[kind.kind];  // module calls, BLAS queries
        if (kind.measured_s <= beside_s) continue;
        const std::string name = fmt::format("host.{}", name_of(kind.kind));
        const double value = host_parameter(profile, name);
        parameters.push_back({name, value, value * (kind.measured_s - beside_s) / costs[kind.kind]});
    }
    const auto add = [&](const char* name, std::optional<double> traced) {
        if (traced && *traced > 0) parameters.push_back({name, host_parameter(profile, name), *traced});
    };
    add("launch_latency_s", comparison.launch_latency_s);
    add("kernel_gap_s", comparison.kernel_gap_s);
    return parameters;
}

void write_calibrated(const KinetoArguments& arguments, FrameworkProfile profile,
                      const std::vector<report::TracedParameter>& parameters) {
    for (const report::TracedParameter& traced : parameters) {
        Parameter* known = find_parameter(profile.parameters, traced.name);
        Parameter& parameter = known ? *known : profile.parameters.emplace_back();
        parameter.name = traced.name;
        parameter.value = traced.traced;
        parameter.source = "measured: a trace of torch.profiler";
    }
    write_file(arguments.calibrated, to_text(std::move(profile)));
}

void warn_of_what_differs(const KinetoTrace& trace, const report::TraceComparison& comparison,
                          const DeviceProfile& device) {
    const bool cpu = is_cpu(device.device);
    if (!comparison.has_kernels && !cpu) {
        print_warnings(
            {"the trace has no kernels: only the host side is compared; if the model ran on the CPU, its "
             "host times include the operators' work"});
    }
    if (comparison.has_kernels && cpu) print_warnings({"the trace is of a GPU, the prediction of a CPU"});
    if (!trace.gpu.empty() && !cpu) {
        try {
            const std::string slug = device_spec(trace.gpu).slug;
            if (slug != device.device.slug) {
                print_warnings({fmt::format("the trace is of {}, the prediction of {}", slug, device.device.slug)});
            }
        } catch (const Error&) {
            print_warnings({fmt::format("the trace is of {}, an unknown device", trace.gpu)});
        }
    }
    if (comparison.aligned < 0.5) {
        print_warnings(
            {"fewer than half of the trace's operators belong to the model: is it another model or framework?"});
    }
}

}  // namespace

int compare_with_kineto(const KinetoArguments& arguments, const OutputArguments& output) {
    if (arguments.run.device.empty()) throw Error(ErrorCode::usage, "validate --kineto needs a --device");
    LibraryVersions libraries;
    const FrameworkModel& framework = framework_model(take_version(arguments.run.framework, libraries).name);
    if (!framework.rewrites.empty() || framework.traits.host_kind) {
        throw_error(ErrorCode::usage,
                    "{} does not run the model's operators one by one, as a trace of torch.profiler has them; "
                    "pytorch-eager and libtorch do",
                    framework.name);
    }
    const KinetoTrace trace = read_kineto_trace(arguments.trace);
    const Graph graph = load_graph(arguments.model);
    if (arguments.batch.empty() && has_batch(graph))
        throw_error(ErrorCode::usage, "the batch of {} is dynamic: give that of the trace (--batch N)", graph.name);
    const auto batch = one_batch_for(graph, arguments.batch, "a trace is of");
    const ShapeBindings bindings = with_batch(dimension_bindings(arguments.model), batch);
    Predictor predictor = make_predictor(graph, arguments.model, arguments.run);
    const Explanation explanation = predictor.explain(bindings);
    print_warnings(explanation.prediction.warnings);

    const report::TraceComparison comparison =
        report::compare_with_trace(trace, predictor.device().device, predictor.graph(), explanation);
    warn_of_what_differs(trace, comparison, predictor.device());
    const auto parameters = traced_parameters(comparison, predictor.framework(), predictor.precision());
    if (!arguments.calibrated.empty()) write_calibrated(arguments, predictor.framework(), parameters);
    write_result(output, {.table =
                              [&] {
                                  const report::Style style = report::standard_output_style();
                                  report::PredictionReport header = report_on(predictor, arguments.model);
                                  header.rows.push_back({batch, explanation.prediction, {}, {}});
                                  return print_header(header, style) + to_table(comparison, trace, parameters, style);
                              },
                          .json = [&] { return to_json(comparison, trace, parameters); },
                          .csv = {}});
    return 0;
}

}  // namespace ftax::cli
