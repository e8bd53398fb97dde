#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "calibration/bench/bench_device.hpp"
#include "calibration/fit/machine_fit.hpp"
#include "calibration/rows/measurement_file.hpp"
#include "ftax/import.hpp"
#include "graphs/base/statistics.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/csv.hpp"
#include "graphs/files/file.hpp"
#include "predictors/host/host_costs.hpp"
#include "predictors/profiles/profile_file.hpp"
#include "src/cli/bench_session.hpp"
#include "src/cli/verbs.hpp"
#include "src/report/table.hpp"
#include "src/scenario/machine_rows.hpp"
#include "src/scenario/scenario.hpp"
#include "src/scenario/usable_rows.hpp"

namespace ftax::cli {
using namespace scenario;
namespace {

/// Load at which other processes slow the measurement through caches and clocks, even in CPU time.
constexpr double busy_load = 1.5;

/// A calibration is rejected if its error on networks exceeds that of the datasheet and this value.
constexpr double largest_blind_error = 0.15;

/// Networks that validate a calibration and are not used in the fit: CNNs and transformers, large and small.
const std::vector<std::string> proof_models{"resnet18", "resnet50", "mobilenet_v2", "squeezenet", "bert", "distilbert"};
const std::vector<std::int64_t> proof_batches{1, 2, 4, 8}, quick_batches{1, 4};  ///< quick: on a CPU, with --quick
/// Networks used in a GPU's fit in addition to single operators: only they call modules and read results of preceding
/// kernels. Unrelated to the networks above.
const std::vector<std::string> fitted_models{"vit32", "densenet", "googlenet", "shufflenet", "alexnet"};
const std::vector<std::int64_t> fitted_batches{1, 8};
const std::vector<bench::Mode> fitted_modes{bench::Mode::host_dispatch, bench::Mode::device_hot};
const ShapeBindings proof_dims{{"seq", 128}};
const char* const fitted_file = "fitted_models.csv";
const std::vector<bench::Mode> proof_modes{bench::Mode::end_to_end};

/// Keeps the fastest repetition of each operator: disturbances on a CPU only increase times.
std::vector<fit::CpuRow> cpu_rows(const std::string& path, const DeviceSpec& device, const std::string& framework) {
    std::map<std::pair<std::string, std::map<std::string, std::int64_t>>, double> fastest;
    for (const OperatorMeasurement& row : usable_rows(read_operator_measurements(read_csv(path)), print_warnings)) {
        const auto [at, added] = fastest.try_emplace({row.op, row.shape}, row.latency_s);
        if (!added) at->second = std::min(at->second, row.latency_s);
    }
    std::vector<fit::CpuRow> rows;
    for (const auto& [key, seconds] : fastest) {
        fit::CpuRow row = fit::cpu_row(bench::operator_graph({key.first, key.second}), device, framework);
        row.group = key.first;
        row.latency_s = seconds;
        rows.push_back(std::move(row));
    }
    return rows;
}

struct Proof {
    std::string table;
    double mape = 0, blind_mape = 0;
    double spread = 0;  ///< 95 % quantile of the deviations, relative to the 90 % interval's half-width
};

/// Predicts each measured network from its graph, also with the `blind` profiles if given, and tabulates the results.
Proof prove(const Scenario& calibrated, const Scenario* blind, const std::string& path) {
    using report::Align;
    const auto percent = [](double error) { return fmt::format("{:+.1f} %", 100 * error); };
    std::vector<report::Table::Column> columns{{"model", Align::left}, {"batch"}, {"measured"}};
    if (blind) columns.insert(columns.end(), {{"blind"}, {"error"}});
    columns.insert(columns.end(), {{blind ? "calibrated" : "predicted"}, {"error"}, {"host"}, {"bound", Align::left}});
    report::Table table(std::move(columns));
    Proof proof;
    std::vector<double> distances;
    const std::vector<Measurement> measured = usable_rows(read_model_measurements(read_csv(path)), print_warnings);
    for (const std::string& model : proof_models) {
        const Graph graph = ftax::load_graph(model);
        Predictor predictor(graph, calibrated.device, calibrated.framework, calibrated.options);
        std::optional<Predictor> blind_predictor;
        if (blind) blind_predictor.emplace(graph, blind->device, blind->framework, blind->options);
        for (const std::int64_t batch : proof_batches) {
            ShapeBindings bindings{{"batch", batch}};
            std::vector<double> repetitions;
            for (const Measurement& row : measured) {
                if (row.model != model || row.batch != batch) continue;
                if (row.seq) bindings["seq"] = *row.seq;
                repetitions.push_back(row.latency_s);
            }
            if (repetitions.empty()) continue;
            const double measured_s = median(undisturbed(std::move(repetitions)));
            std::vector<report::Cell> cells{{model, report::Tone::strong},
                                            {fmt::format("{}", batch)},
                                            {fmt::format("{:.2f} ms", measured_s * 1e3)}};
            const auto add = [&](Predictor& by, double& errors) {
                Prediction p = by.predict(bindings);
                const double error = p.latency_s / measured_s - 1;
                errors += std::abs(error);
                cells.push_back({fmt::format("{:.2f} ms", p.latency_s * 1e3)});
                cells.push_back({percent(error)});
                return p;
            };
            if (blind) add(*blind_predictor, proof.blind_mape);
            const Prediction p = add(predictor, proof.mape);
            const double end_s = measured_s > p.latency_s ? p.high_s : p.low_s;
            distances.push_back(std::log(measured_s / p.latency_s) / std::log(end_s / p.latency_s));
            cells.push_back({fmt::format("{:.2f} ms", p.host_s * 1e3)});
            cells.push_back({std::string(name_of(p.bound))});
            table.add(std::move(cells));
        }
    }
    const auto count = static_cast<double>(distances.size());
    if (distances.empty()) throw_error(ErrorCode::usage, "{}: no network could be measured", path);
    proof.mape /= count;
    proof.blind_mape /= count;
    proof.spread = quantile(distances, 0.95);
    proof.table = table.print(report::standard_output_style());
    return proof;
}

/// Violated assumptions of a fit show up in networks before they do in its own errors.
void widen(FrameworkProfile& profile, double by) {
    for (const char* name : {"noise.host", "noise.device"}) {
        const double value = std::min(1.0, by * host_parameter(profile, name));
        set_parameter(profile.parameters, {name, value, 0.5, "widened to cover the networks not used in the fit"});
    }
}

std::string fit_table(const fit::FitReport& fitted) {
    using report::Align;
    std::vector<fit::ErrorSummary> errors = fitted.folds.front().groups;
    errors.push_back(fitted.folds.front().all);
    report::Table table({{"operators", Align::left}, {"rows"}, {"MAPE"}, {"median"}, {"P90"}, {"bias"}});
    const auto percent = [](double error) { return report::Cell{fmt::format("{:.1f} %", 100 * error)}; };
    for (const fit::ErrorSummary& e : errors)
        table.add({{e.group, report::Tone::strong},
                   {fmt::format("{}", e.rows)},
                   percent(e.mean),
                   percent(e.median),
                   percent(e.p90),
                   {fmt::format("{:+.1f} %", 100 * std::expm1(e.bias))}});
    return table.print(report::standard_output_style());
}

void write_profiles(const BenchSession& session, const fit::CpuFit& fit) {
    DeviceProfileFile device{"1", {fit.device.device.slug}, {}};
    for (const Parameter& p : fit.device.parameters)
        device.parameters.push_back({p, ParameterScope::device, fit.device.device.slug});
    write_file(session.path("device.json"), bench::datasheet_text(fit.device.device));
    write_file(session.path("profile.json"), to_text(device));
    write_file(session.path("framework.json"), to_text(fit.framework));
}

/// Reports the load of the machine, which is measured even if others use it.
std::string load_text(double before, double after) {
    return fmt::format("load average {:.1f} before, {:.1f} after{}", before, after,
                       std::max(before, after) > busy_load ? ": others used this machine, its caches and clocks" : "");
}

int calibrate_cpu(const CalibrateArguments& arguments, BenchSession& session) {
    const double load_before = bench::load_average();
    if (!session.measure_operators(bench::cpu_operators(arguments.bench.quick), bench::Mode::device_hot))
        return interrupted;
    const fit::CpuFit fit =
        fit::fit_cpu(cpu_rows(session.path("operators.csv"), session.spec(), arguments.bench.framework), session.spec(),
                     arguments.bench.framework, {});
    write_profiles(session, fit);
    const auto& batches = arguments.bench.quick ? quick_batches : proof_batches;
    if (!session.measure_models(proof_models, batches, proof_dims, proof_modes)) return interrupted;
    const Proof proof = prove({fit.device, fit.framework, {}}, nullptr, session.path("models.csv"));
    write_standard_output(
        fmt::format("{} under {}, {} thread{}; {}\n\n{}{}\n{}\nMAPE over networks not used in the fit: {:.1f} %\n\n"
                    "ftax predict MODEL --device {} --profile {} --framework {} --framework-profile {} --batch 1\n",
                    session.spec().name, arguments.bench.framework, arguments.bench.threads,
                    arguments.bench.threads == 1 ? "" : "s", load_text(load_before, bench::load_average()),
                    fit_table(fit.report), fit.report.converged ? "" : "the fit did not converge\n", proof.table,
                    100 * proof.mape, session.path("device.json"), session.path("profile.json"),
                    arguments.bench.framework, session.path("framework.json")));
    return gate(100 * proof.mape, arguments.max_mape_percent);
}

int calibrate_gpu(const CalibrateArguments& arguments, BenchSession& session) {
    const std::string& framework = arguments.bench.framework;
    fmt::print(notices(),
               "{} under {}, {}: operators, their dispatch and {} networks to fit, {} to validate, in five minutes or "
               "less; then a fit.\nRows are first written to {}; --resume continues from them.\n",
               session.spec().name, framework, arguments.bench.precision, fitted_models.size(), proof_models.size(),
               arguments.bench.output);
    session.measure_runtime();
    if (!session.measure_operators(bench::dispatch_operators(), bench::Mode::host_dispatch) ||
        !session.measure_models(proof_models, proof_batches, proof_dims, proof_modes) ||
        !session.measure_models(fitted_models, fitted_batches, proof_dims, fitted_modes, fitted_file) ||
        !session.measure_operators(bench::gpu_operators(session.spec().sms), bench::Mode::device_hot))
        return interrupted;
    std::vector<CsvTable> tables;
    for (const char* file : {"operators.csv", "dispatch.csv", fitted_file, "runtime.csv"})
        if (std::filesystem::exists(session.path(file))) tables.push_back(read_csv(session.path(file)));
    MachineRows rows = machine_rows(std::move(tables), {}, print_warnings);
    const RunArguments run{.device = session.spec().slug, .framework = framework, .options = {.synchronized = true}};
    const Scenario blind = resolve(run, parse_precision(arguments.bench.precision));
    const fit::GpuFit gpu = fit::fit_gpu(rows.device_rows, session.spec(), embedded_device_profile());
    fit::HostFit host =
        fit::fit_machine_host(rows.host_rows[framework], blind.framework, bench::cpu_name(), rows.runtime);
    const auto proved = [&] {
        return prove({compose(gpu.profile, session.spec()), host.profile, blind.options}, &blind,
                     session.path("models.csv"));
    };
    Proof proof = proved();
    constexpr double worse = 1.2;  // significantly worse than before
    if (proof.mape > worse * proof.blind_mape && proof.mape > largest_blind_error)
        throw_error(ErrorCode::refused,
                    "error on networks not used in the fit: {:.0f} % with the calibration, {:.0f} % with the "
                    "datasheet: no profile is written; {} keeps the rows",
                    100 * proof.mape, 100 * proof.blind_mape, arguments.bench.output);
    const bool strays = proof.spread > 1;
    for (int i = 0; i < 8 && proof.spread > 1; ++i) {  // other components of the interval are unchanged
        widen(host.profile, 1.02 * proof.spread);
        proof = proved();
    }
    write_file(session.path("profile.json"), to_text(gpu.profile));
    write_file(session.path("framework.json"), to_text(host.profile));
    write_standard_output(
        fmt::format("{} under {}, {}\n\nDevice time; {:.1f} % on operators left out\n{}\nHost time; {:.1f} % on "
                    "operators left out\n{}{}\n{}\n"
                    "MAPE over networks not used in the fit: {:.1f} %, before calibration {:.1f} %{}\n\n"
                    "ftax predict MODEL --device {} --profile {} --framework {} --framework-profile {} --batch 1\n",
                    session.spec().name, framework, arguments.bench.precision, 100 * left_out_errors(gpu.report).mean,
                    fit_table(gpu.report), 100 * left_out_errors(host.report).mean, fit_table(host.report),
                    gpu.report.converged && host.report.converged ? "" : "a fit did not converge\n", proof.table,
                    100 * proof.mape, 100 * proof.blind_mape, strays ? "; intervals widened for it" : "",
                    session.spec().slug, session.path("profile.json"), framework, session.path("framework.json")));
    return gate(100 * proof.mape, arguments.max_mape_percent);
}

int run_calibrate(const CalibrateArguments& arguments) {
    BenchSession session(arguments.bench);
    return calibrate(arguments, session);
}

}  // namespace

int calibrate(const CalibrateArguments& arguments, BenchSession& session) {
    return arguments.bench.device == "cpu" ? calibrate_cpu(arguments, session) : calibrate_gpu(arguments, session);
}

void setup_calibrate(CLI::App& verb, Action& action) {
    CalibrateArguments& arguments = run_with(verb, action, run_calibrate);
    add_bench_options(verb, arguments.bench);
    verb.add_option("--max-mape", arguments.max_mape_percent,
                    "exit with 1 if the validation error is larger (percent)");
}

}  // namespace ftax::cli
