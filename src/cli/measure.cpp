#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "ftax/error.hpp"
#include "ftax/text_graph.hpp"
#include "src/cli/bench_session.hpp"
#include "src/cli/verbs.hpp"
#include "src/scenario/cpu.hpp"

namespace ftax::cli {
using namespace scenario;
namespace {

struct MeasureArguments {
    BenchArguments bench;
    bool list = false;
    std::vector<std::string> models;
    std::string batches = "1";
    std::vector<std::string> dims;
    OutputArguments output;
};

/// `sms`: multiprocessors of the GPU; 0 without a GPU.
std::vector<bench::OperatorCase> operators_for(const BenchArguments& arguments, bench::Mode mode, int sms) {
    if (mode == bench::Mode::host_dispatch) return bench::dispatch_operators();
    return arguments.device == "cpu" ? bench::cpu_operators(arguments.quick) : bench::gpu_operators(sms);
}

int list_operators(const BenchArguments& arguments, bench::Mode mode) {
    constexpr int hopper_sms = 132;  // H100 and H200; the list contains their wave boundaries
    std::string text;
    for (const bench::OperatorCase& c : operators_for(arguments, mode, hopper_sms)) {
        const nlohmann::ordered_json line{
            {"op", c.op}, {"shape", bench::shape_text(c)}, {"graph", to_text(bench::operator_graph(c))}};
        text += line.dump() + "\n";
    }
    write_standard_output(text);
    return 0;
}

template <bench::Mode mode>
int measure_kernels(const MeasureArguments& arguments) {
    if (arguments.list) return list_operators(arguments.bench, mode);
    BenchArguments bench = arguments.bench;
    if (bench.quick) bench.dispatch_processes = bench.device == "cpu" ? 1 : 3;  // a CPU: a dry run
    BenchSession session(bench);
    session.measure_runtime();
    return session.measure_operators(operators_for(bench, mode, session.spec().sms), mode) ? 0 : interrupted;
}

int measure_models(const MeasureArguments& arguments) {
    const ShapeBindings dims = parse_dimensions(arguments.dims);
    const std::vector<std::int64_t> batches = parse_batches(arguments.batches);
    // A CPU executes synchronously: its host and device time are the same.
    std::vector<bench::Mode> modes{bench::Mode::end_to_end};
    if (arguments.bench.device != "cpu")
        modes.insert(modes.end(), {bench::Mode::host_dispatch, bench::Mode::device_hot});
    BenchSession session(arguments.bench);
    return session.measure_models(arguments.models, batches, dims, modes) ? 0 : interrupted;
}

int measure_host(const MeasureArguments& arguments) {
    bench::Environment environment = bench::machine_environment(3);
    try {
        for (auto& fact : bench::open_python({.python = arguments.bench.python})->environment())
            environment.push_back(std::move(fact));
    } catch (const Error& error) {
        environment.emplace_back("torch", fmt::format("not measured: {}", error.what()));
    }
    const auto known = find_cpu(bench::cpu_name());
    environment.emplace_back("cpu_score", known ? fmt::format("{}", known->score) : "unknown: not in data/cpus.csv");
    environment.emplace_back("ftax", FTAX_VERSION);
    using Fact = bench::Environment::value_type;
    const report::Columns<Fact> columns{{"fact", "this host", report::Unit::text, &Fact::first},
                                        {"value", "", report::Unit::text, &Fact::second}};
    return write_result(arguments.output,
                        {.table = [&](auto style) { return columns.select(environment).print(style); },
                         .json = [&] { return bench::environment_text(environment); }});
}

}  // namespace

void setup_measure(CLI::App& verb, Action& action) {
    verb.require_subcommand(1);
    const auto arguments = std::make_shared<MeasureArguments>();

    CLI::App& kernels = add_part(verb, action, arguments, "kernels", "device time of a designed set of operators",
                                 measure_kernels<bench::Mode::device_hot>);
    CLI::App& dispatch = add_part(verb, action, arguments, "dispatch", "host time of asynchronous calls, by operator",
                                  measure_kernels<bench::Mode::host_dispatch>);
    add_bench_options(kernels, arguments->bench);
    for (CLI::App* operators : {&kernels, &dispatch})
        operators->add_flag("--list", arguments->list, "print the operators as JSON lines instead of measuring them");
    add_bench_options(dispatch, arguments->bench);

    CLI::App& model = add_part(verb, action, arguments, "model",
                               "whole networks, end to end; on a GPU also host and device time", measure_models);
    model.add_option("MODEL", arguments->models, "zoo names or files (.onnx .pt2 .txt)")->required();
    model.add_option("--batch", arguments->batches, "batch sizes: 1,2,4:128:x2")->capture_default_str();
    model.add_option("--dim", arguments->dims, "value of a dynamic dimension, e.g. seq=128");
    model.add_flag("--channels-last", arguments->bench.channels_last, "run convolutions on NHWC activations");
    add_bench_options(model, arguments->bench);

    CLI::App& host = add_part(verb, action, arguments, "host",
                              "time small operators on the CPU (three seconds, no GPU)", measure_host);
    host.add_option("--python", arguments->bench.python, "Python with PyTorch (else python3)")->envname("FTAX_PYTHON");
    add_option(host, "-o,--output", "FILE", arguments->output.json, "file for --host-file, or - for standard output");
}

}  // namespace ftax::cli
