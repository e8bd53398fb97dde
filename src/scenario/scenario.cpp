#include "src/scenario/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>

#include "ftax/nas.hpp"
#include "ftax/precision.hpp"
#include "ftax/version.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/escape.hpp"
#include "graphs/ir/operands.hpp"
#include "graphs/loading.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/kernels/all_reduce.hpp"
#include "predictors/profiles/device_file.hpp"
#include "predictors/profiles/parameters.hpp"
#include "predictors/timeline/launch_costs.hpp"
#include "src/report/launch_report.hpp"
#include "src/report/quantities.hpp"
#include "src/scenario/cpu.hpp"
#include "src/scenario/row_predictor.hpp"
#include "src/scenario/usable_rows.hpp"

namespace ftax::scenario {
namespace {

/// Under --strict, throws for profiles of another GPU, framework or host.
void refuse(const std::vector<std::string>& mismatches) {
    if (!mismatches.empty()) throw_error(ErrorCode::profile, "{} (--strict)", fmt::join(mismatches, "; "));
}

/// Returns the precision asked for, else that of a checkpoint's weights; if the card lacks units for their activations,
/// the one with the same weights and 16-bit activations. Source: vLLM, quantization (Marlin kernels of fp8, int8 and
/// nvfp4 checkpoints on older cards). Under llama.cpp it is GGUF's; elsewhere mxfp4 is the checkpoint's own.
Precision quantized_precision(const std::string& weights, const RunArguments& run, const DeviceSpec& device) {
    const PrecisionSpec& stored = precision_spec(parse_precision(weights));
    const bool of_gguf = framework_model(unversioned(run.framework)).traits.gemm.dot_products;
    const bool in_4_bits = bits_of(stored.weight) == 4, converted = of_gguf && stored.quantizes_activations();
    const Precision wider = in_4_bits ? Precision::w4a16 : Precision::w8a16;
    const Precision of_file = in_4_bits ? Precision::mxfp4 : Precision::q8_0;
    const Precision own = converted ? of_file : runs(device, stored) ? stored.precision : wider;
    const Precision asked = run.precision.empty() ? own : parse_precision(run.precision);
    const Precision result = asked == Precision::mxfp4 && in_4_bits && !of_gguf ? own : asked;
    if (result != own) {
        warn(run, {fmt::format("the model's weights are {}; --precision {} replaces them", weights, run.precision)});
    } else if (own != stored.precision && own != Precision::mxfp4) {
        warn(run, {fmt::format("{} has no {} arithmetic: its weights are predicted as {}",
                               converted ? run.framework : device.name, stored.name, precision_spec(own).name)});
    }
    return result;
}

/// Returns advice on making a fixed batch variable: an option, or re-exporting if the batch cannot be traced.
std::string how_to_vary(const Graph& graph) {
    try {
        Graph varied = graph;
        vary_batch(varied, varied.expressions.symbol("batch"));
    } catch (const Error&) {
        return "export the model with a dynamic one";
    }
    const Tensor& input = graph.tensors[graph.inputs.front()];
    std::string shape = "batch";
    for (std::size_t axis = 1; axis < input.shape.size(); ++axis)
        shape += "x" + graph.expressions.to_string(input.shape[axis]);
    return fmt::format("--shapes {}:{} lets it vary", input.name, shape);
}

CacheKind parse_cache_kind(const std::string& name) {
    const auto kind = cache_kind_from_name(name);
    if (!kind)
        throw_error(ErrorCode::usage, "unknown cache '{}'; available: dynamic, static, paged", escape_terminal(name));
    return *kind;
}

DType parse_cache_type(const std::string& name) {
    static const std::map<std::string_view, DType> types = {
        {"fp32", DType::f32}, {"fp16", DType::f16}, {"bf16", DType::bf16}, {"fp8", DType::f8e4m3}};
    const auto found = types.find(name);
    if (found == types.end())
        throw_error(ErrorCode::usage, "unknown cache precision '{}'; available: fp32, fp16, bf16, fp8",
                    escape_terminal(name));
    return found->second;
}

Notices shown = Notices::all;

std::mutex printing;
std::vector<std::string> printed, waiting;  ///< warnings of this result, and those of them to print

namespace fs = std::filesystem;

constexpr std::string_view zoo_prefix = "zoo:";

std::string zoo_model(const std::string& model) {
    return std::string(zoo_prefix) + zoo_name(model).value_or(model);
}

bool is_model(const fs::path& path) {
    std::error_code ignored;
    const auto holds = [&](const char* name) { return fs::is_regular_file(path / name, ignored); };
    return fs::is_regular_file(path, ignored) || holds("config.json") || holds("model_index.json");
}

std::string in_folder(const fs::path& folder, const std::string& name) {
    for (const char* suffix : {"", ".pt2", ".onnx", ".pt", ".pth", ".txt", ".json"}) {
        fs::path path = folder / name;
        path += suffix;
        if (is_model(path)) return path.string();
    }
    return {};
}

std::vector<fs::path> owners(const fs::path& folder) {
    std::vector<fs::path> result;
    std::error_code failed;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed))
        if (entry.is_directory(failed)) result.push_back(entry.path());
    std::ranges::sort(result);
    return result;
}

