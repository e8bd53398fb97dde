#include "src/cli/kineto.hpp"
#include "src/cli/scenario_options.hpp"
#include "src/cli/verbs.hpp"
#include "src/report/pages.hpp"
#include "src/scenario/scenario.hpp"
#include "src/scenario/validation.hpp"

namespace ftax::cli {
using namespace scenario;
namespace {

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
        kineto.run.anchor = arguments.validation.anchor;
        kineto.run.device_profile = arguments.validation.device_profile;
        kineto.run.framework_profile = arguments.validation.framework_profile;
        return compare_with_kineto(kineto, arguments.output);
    }
    const Validation validation = [&] {
        Progress progress(arguments.validation.rows);
        return validate(arguments.validation, print_warnings,
                        [&](std::size_t done, std::size_t total) { progress.show(done, total); });
    }();
    const report::ValidationReport& report = validation.report;
    const ValidationArguments& given = arguments.validation;
    Forms forms = forms_of(report);
    forms.html = [&] {
        return validation_page({given.rows, given.anchor, given.device_profile}, validation.table, validation.rows,
                               report);
    };
    forms.predictions = [&] { return predictions_csv(validation.table, validation.rows); };
    write_result(arguments.output, forms);
    return gate(report.overall ? std::optional(100 * report.overall->mean) : std::nullopt, arguments.max_mape_percent);
}

/// Adds the run options needed for traces only; --anchor, --models and profiles are options of the verb.
void add_kineto_options(CLI::App& verb, KinetoArguments& arguments) {
    CLI::Option* trace = add_option(verb, "--kineto", "TRACE.json", arguments.trace,
                                    "Chrome trace of torch.profiler, compared with the model operator by operator");
    CLI::App& group = *verb.add_option_group("With --kineto");
    add_import_options(group, arguments.model);
    add_run_options(group, arguments.run);
    for (const char* taken : {"--anchor", "--models", "--profile", "--framework-profile"})
        group.remove_option(group.get_option(taken));
    group.get_option("--device")->required(false);
    add_batch_option(group, arguments.batch, "");
    add_option(group, "--calibrated", "FILE", arguments.calibrated,
               "write the framework profile with the host costs of the trace");
    for (CLI::Option* option : group.get_options()) option->needs(trace);
}

}  // namespace

void setup_validate(CLI::App& app, Action& action) {
    CLI::App& verb =
        *app.add_subcommand("validate", "compare predictions with measured rows (CSV) or a trace of torch.profiler");
    ValidateArguments& arguments = run_with(verb, action, run_validate);
    verb.add_option("ROWS", arguments.validation.rows, "measured models or operators (CSV); with --kineto the model")
        ->required();
    add_option(verb, "--anchor", "ROWS.csv", arguments.validation.anchor,
               "measured rows that calibrate the hosts (CSV)");
    add_option(verb, "--profile,--device-profile", "FILE", arguments.validation.device_profile,
               "fitted device parameters instead of the built-in ones");
    add_option(verb, "--framework-profile", "FILE", arguments.validation.framework_profile,
               "host costs of a framework instead of the built-in ones: rows of models, traces");
    add_option(verb, "--host-profile", "FILE", arguments.validation.host_profile,
               "operator rows: host costs of calls (from `ftax fit --host-output`) instead of the built-in ones");
    add_option(verb, "--models", "DIR", arguments.validation.models, "folder with model files");
    add_option(verb, "--by", "COLUMNS", arguments.validation.by,
               "columns to group by; default gpu,framework,precision or gpu,op,precision");
    add_option(verb, "--max-mape", "PERCENT", arguments.max_mape_percent, "exit with 1 if the MAPE is larger")
        ->check(within(1e-9, 1e9, "an error above 0"));
    add_option(verb, "--predictions", "OUT.csv", arguments.output.predictions, "write every row with its prediction");
    CLI::Option* html =
        add_html_option(verb, arguments.output, "with predicted against measured, errors by GPU, framework, batch");
    add_json_option(verb, arguments.output);
    add_kineto_options(verb, arguments.kineto);
    CLI::Option* trace = verb.get_option("--kineto");
    html->excludes(trace);
    for (const char* of_rows : {"--models", "--by", "--max-mape", "--predictions", "--host-profile"})
        verb.get_option(of_rows)->excludes(trace);
}

}  // namespace ftax::cli
