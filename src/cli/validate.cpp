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
    CLI::Option* trace = verb.add_option("--kineto", arguments.trace,
                                         "Chrome trace of torch.profiler, compared with the model operator by operator")
                             ->type_name("TRACE.json");
    CLI::App& group = *verb.add_option_group("With --kineto");
    add_import_options(group, arguments.model);
    add_run_options(group, arguments.run);
    for (const char* taken : {"--anchor", "--models", "--profile", "--framework-profile"})
        group.remove_option(group.get_option(taken));
    group.get_option("--device")->required(false);
    add_batch_option(group, arguments.batch, "");
    group
        .add_option("--calibrated", arguments.calibrated,
                    "write the framework profile with the host costs of the trace")
        ->type_name("FILE");
    for (CLI::Option* option : group.get_options()) option->needs(trace);
}

}  // namespace

void setup_validate(CLI::App& app, Action& action) {
    CLI::App& verb = add_verb(app, "validate");
    ValidateArguments& arguments = run_with(verb, action, run_validate);
    verb.add_option("ROWS", arguments.validation.rows, "measured models or operators (CSV); with --kineto the model")
        ->required();
    verb.add_option("--anchor", arguments.validation.anchor, "measured rows that calibrate the hosts (CSV)")
        ->type_name("ROWS.csv");
    verb.add_option("--profile,--device-profile", arguments.validation.device_profile,
                    "fitted device parameters instead of the built-in ones")
        ->type_name("FILE");
    verb.add_option("--framework-profile", arguments.validation.framework_profile,
                    "host costs of a framework instead of the built-in ones: rows of models, traces")
        ->type_name("FILE");
    verb.add_option("--host-profile", arguments.validation.host_profile,
                    "operator rows: host costs of calls (from `ftax fit --host-output`) instead of "
                    "the built-in ones")
        ->type_name("FILE");
    verb.add_option("--models", arguments.validation.models, "folder with model files")->type_name("DIR");
    verb.add_option("--by", arguments.validation.by,
                    "columns to group by; default gpu,framework,precision or gpu,op,precision")
        ->type_name("COLUMNS");
    verb.add_option("--max-mape", arguments.max_mape_percent, "exit with 1 if the MAPE is larger")
        ->type_name("PERCENT")
        ->check(CLI::PositiveNumber);
    verb.add_option("--predictions", arguments.output.predictions, "write every row with its prediction")
        ->type_name("OUT.csv");
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