constexpr int oldest_tensorrt = 700;

/// TensorRT's version decides what its builder fuses. A lower one is that of what calls it: Torch-TensorRT 1.2.
bool builds_engines(std::string_view framework) {
    return framework.find("tensorrt") != std::string_view::npos && !framework_model(framework).traits.serves_sequences;
}

void note_version(const FrameworkChoice& choice, LibraryVersions& libraries) {
    const LoweringTraits& traits = framework_model(choice.name).traits;
    if (traits.library != Library::none) libraries.engine = *choice.version;
    if (!traits.serves_sequences) set_libraries(libraries, choice.name, *choice.version);
}

void note(const std::vector<std::string>& warnings, bool prints, HeldWarnings* held) {
    if (held != nullptr) {
        for (const std::string& warning : warnings) held->emplace_back(warning, prints);
        return;
    }
    const std::lock_guard guard(printing);
    for (const std::string& warning : warnings) {
        if (std::ranges::count(printed, warning) > 0) continue;
        printed.push_back(warning);
        if (prints) waiting.push_back(warning);
    }
}

}  // namespace

ImportOptions import_options(const ModelArguments& arguments) {
    ImportOptions options = arguments.limits;
    for (const std::string& shape : arguments.shapes) options.input_shapes.push_back(parse_input_shape(shape));
    if (!arguments.inputs.empty())
        for (const std::string& input : split_list(arguments.inputs))
            options.input_shapes.push_back(parse_input_type(input));
    const ShapeBindings trips = parse_dimensions(arguments.trips, "--trip");
    options.trip_counts.insert(trips.begin(), trips.end());
    for (const auto& [name, value] : parse_dimensions(arguments.dims)) options.data_sizes.push_back(name);
    for (const std::string& branch : arguments.branches) options.branches.insert(parse_branch(branch));
    options.strict = arguments.strict;
    options.unsupported_is_error = arguments.unsupported == "error";
    if (!arguments.cache.empty()) options.cache.kind = parse_cache_kind(arguments.cache);
    if (!arguments.cache_type.empty()) options.cache.type = parse_cache_type(arguments.cache_type);
    return options;
}

Graph load_graph(const ModelArguments& arguments) {
    Graph graph = arguments.graph ? *arguments.graph : load_graph(arguments, import_options(arguments));
    print_warnings(graph.warnings);
    return graph;
}

Graph load_graph(const ModelArguments& arguments, const ImportOptions& options) {
    Graph graph = ftax::load_graph(arguments.model, options);
    require_symbols(graph, dimension_bindings(graph, arguments));
    return graph;
}

