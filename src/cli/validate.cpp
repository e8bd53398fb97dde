#include <fmt/format.h>

#include "calibration/rows/kineto_trace.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/file.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/host/host_costs.hpp"
#include "predictors/profiles/profile_file.hpp"
#include "src/cli/scenario_options.hpp"
#include "src/report/pages.hpp"
#include "src/report/trace_comparison.hpp"
#include "src/scenario/validation.hpp"

namespace ftax::cli {
namespace {

struct KinetoArguments {
    std::string trace;
    ModelArguments model;
    std::string batch;
    std::string calibrated;  ///< path of a framework profile to write with the trace's host costs; empty: none
};

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
            if (slug != device.device.slug)
                print_warnings({fmt::format("the trace is of {}, the prediction of {}", slug, device.device.slug)});
        } catch (const Error&) {
            print_warnings({fmt::format("the trace is of {}, an unknown device", trace.gpu)});
        }
    }
    if (comparison.aligned < 0.5)
        print_warnings(
            {"fewer than half of the trace's operators belong to the model: check the model and --framework"});
}

/// Compares a prediction with a trace of torch.profiler, operator by operator, and prints the host costs that it
/// calibrates. Throws Error{usage} for a framework that runs no single operators, Error{profile} for an invalid trace.
int compare_with_kineto(const KinetoArguments& arguments, const RunArguments& run, const OutputArguments& output) {
    if (run.device.empty()) throw Error(ErrorCode::usage, "validate --kineto needs a --device");
    LibraryVersions libraries;
    const FrameworkModel& framework = framework_model(take_version(run.framework, libraries).name);
    if (!framework.rewrites.empty() || framework.traits.host_kind) {
        throw_error(ErrorCode::usage,
                    "{} does not run the model's operators one by one, as a trace of torch.profiler has them; "
                    "pytorch-eager and libtorch do",
                    framework.name);
    }
    const KinetoTrace trace = read_kineto_trace(arguments.trace);
    const Graph graph = load_graph(arguments.model);
    const ShapeBindings dims = dimension_bindings(graph, arguments.model);
    if (arguments.batch.empty() && has_batch(graph) && !dims.contains("batch"))
        throw_error(ErrorCode::usage, "the batch of {} is dynamic: give that of the trace (--batch N)", graph.name);
    const auto batch = one_batch_for(graph, arguments.batch, dims, "a trace is of");
    const ShapeBindings bindings = with_batch(dims, batch);
    Predictor predictor = make_predictor(graph, arguments.model, run);
    const Explanation explanation = predictor.explain(bindings);
    print_warnings(explanation.prediction.warnings);

    const report::TraceComparison comparison =
        report::compare_with_trace(trace, predictor.device().device, predictor.graph(), explanation);
    warn_of_what_differs(trace, comparison, predictor.device());
    const auto parameters = traced_parameters(comparison, predictor.framework(), predictor.precision());
    if (!arguments.calibrated.empty()) write_calibrated(arguments, predictor.framework(), parameters);
    report::PredictionReport header = report_on(predictor, arguments.model);
    header.rows.push_back({batch, explanation.prediction, {}, {}});
    const auto table = [&](report::Style style) {
        return print_verdict(verdict_of(comparison), style) + print_header(header, style) +
               to_table(comparison, trace, parameters, style);
    };
    return write_result(output, {.table = table, .json = [&] { return to_json(comparison, trace, parameters); }});
}

struct ValidateArguments {
    ValidationArguments validation;
    KinetoArguments kineto;
    double max_mape_percent = 0;
    OutputArguments output;
};

