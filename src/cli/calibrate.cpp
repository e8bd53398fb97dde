#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "calibration/bench/cpu_spec.hpp"
#include "calibration/bench/stopping_rule.hpp"
#include "calibration/fit/cpu_fit.hpp"
#include "ftax/error.hpp"
#include "ftax/import.hpp"
#include "src/cli/bench_session.hpp"
#include "src/cli/output.hpp"
#include "src/cli/scenario.hpp"
#include "src/cli/usable_rows.hpp"
#include "src/cli/verbs.hpp"
#include "src/io/csv.hpp"
#include "src/io/file.hpp"
#include "src/io/measurement_file.hpp"
#include "src/io/profile_file.hpp"
#include "src/report/table.hpp"

namespace ftax::cli {
namespace {

struct CalibrateArguments {
    BenchArguments bench;
    double max_mape_percent = 0;
};

constexpr int over_max_mape = 1;
constexpr int interrupted = 1;

/// Networks a calibration is proved on; none of them is fitted on. Source: issue "Calibrate the machine you are on".
const std::vector<std::string> proof_models{"resnet18", "resnet50", "mobilenet_v2", "squeezenet", "bert", "distilbert"};
const std::vector<std::int64_t> proof_batches{1, 2, 4, 8};
const ShapeBindings proof_dims{{"seq", 128}};

/// Of the repetitions of one operator the fastest counts: what disturbs a CPU only ever lengthens.
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
    double mape = 0;
};

/// Predicts each measured network from its graph and sets both side by side.
Proof prove(const fit::CpuFit& fit, const std::string& path) {
    using report::Align;
    report::Table table({{"model", Align::left}, {"batch"}, {"measured"}, {"predicted"}, {"error"}, {"host"}, {"bound", Align::left}});
    Proof proof;
    double errors = 0;
    std::size_t count = 0;
    const std::vector<Measurement> measured = usable_rows(read_model_measurements(read_csv(path)), print_warnings);
    for (const std::string& model : proof_models) {
        const Graph graph = ftax::load_graph(model);
        Predictor predictor(graph, fit.device, fit.framework);
        for (const std::int64_t batch : proof_batches) {
            for (const Measurement& row : measured) {
                if (row.model != model || row.batch != batch) continue;
                ShapeBindings bindings{{"batch", batch}};
                if (row.seq) bindings["seq"] = *row.seq;
                const Prediction p = predictor.predict(bindings);
                const double error = p.latency_s / row.latency_s - 1;
                errors += std::abs(error);
                ++count;
                table.add({{model, report::Tone::strong},
                           {fmt::format("{}", batch)},
                           {fmt::format("{:.2f} ms", row.latency_s * 1e3)},
                           {fmt::format("{:.2f} ms", p.latency_s * 1e3)},
                           {fmt::format("{:+.1f} %", 100 * error)},
                           {fmt::format("{:.2f} ms", p.host_s * 1e3)},
                           {std::string(name_of(p.bound))}});
            }
        }
    }
    if (count == 0) throw Error(ErrorCode::usage, fmt::format("{}: no network could be measured", path));
    proof.mape = errors / static_cast<double>(count);
    proof.table = table.print(report::standard_output_style());
    return proof;
}

std::string fit_table(const fit::CpuFit& fit) {
    using report::Align;
    report::Table table({{"operators", Align::left}, {"rows"}, {"MAPE"}, {"median"}, {"P90"}, {"bias"}});
    for (const fit::ErrorSummary& e : fit.errors) {
        table.add({{e.group, report::Tone::strong},
                   {fmt::format("{}", e.rows)},
                   {fmt::format("{:.1f} %", 100 * e.mean)},
                   {fmt::format("{:.1f} %", 100 * e.median)},
                   {fmt::format("{:.1f} %", 100 * e.p90)},
                   {fmt::format("{:+.1f} %", 100 * e.bias)}});
    }
    return table.print(report::standard_output_style());
}

void write_profiles(const BenchSession& session, const fit::CpuFit& fit) {
    DeviceProfileFile device{"1", {fit.device.device.slug}, {}};
    for (const Parameter& p : fit.device.parameters) {
        device.parameters.push_back({p, ParameterScope::device, fit.device.device.slug});
    }
    write_file(session.path("device.json"), bench::datasheet_text(fit.device.device));
    write_file(session.path("profile.json"), to_text(device));
    write_file(session.path("framework.json"), to_text(fit.framework));
}

int calibrate_cpu(const CalibrateArguments& arguments) {
    BenchSession session(arguments.bench);
    if (!session.measure_operators(bench::cpu_operators(arguments.bench.quick), bench::Mode::device_hot)) return interrupted;
    const fit::CpuFit fit =
        fit::fit_cpu(cpu_rows(session.path("operators.csv"), session.spec(), arguments.bench.framework), session.spec(),
                     arguments.bench.framework, {});
    write_profiles(session, fit);
    if (!session.measure_models(proof_models, proof_batches, proof_dims)) return interrupted;
    const Proof proof = prove(fit, session.path("models.csv"));
    write_standard_output(fmt::format(
        "{} under {}, {} thread{}\n\n{}{}\n{}\nMAPE over networks that were not fitted: {:.1f} %\n\n"
        "ftax predict MODEL --device {} --profile {} --framework {} --framework-profile {} --batch 1\n",
        session.spec().name, arguments.bench.framework, arguments.bench.threads, arguments.bench.threads == 1 ? "" : "s",
        fit_table(fit), fit.summary.converged ? "" : "the fit did not converge\n", proof.table, 100 * proof.mape,
        session.path("device.json"), session.path("profile.json"), arguments.bench.framework, session.path("framework.json")));
    return arguments.max_mape_percent > 0 && 100 * proof.mape > arguments.max_mape_percent ? over_max_mape : 0;
}

}  // namespace

void setup_calibrate(CLI::App& app, Action& action) {
    CLI::App* verb = app.add_subcommand("calibrate", "measure this machine, fit its profiles, prove them on networks");
    const auto arguments = std::make_shared<CalibrateArguments>();
    add_bench_options(*verb, arguments->bench);
    verb->add_option("--max-mape", arguments->max_mape_percent, "exit with 1 when the error of the proof is larger (percent)");
    verb->callback([arguments, &action] { action = [arguments] { return calibrate_cpu(*arguments); }; });
}

}  // namespace ftax::cli
