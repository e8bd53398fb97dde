#include <fmt/format.h>

#include <memory>

#include "calibration/fit/model_fit.hpp"
#include "calibration/fit/operator_fit.hpp"
#include "ftax/error.hpp"
#include "src/cli/machine_rows.hpp"
#include "src/cli/model_rows.hpp"
#include "src/cli/output.hpp"
#include "src/cli/scenario.hpp"
#include "src/cli/verbs.hpp"
#include "src/io/csv.hpp"
#include "src/io/escape.hpp"
#include "src/io/file.hpp"
#include "src/io/measurement_file.hpp"
#include "src/io/profile_file.hpp"

namespace ftax::cli {
namespace {

struct FitArguments {
    std::vector<std::string> files;
    std::string output;
    std::string host_output;
    std::string start;
    ModelRowSelection selection;
    std::string only;
    std::string version = "1";
    int starts = 1;
    int iterations = 30;
    bool folds = false;
};

void print_report(const fit::FitReport& report) {
    if (report.folds.empty()) return;
    fmt::print(notices(), "{}: {} parameters{}\n", report.kernel_class, report.parameters.size(),
               report.converged ? "" : ", not converged");
    for (const fit::Fold& fold : report.folds) {
        fmt::print(notices(), "  {}: MAPE {:.1f} %\n", fold.name, 100 * fold.mean);
        for (const fit::ErrorSummary& g : fold.groups) {
            fmt::print(notices(), "    {:<28} n {:>6}  mean {:5.1f}  median {:5.1f}  P90 {:5.1f}  bias {:+5.1f} %\n",
                       g.group, g.rows, 100 * g.mean, 100 * g.median, 100 * g.p90, 100 * g.bias);
        }
    }
}

void print_errors(std::string_view what, std::span<const fit::ErrorSummary> errors, const fit::ErrorSummary& left_out,
                  bool converged) {
    fit::FitReport report{.kernel_class = std::string(what), .converged = converged};
    report.folds.push_back({"in the fit", {errors.begin(), errors.end()}, errors.back().mean});
    report.folds.push_back({"left out", {left_out}, left_out.mean});
    print_report(report);
}

/// Rows that `ftax measure` or calibration/campaign.sh wrote: the profiles of that machine.
int fit_machine(std::vector<CsvTable> tables, const FitArguments& arguments) {
    MachineRows rows = machine_rows(
        std::move(tables), {arguments.selection.left_out_models.begin(), arguments.selection.left_out_models.end()},
        print_warnings);
    if (!rows.device_rows.empty()) {
        const DeviceProfileFile start = arguments.start.empty()
                                            ? embedded_device_profile()
                                            : parse_device_profile(read_file(arguments.start), arguments.start);
        fit::GpuFit fitted = fit::fit_gpu(rows.device_rows, rows.device, start);
        fitted.profile.version = arguments.version;
        print_errors("device", fitted.errors, fitted.left_out, fitted.summary.converged);
        write_file(arguments.output, to_text(fitted.profile));
    }
    if (arguments.host_output.empty()) return 0;
    const std::string& framework = arguments.selection.frameworks.front();
    const fit::HostFit fitted =
        fit::fit_machine_host(rows.host_rows[framework], framework_profile(framework), rows.device.slug + " machine");
    print_errors("host", fitted.errors, fitted.left_out, fitted.summary.converged);
    write_file(arguments.host_output, to_text(fitted.profile));
    return 0;
}

int run_fit(const FitArguments& arguments) {
    std::vector<CsvTable> measured_here;
    for (const std::string& path : arguments.files) {
        CsvTable table = read_csv(path);
        if (holds_modes(table)) measured_here.push_back(std::move(table));
    }
    if (measured_here.size() == arguments.files.size()) return fit_machine(std::move(measured_here), arguments);
    if (!measured_here.empty()) {
        throw Error(ErrorCode::usage,
                    fmt::format("{} was measured for a calibration; the other files are fitted without it",
                                escape_terminal(measured_here.front().origin())));
    }
    if (!arguments.host_output.empty()) {
        throw Error(ErrorCode::usage,
                    "--host-output: none of these files has the host_dispatch rows that a host is fitted to");
    }
    Devices devices;
    DeviceProfileFile profile;
    profile.version = arguments.version;
    if (!arguments.start.empty()) profile = parse_device_profile(read_file(arguments.start), arguments.start);
    std::vector<fit::ModelRow> models;
    for (const std::string& path : arguments.files) {
        CsvTable table = read_csv(path);
        if (holds_operators(table)) {
            fit::OperatorFit fitted =
                fit::fit_operators(fit::operator_rows(std::move(table), arguments.selection.left_out_devices),
                                   arguments.version, arguments.folds);
            for (const fit::FitReport& report : fitted.reports) print_report(report);
            profile = std::move(fitted.profile);
        } else {
            for (fit::ModelRow& row :
                 model_rows(read_model_measurements(std::move(table)), arguments.selection, devices)) {
                models.push_back(std::move(row));
            }
        }
    }
    if (!models.empty()) {
        fit::ModelFitOptions options;
        options.fit.starts = arguments.starts;
        options.fit.iterations = arguments.iterations;
        options.fit.row_log_stddev = 0.05;
        options.only = arguments.only;
        const DeviceProfileFile start = profile;
        print_report(fit::fit_models(models, start, options, profile));
    }
    if (profile.parameters.empty()) throw Error(ErrorCode::usage, "no row of these files says anything about a device");
    write_file(arguments.output, to_text(profile));
    return 0;
}

}  // namespace

void setup_fit(CLI::App& app, Action& action) {
    CLI::App* verb = app.add_subcommand("fit", "fit a device profile to measured operators and models");
    const auto arguments = std::make_shared<FitArguments>();
    verb->add_option(
            "ROWS", arguments->files,
            "operator files first, then model files (CSV); or the files that `ftax measure` wrote on one machine")
        ->required();
    verb->add_option("-o,--output", arguments->output, "profile to write")->type_name("FILE")->required();
    verb->add_option(
            "--host-output", arguments->host_output,
            "framework profile to write, from the host_dispatch rows of `ftax measure` or calibration/campaign.sh")
        ->type_name("FILE");
    verb->add_option("--start", arguments->start, "profile to start from instead of fitting operators")
        ->type_name("FILE");
    verb->add_option("--models", arguments->selection.models_folder, "folder of model files that are not in the zoo")
        ->type_name("DIR");
    verb->add_option("--leave-out-model", arguments->selection.left_out_models, "model whose rows are not used");
    verb->add_option("--leave-out-device", arguments->selection.left_out_devices,
                     "slug of a device whose rows are not used");
    verb->add_option("--leave-out-run", arguments->selection.left_out_runs, "GPU:RUN whose rows are not used");
    verb->add_option("--framework", arguments->selection.frameworks, "frameworks whose whole-model rows are used")
        ->capture_default_str();
    verb->add_option("--only", arguments->only, "beginning of the names of the parameters that whole models may move");
    verb->add_option("--profile-version", arguments->version, "version to write into the profile");
    verb->add_option("--iterations", arguments->iterations, "most iterations of the whole-model fit")
        ->check(CLI::PositiveNumber);
    verb->add_option("--starts", arguments->starts, "starts of the whole-model fit")->check(CLI::PositiveNumber);
    verb->add_flag("--folds", arguments->folds, "also report errors with one device left out");
    verb->callback([arguments, &action] { action = [arguments] { return run_fit(*arguments); }; });
}

}  // namespace ftax::cli