ShapeBindings dimension_bindings(const Graph& graph, const ModelArguments& arguments) {
    return by_symbol(graph, parse_dimensions(arguments.dims));
}

bool has_batch(const Graph& graph) {
    return std::ranges::count(graph.expressions.symbols(), "batch") > 0;
}

std::optional<std::int64_t> fixed_batch(const Graph& graph) {
    if (graph.inputs.empty()) return std::nullopt;
    const Tensor& input = graph.tensors[graph.inputs.front()];
    return input.shape.empty() ? std::nullopt : graph.expressions.constant_value(input.shape.front());
}

void require_batch(const Graph& graph, const ShapeBindings& dims) {
    if (has_batch(graph) && !dims.contains("batch")) return;
    if (has_batch(graph))
        throw_error(ErrorCode::usage, "the batch varies here: leave out --dim batch={}", dims.at("batch"));
    const Tensor* input = graph.inputs.empty() ? nullptr : &graph.tensors[graph.inputs.front()];
    if (input && !input->shape.empty() && !fixed_batch(graph)) {
        const auto symbols = graph.expressions.symbols_of(input->shape.front());
        throw_error(ErrorCode::usage, "the leading dimension of {} is {}, not the batch alone: give --dim {}=N",
                    graph.name, graph.expressions.to_string(input->shape.front()), fmt::join(symbols, "=N --dim "));
    }
    throw_error(ErrorCode::usage, "the batch of {} is fixed; {}", graph.name, how_to_vary(graph));
}

std::vector<std::optional<std::int64_t>> batches_for(const Graph& graph, const std::string& list,
                                                     const ShapeBindings& dims) {
    if (const auto named = dims.find("batch"); named != dims.end() && has_batch(graph)) {
        if (!list.empty() && parse_batches(list) != std::vector{named->second})
            throw_error(ErrorCode::usage, "--batch {} and --dim batch={} differ", list, named->second);
        return {named->second};
    }
    if (!has_batch(graph)) {
        const auto fixed = fixed_batch(graph);
        if (!list.empty() && (!fixed || parse_batches(list) != std::vector{*fixed})) require_batch(graph);
        return {std::nullopt};
    }
    const std::vector<std::int64_t> batches = parse_batches(list.empty() ? "1" : list);
    return {batches.begin(), batches.end()};
}

std::optional<std::int64_t> one_batch_for(const Graph& graph, const std::string& list, const ShapeBindings& dims,
                                          std::string_view what) {
    const auto batches = batches_for(graph, list, dims);
    if (batches.size() > 1) throw_error(ErrorCode::usage, "{} one batch size: give one --batch", what);
    return batches.front();
}

ShapeBindings with_batch(ShapeBindings dims, std::optional<std::int64_t> batch) {
    if (batch) dims["batch"] = *batch;
    return dims;
}

Precision parse_precision(const std::string& name) {
    const auto precision = precision_from_name(name);
    if (!precision)
        throw_error(ErrorCode::usage, "unknown precision '{}'; available: {}", name,
                    fmt::join(precision_names(), ", "));
    return *precision;
}

std::vector<std::string> onnx_warnings(const Graph& graph, std::string_view framework, bool framework_given) {
    if (graph.format != "onnx") return {};
    std::vector<std::string> warnings;
    if (!framework_given)
        warnings.push_back(fmt::format("no --framework given for an ONNX file; assuming {}", framework));
    const bool exported =
        std::ranges::any_of(graph.module_calls, [](const ModuleCall& call) { return call.type.starts_with("torch."); });
    if (!exported || !framework.starts_with("pytorch-eager")) return warnings;
    // Parameters are named after their module's path, generated values val_7; results keep the name of their node.
    const auto folded = std::ranges::count_if(graph.tensors, [](const Tensor& tensor) {
        const bool given = tensor.role == TensorRole::weight || tensor.role == TensorRole::constant;
        return given && tensor.shape.size() > 1 && tensor.name.find('.') == std::string::npos &&
               !tensor.name.starts_with("val_");
    });
    if (folded > 0)
        warnings.push_back(fmt::format(
            "torch.onnx.export folded {} that eager PyTorch computes in each pass; a .pt2 file of the model "
            "includes their cost",
            folded == 1 ? "a tensor" : fmt::format("{} tensors", folded)));
    return warnings;
}

