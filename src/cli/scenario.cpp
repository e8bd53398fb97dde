#include "src/cli/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "ftax/error.hpp"
#include "src/cli/arguments.hpp"
#include "src/cli/output.hpp"
#include "src/cli/row_predictor.hpp"
#include "src/cli/usable_rows.hpp"
#include "src/io/escape.hpp"

namespace ftax::cli {
namespace {

/// --strict: what a profile warns of is that it is not one of this GPU, framework or host.
void refuse(const std::vector<std::string>& mismatches) {
    if (!mismatches.empty()) throw Error(ErrorCode::profile, fmt::format("{} (--strict)", fmt::join(mismatches, "; ")));
}

}  // namespace

void add_model_options(CLI::App& verb, ModelArguments& arguments) {
    verb.add_option("MODEL", arguments.model, "a file (.onnx .pt2 .pt .txt) or a zoo name (bert, resnet50)")
        ->required();
    add_import_options(verb, arguments);
}

void add_import_options(CLI::App& verb, ModelArguments& arguments) {
    // One value each time, so that MODEL may stand behind.
    const auto repeatable = [&](const char* name, std::vector<std::string>& values, const char* description) {
        return verb.add_option(name, values, description)->allow_extra_args(false);
    };
    repeatable("--dim", arguments.dims, "value of a dynamic dimension, e.g. seq=128")->type_name("NAME=N");
    repeatable("--shapes", arguments.shapes, "shape of an input, e.g. in:4x3x224x224")->type_name("INPUT:DIMS");
    verb.add_option("--input", arguments.inputs,
                    "types and shapes of all inputs, in order: float:batchx3x224x224,long:4x128")
        ->type_name("TYPE:DIMS,...");
    repeatable("--trip", arguments.trips, "trip count of a loop")->type_name("LOOP=N");
    repeatable("--branch", arguments.branches, "branch of an If whose condition depends on data")
        ->type_name("IF=then|else");
    verb.add_option("--unsupported", arguments.unsupported, "operators without a rule: memory-bound or error")
        ->check(CLI::IsMember({"memory-bound", "error"}))
        ->capture_default_str();
    verb.add_flag("--strict", arguments.strict,
                  "refuse models of unknown versions, and profiles of another GPU, framework or host");
    verb.add_option("--max-bytes", arguments.limits.max_bytes, "largest model file, in bytes")->capture_default_str();
    verb.add_option("--max-nodes", arguments.limits.max_nodes, "most operators of a model")->capture_default_str();
}

void add_run_options(CLI::App& verb, RunArguments& arguments) {
    verb.add_option("--device", arguments.device, "GPU (ftax devices lists them) or the file of a datasheet")
        ->required();
    verb.add_option("--framework", arguments.framework, "framework (ftax frameworks lists them)")
        ->capture_default_str();
    verb.add_option("--precision", arguments.precision, "fp32, tf32, fp16, bf16 or amp")->capture_default_str();
    verb.add_option("--host", arguments.host, "host CPU that the framework was calibrated on");
    verb.add_option("--anchor", arguments.anchor, "measured rows that calibrate the host (CSV)")->type_name("ROWS.csv");
    verb.add_option("--profile", arguments.device_profile, "fitted device parameters instead of the built-in ones")
        ->type_name("FILE");
    verb.add_option("--framework-profile", arguments.framework_profile, "host costs instead of the built-in ones")
        ->type_name("FILE");
    verb.add_flag("--channels-last", arguments.options.channels_last, "convolutions get NHWC activations");
    verb.add_flag("--cudnn9", arguments.options.cudnn9, "convolutions of cuDNN 9 (PyTorch from 2.4 on)");
    verb.add_flag("--synchronized", arguments.options.synchronized,
                  "each run waits for the one before, as single requests do (else back to back, as benchmarks run)");
    verb.add_option("--padding", arguments.options.padding,
                    "share of padded tokens, which frameworks with nested tensors skip")
        ->check(CLI::Range(0.0, 1.0));
}

void add_batch_option(CLI::App& verb, std::string& batches) {
    verb.add_option("--batch", batches, "batch sizes: 1,2,4:128:x2,200:400:+50")->type_name("LIST");
}

Graph load_graph(const ModelArguments& arguments) {
    ImportOptions options = arguments.limits;
    for (const std::string& shape : arguments.shapes) options.input_shapes.push_back(parse_input_shape(shape));
    if (!arguments.inputs.empty()) {
        for (const std::string& input : split_list(arguments.inputs))
            options.input_shapes.push_back(parse_input_type(input));
    }
    ShapeBindings trips;
    for (const std::string& trip : arguments.trips) parse_dimension(trip, trips);
    options.trip_counts.insert(trips.begin(), trips.end());
    for (const std::string& branch : arguments.branches) options.branches.insert(parse_branch(branch));
    options.strict = arguments.strict;
    options.unsupported_is_error = arguments.unsupported == "error";
    Graph graph = ftax::load_graph(arguments.model, options);
    print_warnings(graph.warnings);
    return graph;
}

ShapeBindings dimension_bindings(const ModelArguments& arguments) {
    ShapeBindings bindings;
    for (const std::string& dim : arguments.dims) parse_dimension(dim, bindings);
    return bindings;
}

bool has_batch(const Graph& graph) {
    const std::vector<std::string>& symbols = graph.expressions.symbols();
    return std::find(symbols.begin(), symbols.end(), "batch") != symbols.end();
}

std::vector<std::optional<std::int64_t>> batches_for(const Graph& graph, const std::string& list) {
    const bool dynamic = has_batch(graph);
    if (!dynamic && !list.empty()) {
        throw Error(ErrorCode::usage,
                    fmt::format("the batch of {} is fixed; give its inputs a dynamic one with --shapes "
                                "INPUT:batchx3x224x224, or leave --batch out",
                                graph.name));
    }
    if (!dynamic) return {std::nullopt};
    if (list.empty()) {
        throw Error(ErrorCode::usage, fmt::format("the batch of {} is dynamic: give --batch N", graph.name));
    }
    const std::vector<std::int64_t> batches = parse_batches(list);
    return {batches.begin(), batches.end()};
}

std::optional<std::int64_t> one_batch_for(const Graph& graph, const std::string& list, std::string_view what) {
    const auto batches = batches_for(graph, list);
    if (batches.size() > 1) throw Error(ErrorCode::usage, fmt::format("{} one batch size: give one --batch", what));
    return batches.front();
}

ShapeBindings with_batch(ShapeBindings dims, std::optional<std::int64_t> batch) {
    if (batch) dims["batch"] = *batch;
    return dims;
}

Precision parse_precision(const std::string& name) {
    const auto precision = precision_from_name(name);
    if (!precision) {
        throw Error(ErrorCode::usage,
                    fmt::format("no precision is called '{}'; there are: fp32, tf32, fp16, bf16, amp", name));
    }
    return *precision;
}

Predictor make_predictor(const Graph& graph, const RunArguments& arguments, bool strict) {
    PredictOptions options = arguments.options;
    options.precision = parse_precision(arguments.precision);
    DeviceProfile device = device_profile(arguments.device, arguments.device_profile);
    FrameworkProfile framework =
        framework_profile(framework_name(arguments.framework), arguments.host, arguments.framework_profile);
    if (strict) {
        refuse(device.warnings);
        refuse(framework.warnings);
    }
    if (!arguments.anchor.empty()) {
        const auto rows = usable_rows(read_model_measurements(read_csv(arguments.anchor)), print_warnings);
        framework = anchored_on(std::move(framework), device.device.slug, rows);
    }
    Predictor predictor(graph, std::move(device), std::move(framework), options);
    print_warnings(predictor.device().warnings);
    print_warnings(predictor.framework().warnings);
    return predictor;
}

report::PredictionReport report_on(const Predictor& predictor, const ModelArguments& model, const RunArguments& run) {
    return {.model = model.model,
            .device = predictor.device(),
            .framework = predictor.framework(),
            .precision = parse_precision(run.precision),
            .dims = dimension_bindings(model),
            .rows = {},
            .crossover = {}};
}

report::CrossoverReport crossover_report(Predictor& predictor, const ShapeBindings& dims) {
    constexpr std::int64_t largest = 4096;
    report::CrossoverReport report{.crossover = find_crossover(predictor, dims, largest), .largest = largest};
    if (!report.crossover) report.bound = predictor.predict(with_batch(dims, 1)).bound;
    return report;
}

void print_warnings(const std::vector<std::string>& warnings) {
    static std::set<std::string> printed;
    for (const std::string& warning : warnings) {
        if (printed.insert(warning).second) std::fprintf(notices(), "warning: %s\n", escape_terminal(warning).c_str());
    }
}

}  // namespace ftax::cli
