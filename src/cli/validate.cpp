#include <memory>

#include "src/cli/output.hpp"
#include "src/cli/scenario.hpp"
#include "src/cli/validation.hpp"
#include "src/cli/verbs.hpp"
#include "src/io/file.hpp"

namespace ftax::cli {
namespace {

struct ValidateArguments {
    ValidationArguments validation;
    std::string predictions;
    double max_mape_percent = 0;
    OutputArguments output;
};

constexpr int over_max_mape = 1;

int run_validate(const ValidateArguments& arguments) {
    const Validation validation = validate(arguments.validation, print_warnings);
    const report::ValidationReport& report = validation.report;
    if (!arguments.predictions.empty()) write_file(arguments.predictions, predictions_csv(validation.table, validation.rows));
    write_result(arguments.output, {.table = [&] { return to_table(report, report::standard_output_style()); },
                                    .json = [&] { return to_json(report); },
                                    .csv = {}});
    if (arguments.max_mape_percent <= 0) return 0;
    return report.overall && 100 * report.overall->mean <= arguments.max_mape_percent ? 0 : over_max_mape;
}

}  // namespace

void setup_validate(CLI::App& app, Action& action) {
    CLI::App* verb = app.add_subcommand("validate", "predictions against measured rows (CSV), with error statistics");
    const auto arguments = std::make_shared<ValidateArguments>();
    verb->add_option("ROWS", arguments->validation.rows, "measured models or operators (CSV)")->required();
    verb->add_option("--anchor", arguments->validation.anchor, "measured rows that calibrate the hosts (CSV)")->type_name("ROWS.csv");
    verb->add_option("--profile", arguments->validation.device_profile, "fitted device parameters instead of the built-in ones")
        ->type_name("FILE");
    verb->add_option("--models", arguments->validation.models, "folder with models as files")->type_name("DIR");
    verb->add_option("--by", arguments->validation.by, "columns to group by; default gpu,framework,precision or gpu,op,precision")
        ->type_name("COLUMNS");
    verb->add_option("--max-mape", arguments->max_mape_percent, "exit with 1 when the MAPE is larger")
        ->type_name("PERCENT")
        ->check(CLI::PositiveNumber);
    verb->add_option("--predictions", arguments->predictions, "write every row with its prediction")->type_name("OUT.csv");
    add_json_option(*verb, arguments->output);
    verb->callback([arguments, &action] { action = [arguments] { return run_validate(*arguments); }; });
}

}  // namespace ftax::cli