std::string versioned(const std::string& framework, const std::string& version) {
    return version.empty() ? framework : fmt::format("{}@{}", framework, version);
}

std::string unversioned(std::string_view framework) {
    return framework_name(split_at(framework, '@').first);
}

FrameworkChoice take_version(std::string_view framework, LibraryVersions& libraries) {
    const auto [name, number] = split_at(framework, '@');
    FrameworkChoice choice{std::string(framework_model(name).name), std::nullopt};
    if (name == framework) return choice;
    const std::optional<int> version = version_number(number);
    const bool engine = builds_engines(choice.name);
    if (!version || (choice.name.starts_with("tensorrt") && engine && *version < oldest_tensorrt)) {
        throw_error(ErrorCode::usage, "{}: {}", framework,
                    engine ? "not a TensorRT version from 7.0 on, such as tensorrt@8.6"
                           : "invalid version; write e.g. pytorch-eager@2.5");
    }
    if (engine && *version >= oldest_tensorrt) {
        libraries.tensorrt = *version;
    } else if (engine || newest_version(choice.name)) {
        choice.version = version;
        if (!engine) note_version(choice, libraries);
    }
    return choice;
}

FrameworkChoice chosen_framework(const RunArguments& run, LibraryVersions& libraries) {
    FrameworkChoice choice = take_version(run.framework, libraries);
    const bool versioned = !split_at(run.framework, '@').second.empty();
    const bool has_costs = run.costs || !run.host.empty() || !run.framework_profile.empty();
    if (versioned || has_costs || builds_engines(choice.name)) return choice;
    choice.version = newest_version(choice.name);
    if (choice.version) note_version(choice, libraries);
    return choice;
}

FrameworkProfile resolve_framework(const RunArguments& run, LibraryVersions& libraries) {
    const FrameworkChoice choice = chosen_framework(run, libraries);
    if (!choice.version && !split_at(run.framework, '@').second.empty() && !builds_engines(choice.name))
        warn(run, {fmt::format("{}: the rules of {} do not depend on its version", run.framework, choice.name)});
    FrameworkProfile profile = run.costs ? *run.costs : framework_profile(choice.name, run.host, run.framework_profile);
    const auto fitted = version_number(profile.version);
    if ((run.costs || !run.framework_profile.empty()) && !choice.version && fitted && !builds_engines(choice.name))
        note_version({choice.name, fitted}, libraries);
    if (choice.version) profile = at_version(std::move(profile), *choice.version);
    const auto set = [&](std::string_view name, double value) {
        set_parameter(profile.parameters, {.name = std::string(name), .value = value, .source = "an option"});
    };
    for (std::size_t kind = 0; kind < kernels::link_names.size(); ++kind)
        if (run.link == kernels::link_names[kind]) set(kernels::link_kind, real(kind));
    if (run.link_bytes_per_s > 0) set(kernels::link_rate, run.link_bytes_per_s);
    if (run.link_cards > 0) set(kernels::link_cards, real(run.link_cards));
    if (run.network_bytes_per_s > 0) set(kernels::link_network, run.network_bytes_per_s);
    if (run.no_custom_all_reduce) set(kernels::link_kernels, 0);
    return profile;
}

