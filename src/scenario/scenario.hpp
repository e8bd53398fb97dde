#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ftax/expression.hpp"
#include "ftax/import.hpp"
#include "ftax/measurement.hpp"
#include "ftax/predict.hpp"
#include "src/report/prediction_report.hpp"

namespace ftax::scenario {

/// Arguments that select a model and control its import.
struct ModelArguments {
    std::string model;
    const Graph* graph = nullptr;       ///< instead of the model, already loaded
    std::vector<std::string> dims;      ///< "seq=128"
    std::vector<std::string> shapes;    ///< "in:4x3x224x224"
    std::string inputs;                 ///< "float:batchx3x224x224,long:4x128"
    std::vector<std::string> trips;     ///< "loop=10"
    std::vector<std::string> branches;  ///< "if_3=then"
    std::string unsupported = "memory-bound";
    bool strict = false;
    std::string cache;        ///< "static"; empty for the default
    std::string cache_type;   ///< "fp8"; empty: type of the weights
    std::int64_t images = 0;  ///< per prompt
    ImportOptions limits;
};

/// Warnings that a caller prints later, each with whether it is printed at all.
using HeldWarnings = std::vector<std::pair<std::string, bool>>;

/// Arguments of a run: device, framework, precision, profiles.
struct RunArguments {
    std::string device;
    std::string framework = "pytorch-eager";  ///< "vllm@0.11" names a version
    bool framework_given = false;             ///< false: assumed; warns for ONNX files
    std::string precision;                    ///< empty: precision of the model's weights, see precision_of()
    std::string host;
    std::string cpu;                    ///< name of the host's CPU, or "local"; empty: unknown
    std::string host_load = "unknown";  ///< dedicated, shared or unknown
    std::string host_file;              ///< what `ftax measure host` wrote
    std::string anchor;                 ///< file of measured rows
    std::string models;                 ///< folder with the model files of these rows
    std::string device_profile;
    std::string framework_profile;
    std::optional<FrameworkProfile> costs;  ///< host costs of its framework, instead of a file
    double memory_share = 0;                ///< of the device's memory that a serving engine uses; 0: its default
    std::string link;                       ///< between cards: nvlink, peer or host; empty: that of the card
    double link_bytes_per_s = 0;            ///< that it carries in one direction; 0: by its kind
    std::int64_t link_cards = 0;            ///< that it joins at most; 0: those of the card
    double network_bytes_per_s = 0;         ///< of each card between machines and pools of servers; 0: its default
    bool no_custom_all_reduce = false;      ///< NCCL sums over cards, whatever the engine
    PredictOptions options;
    HeldWarnings* held = nullptr;  ///< takes the run's warnings: a worker's, which its parent prints in order
};

/// Converts the arguments to import options. Throws Error{usage} for invalid arguments.
[[nodiscard]] ImportOptions import_options(const ModelArguments& arguments);
[[nodiscard]] Graph load_graph(const ModelArguments& arguments);
/// The same with other options than import_options(), without printing warnings. Throws Error{usage} for a name of
/// --dim, --trip or --branch that the model lacks.
[[nodiscard]] Graph load_graph(const ModelArguments& arguments, const ImportOptions& options);
/// Returns the dimensions that the arguments give, by symbols of the graph.
[[nodiscard]] ShapeBindings dimension_bindings(const Graph& graph, const ModelArguments& arguments);
[[nodiscard]] bool has_batch(const Graph& graph);
/// Returns the leading dimension of the first input if it is a number.
[[nodiscard]] std::optional<std::int64_t> fixed_batch(const Graph& graph);
/// Throws Error{usage} for a model whose batch cannot vary, saying how to make it, or if `dims` fix it.
void require_batch(const Graph& graph, const ShapeBindings& dims = {});
/// Returns the batches to predict: those of the list or of `dims`, or one nullopt for a fixed batch. Throws
/// Error{usage} if a list differs from `dims` or from the fixed batch (require_batch).
[[nodiscard]] std::vector<std::optional<std::int64_t>> batches_for(const Graph& graph, const std::string& list,
                                                                   const ShapeBindings& dims);
/// The same for commands with a single batch. Throws Error{usage} for a list; `what` begins the message.
[[nodiscard]] std::optional<std::int64_t> one_batch_for(const Graph& graph, const std::string& list,
                                                        const ShapeBindings& dims, std::string_view what);
[[nodiscard]] ShapeBindings with_batch(ShapeBindings dims, std::optional<std::int64_t> batch);
[[nodiscard]] Precision parse_precision(const std::string& name);
/// Returns the requested precision, else that of the model: for a quantised checkpoint its own, or a wider one if the
/// device lacks the arithmetic (with a warning); for half-precision weights the type supported by the device; else fp32
/// (fp16 under serving engines).
[[nodiscard]] Precision precision_of(const Graph& graph, const RunArguments& run);

/// Returns the warnings of an ONNX file: no framework given (ONNX Runtime is the most likely), and values such as masks
/// and position tables folded by torch.onnx.export but computed in each pass by eager PyTorch.
[[nodiscard]] std::vector<std::string> onnx_warnings(const Graph& graph, std::string_view framework,
                                                     bool framework_given);
/// Returns "pytorch-eager@2.4", or the framework alone without a version.
[[nodiscard]] std::string versioned(const std::string& framework, const std::string& version);
/// Returns "pytorch-eager" for "PyTorch-Eager@2.4".
[[nodiscard]] std::string unversioned(std::string_view framework);
struct FrameworkChoice {
    std::string name;
    std::optional<int> version;  ///< version of the host costs, see at_version()
};

/// Splits the version off a framework's name ("tensorrt@8.6", "pytorch-eager@2.4") and sets the corresponding library
/// versions in `libraries`. Warns of a version that changes nothing. Throws Error{usage} for an invalid version.
[[nodiscard]] FrameworkChoice take_version(std::string_view framework, LibraryVersions& libraries);
/// The same for a run: the default is the newest measured version, or that of the host costs of a named host or a file.
[[nodiscard]] FrameworkChoice chosen_framework(const RunArguments& run, LibraryVersions& libraries);

/// A run with its defaults resolved. Every verb, Python, MCP and the browser predict from one.
struct Scenario {
    DeviceProfile device;
    FrameworkProfile framework;
    PredictOptions options;
};

/// Returns the host costs of a run's framework at its version, and sets the libraries of that version.
[[nodiscard]] FrameworkProfile resolve_framework(const RunArguments& run, LibraryVersions& libraries);
/// Resolves the arguments of a run without its anchors.
[[nodiscard]] Scenario resolve(const RunArguments& run, Precision precision);
/// Returns a warning if `ftax nas` assumes a newer framework than that of the built-in search spaces' measurements.
[[nodiscard]] std::vector<std::string> nas_assumptions(const RunArguments& run, const FrameworkProfile& framework);
/// Resolves a run of a model, anchored on rows if given. Warns if a profile was fitted for another GPU, framework or
/// host; throws Error{profile} instead if the model's arguments are strict.
[[nodiscard]] Scenario resolve(const Graph& graph, const ModelArguments& model, const RunArguments& run);
[[nodiscard]] Predictor make_predictor(const Graph& graph, const ModelArguments& model, const RunArguments& arguments);

/// Returns a report without rows, with the common data of this predictor's results.
[[nodiscard]] report::PredictionReport report_on(const Predictor& predictor, const ModelArguments& model);
/// Predicts one row of a report, including memory, and prints or holds its warnings.
[[nodiscard]] report::PredictionRow predicted_row(Predictor& predictor, const ShapeBindings& dims,
                                                  std::optional<std::int64_t> batch, HeldWarnings* held = nullptr);
/// Adds the warnings that its rows lack to a report.
void add_warnings(report::PredictionReport& report);
[[nodiscard]] report::CrossoverReport crossover_report(Predictor& predictor, const ShapeBindings& dims);

/// Output on standard error: all, only warnings that affect the result (--quiet), or none (Python).
enum class Notices : std::uint8_t { all, of_the_answer, none };
void limit_notices(Notices notices);
/// Returns the stream for progress: standard error, or a null stream unless all notices are enabled.
[[nodiscard]] std::FILE* notices();

/// Prints each warning once to standard error, escaped, before the next output or progress.
void print_warnings(const std::vector<std::string>& warnings);
/// Prints the warnings of a run, or holds them.
void warn(const RunArguments& run, const std::vector<std::string>& warnings);
/// Prints those that wait for others that differ in numbers alone.
void flush_warnings();
/// The same for warnings about the provenance of a profile, which --quiet suppresses.
void print_provenance(const std::vector<std::string>& warnings);
void release(const HeldWarnings& held);

/// Returns the warnings printed so far that are not in `reported`, in order; results include them in addition to the
/// warnings of their rows, so that none appears on standard error only.
[[nodiscard]] std::vector<std::string> warnings_besides(const std::set<std::string>& reported);

/// Starts a new result: clears the record of printed warnings.
void forget_warnings();

/// Resolves the model name of a measurement row to an argument of load_graph(), in this order:
///  1. a path of a file, or of a folder with config.json; "zoo:NAME" as it stands;
///  2. below `folder`: NAME as a file or folder with config.json, NAME.pt2, .onnx, .pt, .pth, .txt, .json; for a name
///     on Hugging Face also without its owner, for one without owner also in any folder of an owner;
///  3. a zoo model, also by the names that public measurements give it.
[[nodiscard]] std::string locate_model(const std::string& folder, const std::string& model);

[[nodiscard]] bool is_same_model(const std::string& folder, const std::string& a, const std::string& b);

/// Parses "if_3=then" or "if_3=else": true for then. Throws Error{usage}.
[[nodiscard]] std::pair<std::string, bool> parse_branch(std::string_view text);

/// Parses a list of batch sizes: numbers, FIRST:LAST:xFACTOR and FIRST:LAST:+STEP, separated by commas
/// ("1,2,4:128:x2,200:400:+50"). Throws Error{usage} for invalid lists, Error{limit} beyond int64 or 10,000 values.
[[nodiscard]] std::vector<std::int64_t> parse_batches(std::string_view text, std::string_view option = "--batch");

/// Parses a list of positive integers: "1,2,4". Throws Error{usage} naming the option, Error{limit} beyond int64.
[[nodiscard]] std::vector<std::int64_t> parse_counts(std::string_view text, std::string_view option);

/// Parses texts like "seq=128".
/// Throws Error{usage} for another form, a value below 1 or a second value of one symbol, Error{limit} beyond int64.
[[nodiscard]] ShapeBindings parse_dimensions(const std::vector<std::string>& texts, std::string_view option = "--dim");

/// Parses "in:4x3x224x224"; dimensions may be symbols or sums, products and quotients of them ("batchx3x224x224"), the
/// input's name may hold colons. Throws Error{usage}.
[[nodiscard]] InputShape parse_input_shape(std::string_view text);

/// Parses "float:4x3x224x224" for a positional input; accepts type names of torch and ftax. Throws Error{usage}.
[[nodiscard]] InputShape parse_input_type(std::string_view text);

/// Splits at commas; empty parts are kept.
[[nodiscard]] std::vector<std::string> split_list(std::string_view text);

}  // namespace ftax::scenario
