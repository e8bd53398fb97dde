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
#include "ftax/memory.hpp"
#include "ftax/predict.hpp"
#include "src/report/prediction_report.hpp"

namespace ftax::scenario {

/// Which model, and how it is read.
struct ModelArguments {
    std::string model;
    std::vector<std::string> dims;      ///< "seq=128"
    std::vector<std::string> shapes;    ///< "in:4x3x224x224"
    std::string inputs;                 ///< "float:batchx3x224x224,long:4x128"
    std::vector<std::string> trips;     ///< "loop=10"
    std::vector<std::string> branches;  ///< "if_3=then"
    std::string unsupported = "memory-bound";
    bool strict = false;
    std::string cache;       ///< "static"; empty for the default
    std::string cache_type;  ///< "fp8"; empty for that of the weights
    ImportOptions limits;
};

/// Under what the model runs.
struct RunArguments {
    std::string device;
    std::string framework = "pytorch-eager";
    bool framework_given = false;  ///< else it is assumed, which a file of another framework's deserves to be told
    std::string precision;         ///< empty: that of the model's weights, see precision_of()
    std::string host;
    std::string anchor;                ///< file of measured rows
    std::optional<Measurement> known;  ///< another such row
    std::string models;                ///< folder where the models of these rows are files
    std::string device_profile;
    std::string framework_profile;
    PredictOptions options;
};

/// How a file is read, as the arguments say. Throws Error{usage} for what they misspell.
[[nodiscard]] ImportOptions import_options(const ModelArguments& arguments);
[[nodiscard]] Graph load_graph(const ModelArguments& arguments);
/// Warnings of a thread that works for another, and whether they are printed.
using HeldWarnings = std::vector<std::pair<std::string, bool>>;
/// While it lives, load_graph() of this thread returns this graph, whatever model the arguments name. A thread that
/// works for another takes over the other's graph and holds its warnings back, for the other to print in order.
class GivenGraph {
  public:
    explicit GivenGraph(const Graph* graph,  ///< nullptr: none is given
                        HeldWarnings* held_warnings = nullptr);
    ~GivenGraph();
    [[nodiscard]] static const Graph* of_this_thread();
    GivenGraph(const GivenGraph&) = delete;
    GivenGraph& operator=(const GivenGraph&) = delete;
};
/// Bindings given by --dim.
[[nodiscard]] ShapeBindings dimension_bindings(const ModelArguments& arguments);
[[nodiscard]] bool has_batch(const Graph& graph);
/// The leading dimension of the first input, where it is a number.
[[nodiscard]] std::optional<std::int64_t> fixed_batch(const Graph& graph);
/// Throws Error{usage} for a model whose batch is fixed; the message says how to make it vary.
void require_batch(const Graph& graph);
/// Batches to predict: those of the list, or one nullopt for a model whose batch is fixed.
/// Throws Error{usage} when a list is missing, or names others than the fixed batch (require_batch).
[[nodiscard]] std::vector<std::optional<std::int64_t>> batches_for(const Graph& graph, const std::string& list);
/// The same where one batch is looked at. Throws Error{usage} for a list; `what` begins the message.
[[nodiscard]] std::optional<std::int64_t> one_batch_for(const Graph& graph, const std::string& list,
                                                        std::string_view what);
/// `dims` with a batch, where there is one.
[[nodiscard]] ShapeBindings with_batch(ShapeBindings dims, std::optional<std::int64_t> batch);
[[nodiscard]] Precision parse_precision(const std::string& name);
/// The precision that a run is asked for, else that of the model: of a quantised checkpoint, wider where the device has
/// no such arithmetic (with a warning), of half-precision weights as the device takes them, else fp32 (fp16 under
/// engines that serve language models).
[[nodiscard]] Precision precision_of(const Graph& graph, const RunArguments& run);

/// The warnings of an ONNX file: that no framework was given for it, where ONNX Runtime is the most likely, and that
/// torch.onnx.export has computed once what eager PyTorch computes in each pass: masks, position tables.
[[nodiscard]] std::vector<std::string> onnx_warnings(const Graph& graph, std::string_view framework,
                                                     bool framework_given);
/// A framework as users name it.
struct FrameworkChoice {
    std::string name;
    std::optional<int> version;  ///< whose host costs are asked for, as at_version() has it
};

/// Takes the version off a framework's name ("tensorrt@8.6", "pytorch-eager@2.4") and puts those of the libraries that
/// it comes with where `libraries` has them.
/// Throws Error{usage} for a version that is none, or of a framework whose rules know no versions.
[[nodiscard]] FrameworkChoice take_version(std::string_view framework, LibraryVersions& libraries);
/// The same for the framework that a run is asked for: without a version it is the newest measured, but for the host
/// costs of a named host or of a file, which are of one version.
[[nodiscard]] FrameworkChoice chosen_framework(std::string_view framework, std::string_view host, std::string_view file,
                                               LibraryVersions& libraries);
/// The profile of chosen_framework().
[[nodiscard]] FrameworkProfile versioned_profile(std::string_view framework, std::string_view host,
                                                 const std::string& file, LibraryVersions& libraries);
/// TensorRT's version as LibraryVersions has it ("8.6.1" is 806); nullopt for what is none, or older than 7.
[[nodiscard]] std::optional<int> tensorrt_version(std::string_view version);

/// Builds the predictor of a loaded graph, its profiles anchored where rows are given. A profile fitted for another
/// GPU, framework or host is used with a warning; throws Error{profile} instead when the model's arguments are strict.
[[nodiscard]] Predictor make_predictor(const Graph& graph, const ModelArguments& model, const RunArguments& arguments);

/// A report without rows yet: what every result of this predictor carries.
[[nodiscard]] report::PredictionReport report_on(const Predictor& predictor, const ModelArguments& model);
/// Predicts one row of a report, with the memory that the run takes, and prints its warnings.
[[nodiscard]] report::PredictionRow predicted_row(Predictor& predictor, const ShapeBindings& dims,
                                                  std::optional<std::int64_t> batch);
/// Gives a report the warnings that its rows do not have.
void add_warnings(report::PredictionReport& report);
[[nodiscard]] report::CrossoverReport crossover_report(Predictor& predictor, const ShapeBindings& dims);

/// What is told on standard error: all, warnings that change the answer (--quiet), or nothing (Python).
enum class Notices : std::uint8_t { all, of_the_answer, none };
void limit_notices(Notices notices);
/// Where progress goes: standard error, or nowhere where less than all is told.
[[nodiscard]] std::FILE* notices();

/// Prints warnings to standard error, each once and escaped.
void print_warnings(const std::vector<std::string>& warnings);
/// The same of warnings that say what a profile rests on, which --quiet leaves out.
void print_provenance(const std::vector<std::string>& warnings);
/// Passes on what another thread held back.
void release(const HeldWarnings& held);

/// What print_warnings() has been given so far and `told` does not say, in order: a result whose rows carry their own
/// warnings carries these too, so that none is told on standard error alone.
[[nodiscard]] std::vector<std::string> warnings_besides(const std::set<std::string>& told);

/// Begins another result: nothing has been printed yet.
void forget_warnings();

/// Adds to the warnings of a run that it does not fit into the memory of its device, where it does not.
void warn_of_memory(Prediction& prediction, const MemoryUse& memory);

/// Finds the model that a row of a measurement file names; returns what load_graph() reads. In this order:
///  1. a path of a file, or of a folder with config.json; "zoo:NAME" as it stands;
///  2. below `folder`: NAME as a file or folder with config.json, NAME.pt2, .onnx, .pt, .pth, .txt, .json; for a name
///  on
///     Hugging Face also without its owner, for one without owner also in any folder of an owner;
///  3. a zoo model, also by the names that public measurements give it.
[[nodiscard]] std::string locate_model(const std::string& folder, const std::string& model);

/// Whether two names of models lead to one.
[[nodiscard]] bool is_same_model(const std::string& folder, const std::string& a, const std::string& b);

/// Parses "if_3=then" or "if_3=else": true for then. Throws Error{usage}.
[[nodiscard]] std::pair<std::string, bool> parse_branch(std::string_view text);

/// Parses a list of batch sizes: numbers, FIRST:LAST:xFACTOR and FIRST:LAST:+STEP, separated by commas
/// ("1,2,4:128:x2,200:400:+50"). Throws Error{usage} for what is no list or below 1, Error{limit} beyond int64 or
/// 10,000 values.
[[nodiscard]] std::vector<std::int64_t> parse_batches(std::string_view text, std::string_view option = "--batch");

/// Parses a list of whole numbers from 1 on: "1,2,4". Throws Error{usage} naming the option, Error{limit} beyond int64.
[[nodiscard]] std::vector<std::int64_t> parse_counts(std::string_view text, std::string_view option);

/// Parses texts like "seq=128".
/// Throws Error{usage} for another form, a value below 1 or a second value of one symbol, Error{limit} beyond int64.
[[nodiscard]] ShapeBindings parse_dimensions(const std::vector<std::string>& texts, std::string_view option = "--dim");

/// Parses "in:4x3x224x224"; dimensions may be symbols or sums, products and quotients of them ("batchx3x224x224"), the
/// input's name may hold colons. Throws Error{usage}.
[[nodiscard]] InputShape parse_input_shape(std::string_view text);

/// Parses "float:4x3x224x224", an input by its position; types as torch or ftax call them. Throws Error{usage}.
[[nodiscard]] InputShape parse_input_type(std::string_view text);

/// Splits at commas; empty parts are kept.
[[nodiscard]] std::vector<std::string> split_list(std::string_view text);

}  // namespace ftax::scenario