Scenario resolve(const RunArguments& run, Precision precision) {
    Scenario scenario{device_profile(run.device, run.device_profile), {}, run.options};
    scenario.options.precision = precision;
    scenario.framework = resolve_framework(run, scenario.options.libraries);
    place_host(scenario, run);
    scenario.options = nas::libraries_of(scenario.framework, scenario.options);
    return scenario;
}

Precision precision_of(const Graph& graph, const RunArguments& run) {
    const DeviceSpec device = given_device(run.device);
    const auto marked =
        std::ranges::find_if(graph.ops, [](const Op& op) { return !op.text(weights_attribute).empty(); });
    if (marked != graph.ops.end())
        return quantized_precision(std::string(marked->text(weights_attribute)), run, device);
    if (!run.precision.empty()) return parse_precision(run.precision);
    const DType half = half_type_of_weights(graph);
    LibraryVersions ignored;
    const LoweringTraits& traits = framework_model(take_version(run.framework, ignored).name).traits;
    if (half == DType::f32) return traits.serves_sequences ? Precision::fp16 : Precision::fp32;
    return half == DType::bf16 && device.peak(MathPath::bf16_tensor) ? Precision::bf16 : Precision::fp16;
}

std::vector<std::string> nas_assumptions(const RunArguments& run, const FrameworkProfile& framework) {
    const bool assumed = run.host.empty() && run.framework_profile.empty() && run.anchor.empty() &&
                         split_at(run.framework, '@').second.empty() && framework.framework == nas::measured_framework;
    if (!assumed) return {};
    return {
        fmt::format("predicted under {} {}, the newest measured; the built-in search spaces were measured on the host "
                    "{} (--host {})",
                    framework.framework, framework.version, nas::measured_host, nas::measured_host)};
}

Scenario resolve(const Graph& graph, const ModelArguments& model, const RunArguments& run) {
    Scenario scenario = resolve(run, precision_of(graph, run));
    if (model.strict) {
        refuse(scenario.device.warnings);
        refuse(scenario.framework.warnings);
        const auto* evidence = scenario.framework.evidence;
        if (evidence != nullptr && evidence->empty() &&
            !framework_model(scenario.framework.framework).traits.serves_sequences)
            refuse({fmt::format("no measured rows of {}", scenario.framework.framework)});
    }
    std::vector<Measurement> rows;
    if (!run.anchor.empty())
        rows = usable_rows(read_model_measurements(read_anchors(run.anchor)),
                           [&](const std::vector<std::string>& warnings) { warn(run, warnings); });
    if (!run.anchor.empty()) anchor_on(scenario, rows, model.model, run, dimension_bindings(graph, model));
    warn(run, onnx_warnings(graph, run.framework, run.framework_given));
    warn(run, warnings_of_name(run.device));
    note(scenario.device.warnings, shown == Notices::all, run.held);
    note(scenario.framework.warnings, shown == Notices::all, run.held);
    return scenario;
}

Predictor make_predictor(const Graph& graph, const ModelArguments& model, const RunArguments& arguments) {
    Scenario scenario = resolve(graph, model, arguments);
    return {graph, std::move(scenario.device), std::move(scenario.framework), scenario.options};
}

report::PredictionReport report_on(const Predictor& predictor, const ModelArguments& model) {
    return {.model = model.model,
            .device = predictor.device(),
            .framework = predictor.framework(),
            .precision = predictor.precision(),
            .dims = dimension_bindings(predictor.graph(), model),
            .rows = {},
            .crossover = {}};
}

namespace {

/// The time of each network of a pipeline, whose launches cost so much; none for another model.
std::vector<report::Share> parts_of(const Graph& graph, const std::vector<LaunchCosts>& costs) {
    if (graph.format != "diffusers") return {};
    return report::sum_by_name({costs.begin() + 1, costs.end()}, [&](std::size_t i) {  // the first is the call itself
        const std::string_view part = split_at(graph.ops[costs[i + 1].op].module, '.').first;
        return std::string(part.empty() ? "fused" : part);  // of several modules
    });
}

}  // namespace