int run_validate(const ValidateArguments& arguments) {
    if (!arguments.kineto.trace.empty()) {
        KinetoArguments kineto = arguments.kineto;
        kineto.model.model = arguments.validation.rows;
        return compare_with_kineto(kineto, arguments.validation.run, arguments.output);
    }
    const Validation validation = [&] {
        Progress progress(arguments.validation.rows);
        return validate(arguments.validation, print_warnings,
                        [&](std::size_t done, std::size_t total) { progress.show(done, total); });
    }();
    const report::ValidationReport& report = validation.report;
    const ValidationArguments& given = arguments.validation;
    Forms forms = forms_of(report, [&] {
        return validation_page({given.rows, given.run.anchor, given.run.device_profile}, validation.table,
                               validation.rows, report);
    });
    forms.predictions = [&] { return predictions_csv(validation.table, validation.rows); };
    write_result(arguments.output, forms);
    return gate(report.overall ? std::optional(100 * report.overall->mean) : std::nullopt, arguments.max_mape_percent);
}

/// Adds the run options needed for traces only; --anchor, --models and profiles are options of the verb.
void add_kineto_options(CLI::App& verb, KinetoArguments& arguments, RunArguments& run) {
    CLI::Option* trace = add_option(verb, "--kineto", "TRACE.json", arguments.trace,
                                    "Chrome trace of torch.profiler, compared with the model operator by operator");
    CLI::App& group = *verb.add_option_group("With --kineto");
    add_import_options(group, arguments.model);
    add_run_options(group, run);
    for (const char* taken : {"--anchor", "--models", "--profile", "--framework-profile", "--host-file"})
        group.remove_option(group.get_option(taken));
    group.get_option("--device")->required(false);
    add_batch_option(group, arguments.batch, "");
    add_option(group, "--calibrated", "FILE", arguments.calibrated,
               "write the framework profile with the host costs of the trace");
    for (CLI::Option* option : group.get_options()) option->needs(trace);
}

}  // namespace

void setup_validate(CLI::App& verb, Action& action) {
    ValidateArguments& arguments = run_with(verb, action, run_validate);
    RunArguments& run = arguments.validation.run;
    verb.add_option("ROWS", arguments.validation.rows, "measured models or operators (CSV); with --kineto the model")
        ->required();
    add_option(verb, "--anchor", "ROWS.csv", run.anchor, "measured rows that calibrate the hosts (CSV)");
    add_option(verb, "--profile,--device-profile", "FILE", run.device_profile,
               "file of fitted device parameters that replaces the built-in ones");
    add_option(verb, "--framework-profile", "FILE", run.framework_profile,
               "for rows of models and traces: file of host costs that replaces the built-in ones");
    add_option(verb, "--host-file", "FILE", run.host_file,
               "output of `ftax measure host` on the host of the rows without a cpu");
    add_option(
        verb, "--host-profile", "FILE", arguments.validation.host_profile,
        "for operator rows: file of host costs of calls (`ftax fit --host-output`) that replaces the built-in ones");
    add_option(verb, "--models", "DIR", run.models, "folder with model files");
    verb.add_flag(
        "--suggest-anchors", arguments.validation.suggest_anchors,
        "list the rows whose measurement, for --anchor, would most narrow the intervals of others on the same GPU");
    add_option(verb, "--by", "COLUMNS", arguments.validation.by,
               "columns to group by; default gpu,framework,precision or gpu,op,precision");
    add_option(verb, "--max-mape", "PERCENT", arguments.max_mape_percent, "exit with 1 if the MAPE is larger")
        ->check(within(1e-9, 1e9, "an error above 0"));
    add_option(verb, "--predictions", "OUT.csv", arguments.output.predictions, "write every row with its prediction");
    CLI::Option* html =
        add_html_option(verb, arguments.output, "with predicted against measured, errors by GPU, framework, batch");
    add_json_option(verb, arguments.output);
    add_kineto_options(verb, arguments.kineto, run);
    CLI::Option* trace = verb.get_option("--kineto");
    html->excludes(trace);
    for (const char* of_rows :
         {"--models", "--suggest-anchors", "--by", "--max-mape", "--predictions", "--host-profile"})
        verb.get_option(of_rows)->excludes(trace);
}

}  // namespace ftax::cli
