#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string_view>

#include "calibration/fit/model_fit.hpp"
#include "calibration/fit/operator_fit.hpp"
#include "calibration/rows/measurement_file.hpp"
#include "ftax/precision.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/csv.hpp"
#include "graphs/files/escape.hpp"
#include "graphs/files/file.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/profiles/profile_file.hpp"
#include "src/cli/verbs.hpp"
#include "src/scenario/machine_rows.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::cli {
using namespace scenario;
namespace {

/// What the rows of a fit are of; several files may hold several.
enum RowsOf : unsigned { machine = 1, operators = 2, models = 4 };

/// Options that not every kind of rows gives a meaning to.
struct Reader {
    std::string_view option;
    unsigned rows;
};
constexpr std::array readers{
    Reader{"--host-output", machine | operators},
    Reader{"--start", machine | models},
    Reader{"--models", models},
    Reader{"--leave-out-model", machine | models},
    Reader{"--leave-out-run", models},
    Reader{"--leave-out-device", operators | models},
    Reader{"--only", models},
    Reader{"--framework", machine | operators | models},
    Reader{"--framework-version", operators},
    Reader{"--iterations", models},
    Reader{"--starts", models},
    Reader{"--folds", operators},
};

struct FitArguments {
    std::vector<std::string_view> given;  ///< given options of `readers`
    std::vector<std::string> files;
    std::string output;
    std::string host_output;
    std::string start;
    ModelRowSelection selection;
    std::string only;
    std::string version = "1";
    std::string framework_version = "unknown";
    int starts = 1;
    int iterations = 30;
    bool folds = false;
};

void print_report(const fit::FitReport& report) {
    if (report.folds.empty()) return;
    fmt::print(notices(), "{}: {} parameters{}\n", report.kernel_class, report.parameters.size(),
               report.converged ? "" : ", not converged");
    for (const fit::Fold& fold : report.folds) {
        const bool whole = fold.row_class.empty() || fold.row_class == report.kernel_class;
        fmt::print(notices(), "  {}{}: MAPE {:.1f} %\n", whole ? "" : fold.row_class + ", ", fold.name,
                   100 * fold.mean);
        for (const fit::ErrorSummary& g : fold.groups)
            fmt::print(notices(), "    {:<28} n {:>6}  mean {:5.1f}  median {:5.1f}  P90 {:5.1f}  bias {:+5.1f} %\n",
                       g.group, g.rows, 100 * g.mean, 100 * g.median, 100 * g.p90, 100 * std::expm1(g.bias));
    }
}

/// Refuses options that these rows give no meaning to.
void refuse_unread(const FitArguments& arguments, unsigned rows) {
    const std::string_view of = rows == machine     ? "rows that were measured for a calibration"
                                : rows == operators ? "rows of operators"
                                : rows == models    ? "rows of whole models"
                                                    : "rows of operators and whole models";
    for (const Reader& reader : readers) {
        const bool given = std::ranges::count(arguments.given, reader.option) > 0;
        if (given && (reader.rows & rows) == 0)
            throw_error(ErrorCode::usage, "{} does not apply to {}", reader.option, of);
    }
    if ((rows & operators) != 0 && !arguments.start.empty())
        throw Error(ErrorCode::usage, "use --start or operator rows, not both");
}

/// Rows that `ftax measure` wrote: the profiles of that machine.
int fit_machine(std::vector<CsvTable> tables, const FitArguments& arguments) {
    const std::vector<std::string>& frameworks = arguments.selection.frameworks;
    if (frameworks.size() > 1)
        throw Error(ErrorCode::usage, "--framework: give one; host costs are fitted per framework");
    MachineRows rows = machine_rows(
        std::move(tables), {arguments.selection.left_out_models.begin(), arguments.selection.left_out_models.end()},
        print_warnings);
    if (!arguments.output.empty()) {
        if (rows.device_rows.empty())
            throw Error(ErrorCode::usage,
                        "--output: none of these rows was timed as device_hot, which a device is fitted to");
        const DeviceProfileFile start = arguments.start.empty()
                                            ? embedded_device_profile()
                                            : parse_device_profile(read_file(arguments.start), arguments.start);
        fit::GpuFit fitted = fit::fit_gpu(rows.device_rows, rows.device, start);
        fitted.profile.version = arguments.version;
        print_report(fitted.report);
        write_file(arguments.output, to_text(fitted.profile));
    }
    if (arguments.host_output.empty()) return 0;
    const Scenario start = resolve({.device = rows.device.slug, .framework = frameworks.front()}, Precision::fp32);
    const fit::HostFit fitted = fit::fit_machine_host(rows.host_rows[frameworks.front()], start.framework,
                                                      rows.device.slug + " machine", rows.runtime);
    print_report(fitted.report);
    write_file(arguments.host_output, to_text(fitted.profile));
    return 0;
}

/// Fits calls, then kernels that were timed alone on top of what others show.
void fit_operators(std::vector<fit::OperatorRow>& rows, const FitArguments& arguments, DeviceProfileFile& profile) {
    using fit::RowClass;
    const auto has = [&](auto wanted) {
        return std::any_of(rows.begin(), rows.end(), [&](const fit::OperatorRow& row) { return wanted(row.of); });
    };
    const auto add = [&](const std::vector<fit::FitReport>& reports) {
        for (const fit::FitReport& report : reports) {
            print_report(report);
            fit::replace_parameters(profile, report.parameters);
        }
    };
    if (has([](RowClass of) { return of <= RowClass::conv; })) {
        fit::OperatorFit fitted = fit::fit_operators(rows, {.profile_version = arguments.version,
                                                            .framework = arguments.selection.frameworks.front(),
                                                            .framework_version = arguments.framework_version,
                                                            .folds = arguments.folds});
        for (const fit::FitReport& report : fitted.reports) print_report(report);
        profile = std::move(fitted.profile);
        if (!arguments.host_output.empty()) write_file(arguments.host_output, to_text(fitted.hosts));
    }
    if (has([](RowClass of) { return of == RowClass::tensor_gemm; }))
        add({fit::fit_tensor_gemm(rows, {.folds = arguments.folds})});
    if (has([](RowClass of) { return of >= RowClass::attention; }))
        add(fit::fit_layer_kernels(rows, profile, {.folds = false}));
    for (const fit::OperatorRow& row : rows) {  // row-wise kernels are not those of other frameworks
        if (row.of == RowClass::tensor_gemm) fit::add_fitted_kernels(profile, row.device->slug, Factor::gemm_tensor);
        if (row.of == RowClass::attention) fit::add_fitted_kernels(profile, row.device->slug, Factor::attention);
    }
    // Experts in 16 bits are scored and not fitted.
    std::erase_if(rows, [](const fit::OperatorRow& row) {
        return row.of == RowClass::mixture && !precision_spec(row.measured->precision).quantizes_weights();
    });
    add(fit::fit_on_tensor_gemm(rows, profile, {.folds = arguments.folds}));
}

int run_fit(FitArguments arguments) {
    if (arguments.output.empty() && arguments.host_output.empty())
        throw Error(ErrorCode::usage, "give --output FILE for the device's profile, --host-output FILE for the host's");
    for (std::string& framework : arguments.selection.frameworks) framework = framework_model(framework).name;
    std::vector<CsvTable> measured_here, others;
    unsigned kinds = 0;
    for (const std::string& path : arguments.files) {
        CsvTable table = read_csv(path);
        // Kernels timed alone by others, on many cards, say whose library they are.
        const bool here = (holds_modes(table) && !table.column("library")) || holds_runtime(table);
        kinds |= here ? machine : holds_operators(table) ? operators : models;
        (here ? measured_here : others).push_back(std::move(table));
    }
    if (!measured_here.empty() && !others.empty())
        throw_error(ErrorCode::usage, "{} was measured for a calibration; the other files are fitted without it",
                    escape_terminal(measured_here.front().origin()));
    refuse_unread(arguments, kinds);
    if (others.empty()) return fit_machine(std::move(measured_here), arguments);
    DeviceProfileFile profile;
    if (!arguments.start.empty()) profile = parse_device_profile(read_file(arguments.start), arguments.start);
    profile.version = arguments.version;
    std::vector<fit::ModelRow> measured;
    fit::OperatorRows operator_rows;
    for (CsvTable& table : others) {
        if (holds_operators(table)) {
            operator_rows.add(std::move(table), arguments.selection.left_out_devices);
            continue;
        }
        for (fit::ModelRow& row : model_rows(read_model_measurements(std::move(table)), arguments.selection))
            measured.push_back(std::move(row));
    }
    fit_operators(operator_rows.rows, arguments, profile);
    if (!measured.empty()) {
        const fit::ModelFitOptions options{
            .fit = {.starts = arguments.starts, .iterations = arguments.iterations, .row_log_stddev = 0.05},
            .only = arguments.only};
        const DeviceProfileFile start = profile;
        print_report(fit::fit_models(measured, start, options, profile));
    }
    if (arguments.output.empty()) return 0;
    if (profile.parameters.empty())
        throw Error(ErrorCode::usage, "no row of these files determines a parameter of a device");
    write_file(arguments.output, to_text(profile));
    return 0;
}

}  // namespace