report::PredictionRow predicted_row(Predictor& predictor, const ShapeBindings& dims, std::optional<std::int64_t> batch,
                                    HeldWarnings* held) {
    const ShapeBindings bindings = with_batch(dims, batch);
    std::vector<LaunchCosts> costs;
    report::PredictionRow row{batch, predictor.predict(bindings, costs), {}, {}, predictor.memory(bindings)};
    if (row.prediction.coverage.nodes == 0)
        throw_error(ErrorCode::model, "{}: cannot predict: no operator is modelled (the first is {})",
                    predictor.graph().name, predictor.graph().ops.front().source);
    if (!row.memory->fits()) row.prediction.warnings.push_back(report::describe(*row.memory));
    note(row.prediction.warnings, shown != Notices::none, held);
    row.parts = parts_of(predictor.graph(), costs);
    return row;
}

void add_warnings(report::PredictionReport& report) {
    std::set<std::string> reported;
    for (const report::PredictionRow& row : report.rows)
        reported.insert(row.prediction.warnings.begin(), row.prediction.warnings.end());
    report.warnings = warnings_besides(reported);
}

report::CrossoverReport crossover_report(Predictor& predictor, const ShapeBindings& dims) {
    constexpr std::int64_t largest = 4096;
    report::CrossoverReport report{.crossovers = find_crossovers(predictor, dims, largest), .largest = largest};
    if (report.crossovers.empty()) report.bound = predictor.predict(with_batch(dims, 1)).bound;
    return report;
}

void limit_notices(Notices notices) {
    shown = notices;
}

std::FILE* notices() {
    flush_warnings();
    static std::FILE* const nowhere = std::fopen("/dev/null", "w");
    return shown == Notices::all || !nowhere ? stderr : nowhere;
}

void flush_warnings() {
    const std::lock_guard guard(printing);
    for (const std::string& warning : report::merged(std::exchange(waiting, {})))
        std::fprintf(stderr, "warning: %s\n", escape_terminal(warning).c_str());
}

void print_warnings(const std::vector<std::string>& warnings) {
    warn({}, warnings);
}

void warn(const RunArguments& run, const std::vector<std::string>& warnings) {
    note(warnings, shown != Notices::none, run.held);
}

void print_provenance(const std::vector<std::string>& warnings) {
    note(warnings, shown == Notices::all, nullptr);
}

void release(const HeldWarnings& held) {
    for (const auto& [warning, prints] : held) note({warning}, prints, nullptr);
}

std::vector<std::string> warnings_besides(const std::set<std::string>& known) {
    const std::lock_guard guard(printing);
    std::vector<std::string> others = printed;
    std::erase_if(others, [&](const std::string& warning) { return known.contains(warning); });
    return report::merged(others);
}

void forget_warnings() {
    const std::lock_guard guard(printing);
    printed.clear();
    waiting.clear();
}

std::string locate_model(const std::string& folder, const std::string& model) {
    if (model.starts_with(zoo_prefix) || is_model(model)) return model;
    if (folder.empty()) return zoo_model(model);
    if (std::string found = in_folder(folder, model); !found.empty()) return found;
    if (const std::size_t owner = model.find('/'); owner != std::string::npos) {
        if (std::string found = in_folder(folder, model.substr(owner + 1)); !found.empty()) return found;
        return zoo_model(model);
    }
    for (const fs::path& owner : owners(folder))
        if (std::string found = in_folder(owner, model); !found.empty()) return found;
    return zoo_model(model);
}

bool is_same_model(const std::string& folder, const std::string& a, const std::string& b) {
    if (a == b) return true;
    const std::string at_a = locate_model(folder, a), at_b = locate_model(folder, b);
    if (at_a == at_b) return true;
    std::error_code ignored;
    return fs::equivalent(at_a, at_b, ignored);
}

}  // namespace ftax::scenario
