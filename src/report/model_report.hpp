#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/graph.hpp"
#include "ftax/predict.hpp"
#include "ftax/types.hpp"
#include "ftax/work.hpp"
#include "graphs/ir/work_polynomial.hpp"
#include "src/report/columns.hpp"

namespace ftax::report {

struct WorkGroup {
    std::string name;
    std::int64_t operators = 0;
    std::int64_t flops = 0;
    std::int64_t macs = 0;  ///< multiply-adds of contractions only
    std::int64_t bytes = 0;
};

/// Requirements of a model, independent of device and framework.
struct ModelReport {
    std::string model, format;
    ShapeBindings bindings;
    std::vector<std::string> inputs, outputs;  ///< "x f32[8,3,224,224]"
    std::int64_t parameters = 0;
    std::int64_t written_bytes = 0;  ///< buffers modified by a run, not counted as parameters
    std::int64_t parameter_bytes = 0;
    WorkGroup total;
    std::vector<WorkGroup> by_kind;    ///< most FLOPs first
    std::vector<WorkGroup> by_module;  ///< in order of execution; empty if the file has no module names
    std::int64_t unknown_operators = 0;
    double modelled_operators = 1, modelled_flops = 1;  ///< shares that are not guessed
    std::vector<std::string> unknown;                   ///< names of unknown operators in the file, each once
    std::vector<std::string> warnings{};                ///< warnings of the file, then of operators with guessed work
};

/// Sums the work of a graph for one binding. `depth`: levels of the module path to tell apart.
/// Throws what bind() and work_of() throw.
[[nodiscard]] ModelReport model_report(const Graph& graph, const ShapeBindings& bindings, int depth);

[[nodiscard]] std::string verdict_of(const ModelReport& report);
[[nodiscard]] std::string to_table(const ModelReport& report, Style style);
[[nodiscard]] std::string to_json(const ModelReport& report);
[[nodiscard]] std::string to_csv(const ModelReport& report);

/// A symbolic dimension of a model.
struct OpenDimension {
    std::string symbol;
    std::vector<std::string> axes;  ///< "input_ids.1": input and the number of its dimension, from 0
    std::string flag;               ///< option that sets it
};

/// A model with unbound dimensions.
struct OpenModelReport {
    std::string model, format;
    std::vector<std::string> inputs, outputs;  ///< "x f32[batch,3,224,224]"
    std::vector<OpenDimension> dimensions;
    std::int64_t operators = 0;
    std::optional<WorkPolynomial> work;   ///< if polynomial
    std::vector<std::string> warnings{};  ///< warnings of the file, then of operators with guessed work
};

/// Returns true if each symbol of a graph is bound. Throws Error{usage} for bindings of unknown symbols.
[[nodiscard]] bool is_bound(const Graph& graph, const ShapeBindings& bindings);
/// `bindings` are the bound dimensions.
[[nodiscard]] OpenModelReport open_model_report(const Graph& graph, const ShapeBindings& bindings);
[[nodiscard]] std::string verdict_of(const OpenModelReport& report);
[[nodiscard]] std::string to_table(const OpenModelReport& report, Style style);
[[nodiscard]] std::string to_json(const OpenModelReport& report);
[[nodiscard]] std::string to_csv(const OpenModelReport& report);

/// Effect of an operator's dispatch by eager PyTorch.
enum class Dispatch : std::uint8_t {
    kernel,  ///< launches one or more kernels
    view,    ///< reinterprets the same memory
    host,    ///< runs only on the host
    sync,    ///< the host waits for its result
};

[[nodiscard]] std::string_view name_of(Dispatch dispatch) noexcept;

/// One operator in the order in which eager PyTorch dispatches them.
struct StreamRow {
    std::string source;  ///< "aten::conv2d"
    std::string module;
    std::string output;  ///< "f32[2,64,56,56]"
    Dispatch dispatch = Dispatch::kernel;
    std::int64_t flops = 0;
    std::int64_t bytes = 0;
};

/// Throws what bind() and work_of() throw.
[[nodiscard]] std::vector<StreamRow> op_stream(const Graph& graph, const ShapeBindings& bindings);

[[nodiscard]] const Columns<StreamRow>& stream_columns();
[[nodiscard]] Columns<WorkGroup> work_columns(std::string_view title);
[[nodiscard]] Columns<OpenDimension> dimension_columns();

}  // namespace ftax::report
