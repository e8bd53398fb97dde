#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "calibration/fit/model_fit.hpp"
#include "calibration/fit/operator_fit.hpp"
#include "ftax/error.hpp"
#include "predictors/framework_model.hpp"
#include "predictors/kernel_list.hpp"
#include "src/cli/row_predictor.hpp"
#include "src/cli/verbs.hpp"
#include "src/io/csv.hpp"
#include "src/io/escape.hpp"
#include "src/io/file.hpp"
#include "src/io/measurement_file.hpp"
#include "src/io/number.hpp"
#include "src/io/profile_file.hpp"

namespace ftax::cli {
namespace {

struct FitArguments {
    std::vector<std::string> files;
    std::string output;
    std::string start;
    std::string models_folder;
    std::vector<std::string> left_out_models;
    std::vector<std::string> left_out_devices;
    std::vector<std::string> left_out_runs;
    std::vector<std::string> frameworks{"pytorch-eager"};
    std::string only;
    std::string version = "1";
    int starts = 1;
    int iterations = 30;
    bool folds = false;
};

/// Datasheets by any spelling, at addresses that stay.
class Devices {
  public:
    const DeviceSpec& find(const std::string& name) {
        const auto found = by_name_.find(name);
        return found != by_name_.end() ? found->second : by_name_.emplace(name, device_spec(name)).first->second;
    }

  private:
    std::map<std::string, DeviceSpec> by_name_;
};

bool holds(const std::vector<std::string>& list, std::string_view value) {
    return std::find(list.begin(), list.end(), value) != list.end();
}

void print_report(const fit::FitReport& report) {
    if (report.folds.empty()) return;
    fmt::print(stderr, "{}: {} parameters{}\n", report.kernel_class, report.parameters.size(),
               report.converged ? "" : ", not converged");
    for (const fit::Fold& fold : report.folds) {
        fmt::print(stderr, "  {}: MAPE {:.1f} %\n", fold.name, 100 * fold.mean);
        for (const fit::ErrorSummary& g : fold.groups) {
            fmt::print(stderr, "    {:<28} n {:>6}  mean {:5.1f}  median {:5.1f}  P90 {:5.1f}  bias {:+5.1f} %\n", g.group,
                       g.rows, 100 * g.mean, 100 * g.median, 100 * g.p90, 100 * g.bias);
        }
    }
}

/// Points of whole-model latency curves that the device decides, with the kernels they launch.
std::vector<fit::ModelRow> model_rows(const MeasurementFile<Measurement>& file, const FitArguments& arguments, Devices& devices) {
    using Curve = std::tuple<std::string, std::string, std::string, std::string, Precision, std::string, std::int64_t>;
    std::map<Curve, std::map<double, std::vector<const Measurement*>>> curves;
    for (std::size_t i = 0; i < file.rows.size(); ++i) {
        const Measurement& row = file.rows[i];
        if (!file.problems[i].empty() || !holds(arguments.frameworks, row.framework) || row.mode == "train" || !row.option.empty()) continue;
        if (holds(arguments.left_out_models, row.model) || holds(arguments.left_out_runs, row.gpu + ":" + row.run)) continue;
        if (holds(arguments.left_out_devices, devices.find(row.gpu).slug)) continue;
        const std::int64_t size = row.input.value_or(row.seq.value_or(0));
        curves[{row.gpu, row.framework, row.model, row.run, row.precision, row.layout, size}][static_cast<double>(row.batch)]
            .push_back(&row);
    }
    std::vector<fit::ModelRow> rows;
    RowPredictor graphs(arguments.models_folder);
    std::set<std::string> missing;
    for (const auto& [key, curve] : curves) {
        std::vector<double> batches;
        std::vector<double> latency_s;
        for (const auto& [batch, measured] : curve) {
            std::vector<double> replicates;
            for (const Measurement* row : measured) replicates.push_back(row->latency_s);
            std::nth_element(replicates.begin(), replicates.begin() + static_cast<std::ptrdiff_t>(replicates.size() / 2), replicates.end());
            batches.push_back(batch);
            latency_s.push_back(replicates[replicates.size() / 2]);
        }
        std::vector<bool> device_bound = fit::compute_bound_points(batches, latency_s);
        const bool alone = batches.size() == 1;
        if (alone) device_bound[0] = true;
        for (std::size_t i = 0; i < batches.size(); ++i) {
            if (!device_bound[i]) continue;
            const Measurement& row = *curve.at(batches[i]).front();
            try {
                const DeviceSpec& device = devices.find(row.gpu);
                std::vector<CountedKernel> kernels = graphs.kernels(row);
                if (alone && latency_s[i] < fit::dispatch_bound_s(kernels)) continue;
                rows.push_back({&device, std::move(kernels), latency_s[i], row.model,
                                fmt::format("{} {} {}", device.slug, row.framework, name_of(row.precision))});
            } catch (const Error& error) {
                if (missing.insert(row.model).second) fmt::print(stderr, "warning: {}: {}\n", escape_terminal(row.model), error.what());
                break;
            }
        }
    }
    return rows;
}

int run_fit(const FitArguments& arguments) {
    Devices devices;
    DeviceProfileFile profile;
    profile.version = arguments.version;
    if (!arguments.start.empty()) profile = parse_device_profile(read_file(arguments.start), arguments.start);
    std::vector<fit::ModelRow> models;
    for (const std::string& path : arguments.files) {
        CsvTable table = read_csv(path);
        if (holds_operators(table)) {
            fit::OperatorFit fitted = fit::fit_operators(fit::operator_rows(std::move(table), arguments.left_out_devices),
                                                         arguments.version, arguments.folds);
            for (const fit::FitReport& report : fitted.reports) print_report(report);
            profile = std::move(fitted.profile);
        } else {
            for (fit::ModelRow& row : model_rows(read_model_measurements(std::move(table)), arguments, devices)) {
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
    verb->add_option("ROWS", arguments->files, "operator files first, then model files (CSV)")->required();
    verb->add_option("-o,--output", arguments->output, "profile to write")->required();
    verb->add_option("--start", arguments->start, "profile to start from instead of fitting operators");
    verb->add_option("--models", arguments->models_folder, "folder of model files that are not in the zoo");
    verb->add_option("--leave-out-model", arguments->left_out_models, "model whose rows are not used");
    verb->add_option("--leave-out-device", arguments->left_out_devices, "slug of a device whose rows are not used");
    verb->add_option("--leave-out-run", arguments->left_out_runs, "GPU:RUN whose rows are not used");
    verb->add_option("--framework", arguments->frameworks, "frameworks whose whole-model rows are used")
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