void setup_fit(CLI::App& verb, Action& action) {
    const auto arguments = std::make_shared<FitArguments>();
    verb.add_option(
            "ROWS", arguments->files,
            "operator files first, then model files (CSV); or the files that `ftax measure` wrote on one machine")
        ->required();
    add_option(verb, "-o,--output", "FILE", arguments->output, "device profile to write");
    add_option(verb, "--host-output", "FILE", arguments->host_output,
               "host's profile to write: of a framework, from the host_dispatch rows of `ftax measure`; of single "
               "calls, from operator files");
    add_option(verb, "--start", "FILE", arguments->start, "profile to start from instead of fitting operators");
    add_option(verb, "--models", "DIR", arguments->selection.models_folder,
               "folder of model files that are not in the zoo");
    verb.add_option("--leave-out-model", arguments->selection.left_out_models, "model whose rows are not used");
    verb.add_option("--leave-out-device", arguments->selection.left_out_devices,
                    "slug of a device whose rows are not used");
    verb.add_option("--leave-out-run", arguments->selection.left_out_runs, "GPU:RUN whose rows are not used");
    verb.add_option("--framework", arguments->selection.frameworks, "frameworks whose whole-model rows are used")
        ->capture_default_str();
    verb.add_option("--framework-version", arguments->framework_version,
                    "version of the framework whose operators were timed, to write into the host's profile");
    verb.add_option("--only", arguments->only, "beginning of the names of the parameters that whole models may move");
    verb.add_option("--profile-version", arguments->version, "version to write into the profile");
    verb.add_option("--iterations", arguments->iterations, "most iterations of the whole-model fit")
        ->check(CLI::PositiveNumber);
    verb.add_option("--starts", arguments->starts, "starts of the whole-model fit")->check(CLI::PositiveNumber);
    verb.add_flag("--folds", arguments->folds, "also report errors with one device left out");
    verb.callback([arguments, &verb, &action] {
        for (const Reader& reader : readers)
            if (verb.count(std::string(reader.option)) > 0) arguments->given.push_back(reader.option);
        action = [arguments] { return run_fit(*arguments); };
    });
}

}  // namespace ftax::cli
