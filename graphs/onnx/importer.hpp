#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ftax/graph.hpp"
#include "ftax/import.hpp"
#include "graphs/onnx/node.hpp"
#include "graphs/onnx/records.hpp"
#include "graphs/onnx/scalar.hpp"

namespace ftax::onnx_import {

/// Converts any text to a name that is valid in shape expressions and command lines.
[[nodiscard]] std::string identifier(std::string_view text);

/// Names the dynamic dimensions of a model's inputs: the file's names, except that the leading dimension of
/// all inputs is `batch` and a sequence length is `seq`.
class DimensionNames {
  public:
    using Inputs = std::vector<std::pair<std::string_view, TypeRecord>>;

    /// Reads all inputs (name and type) at once, since one name is decided by looking at all of them, and applies the
    /// shapes the user gave. Adds guesses to `warnings`. Throws Error{usage} for a shape given to an unknown
    /// input, Error{model} for a negative dimension other than -1 or when two shapes give one symbol different values,
    /// Error{limit} for more symbols than an ExpressionPool supports. `keep_batch` keeps leading ones that it fixes.
    DimensionNames(const Inputs& inputs, const std::vector<InputShape>& given, bool keep_batch,
                   std::vector<std::string>& warnings);

    /// Shape of input `index` in the expressions of `pool`; nullopt if neither file nor user specify it.
    [[nodiscard]] std::optional<Dims> shape(std::size_t index, ExpressionPool& pool) const;
    /// Dimension of an inner tensor as the file declares it; unknown_dim if it uses symbols that no input has.
    [[nodiscard]] Expression declared(const DimRecord& dim, ExpressionPool& pool) const;

    /// Other names of the symbols of `pool`: those of the file.
    [[nodiscard]] std::map<std::string, std::string, std::less<>> other_names(ExpressionPool& pool) const;

  private:
    Expression open_dim(std::string_view input, std::size_t axis);
    Expression named_dim(std::string_view text, std::string_view input, std::size_t axis);
    void read_shapes(const Inputs& inputs);
    /// Takes symbols for `to`: the one called so, else all of `guesses` if they are one or unnamed. Warns of a guess.
    void choose(const std::string& to, const std::set<std::string>& called, const std::set<std::string>& guesses);
    void name_common(const Inputs& inputs);
    void name_numbered(const Inputs& inputs);
    void apply(const InputShape& shape, const Inputs& inputs, bool keep_batch);
    Expression applied(const InputShape& shape, std::size_t axis, const Dims* dims, bool keep_batch);
    [[nodiscard]] Expression convert(Expression e, const ExpressionPool& from, ExpressionPool& pool) const;

    std::vector<std::string>& warnings_;
    ExpressionPool file_;                                      ///< expressions in the file's own symbols
    std::size_t input_symbols_ = 0;                            ///< number of symbols of the file's inputs
    std::vector<std::optional<Dims>> shapes_;                  ///< shapes of the inputs, in `file_`
    std::set<std::string, std::less<>> unnamed_;               ///< symbols of unnamed dimensions
    std::map<std::string, std::string, std::less<>> renamed_;  ///< file's symbol → name or expression shown to the user
    std::map<std::string, std::string, std::less<>> bound_;    ///< file's symbol → value from the user's shapes
    std::map<std::string, std::string, std::less<>> spelled_;  ///< dim_param that is no expression → symbol in `file_`
};

inline constexpr int max_body_depth = 64;
inline constexpr std::size_t release_interval = 1u << 16;  ///< nodes that are read between two calls of `release`

[[nodiscard]] std::vector<std::string_view> names_of(const std::vector<ValueRecord>& values);

struct NodeOrder {
    std::vector<std::uint32_t> live;  ///< indices of the nodes that the outputs need, every producer before its readers
    bool sorted = true;               ///< true: the file was in such an order
    std::vector<std::string_view> dangling_in_dead;  ///< names without producer, read only by dead nodes
};

/// Orders the nodes of one scope. `own` holds the scope's inputs and initializers, `is_outer` returns true for names
/// from enclosing scopes. Without outputs every node is live. Throws Error{model} for names with two producers or none,
/// and for cycles, which it prints.
[[nodiscard]] NodeOrder order_nodes(const std::vector<NodeRecord>& nodes, const std::vector<std::string_view>& outputs,
                                    const std::pmr::unordered_map<std::string_view, TensorId>& own,
                                    const std::function<bool(std::string_view)>& is_outer);

[[nodiscard]] bool has_body(const NodeRecord& node) noexcept;

/// Returns the name of a node for messages.
[[nodiscard]] std::string title_of(const NodeRecord& node, std::size_t index);

/// The local functions of a model, found by the operator of a node.
class Functions {
  public:
    /// Checks that no function is recursive, including through bodies of If, Loop and Scan, and that the graph with all
    /// calls inlined stays within `max_nodes`. Each function is processed once, regardless of its calls. Throws
    /// Error{model} printing the cycle, Error{limit}.
    Functions(const ModelRecord& model, std::uint64_t max_nodes);

    /// Returns nullptr if the node does not call a local function.
    [[nodiscard]] const FunctionRecord* find(const NodeRecord& node) const;

  private:
    std::map<std::string, const FunctionRecord*, std::less<>> by_key_;
};

/// Indices of the nodes of a scope that its outputs need, every producer before its readers.
using Order = std::shared_ptr<const std::vector<std::uint32_t>>;

/// A list of nodes being imported: the main graph, the body of a function, or one pass of an If, Loop or Scan body.
struct Scope {
    const std::vector<NodeRecord>* nodes = nullptr;
    std::shared_ptr<const GraphRecord> body;  ///< keeps the nodes of a body alive
    Order order;
    std::size_t next = 0;
    std::pmr::monotonic_buffer_resource arena;  ///< of the names, of which there may be millions
    std::pmr::unordered_map<std::string_view, TensorId> names{&arena};
    std::unordered_map<std::string_view, const ValueRecord*> declared;  ///< types the file states for inner tensors
    const Scope* outer = nullptr;                                       ///< scope whose names a body sees
    const std::vector<OpsetRecord>* opsets = nullptr;
    std::vector<AttributeRecord> call_attributes;  ///< attributes of the node that called this function
    std::string prefix;                            ///< path of calling nodes, for unique names
    std::string module;                            ///< module of the calling node, where the body says none
    int body_depth = 0;
    bool repeated = false;               ///< in a later pass of a loop: the first has warned of what depends on data
    std::function<void(Scope&)> finish;  ///< hands the results to the scope below
};

/// Turns a decoded model into a Graph: walks the scopes with an explicit stack and applies each operator's rule.
class Importer {
  public:
    /// Nodes of `model` lose their operands once they are imported.
    Importer(ModelRecord& model, const ImportOptions& options, std::string directory, bool keep_batch);
    Graph run(const std::function<void()>& release);  ///< `release` as in read_model()

  private:
    struct Call {  ///< a node with its operands looked up
        const NodeRecord& record;
        std::vector<AttributeRecord> attributes;
        std::vector<TensorId> inputs;
        std::string name;
    };

    void check_versions();
    void add_inputs(Scope& scope);
    std::unique_ptr<Scope> main_scope();
    Order order_of(Scope& scope, const std::vector<std::string_view>& outputs, std::string_view what);
    void run_scopes(std::size_t below);  ///< until no more than `below` are open
    void finish_graph(const Scope& scope);

    void import_node(Scope& scope, const NodeRecord& record, std::size_t index);
    void apply_row(Scope& scope, Call call, const OpRow& row);
    void apply_unknown(Scope& scope, Call call, OpKind kind);
    void settle(Scope& scope, Node& node, const OpRow* row);
    void evaluate(Node& node, const OpRow& row);
    void fill_from_declaration(const Scope& scope, Node& node);
    void name_data_sizes(Node& node);
    void call_function(Scope& scope, Call call, const FunctionRecord& function);

    // control_flow.cpp
    struct Iteration;
    using Import = bool(Scope& scope, Call& call);
    Import import_control, import_if, import_loop, import_scan;
    void warn_of_passes(const Iteration& state);
    void iterate(Iteration& state);
    std::vector<TensorId> run_body(std::unique_ptr<Scope> scope, std::string_view what);
    std::optional<double> number_of(TensorId tensor);  ///< value of a known scalar
    std::shared_ptr<const GraphRecord> body_of(const Call& call, std::string_view attribute) const;
    std::unique_ptr<Scope> body_scope(Scope& outer, std::shared_ptr<const GraphRecord> body, std::string prefix);
    TensorId slice_of(const std::string& name, TensorId tensor, std::size_t axis);
    TensorId stacked(const std::string& name, const std::vector<TensorId>& parts, std::int64_t axis, Expression count);

    [[nodiscard]] static TensorId lookup(const Scope& scope, std::string_view name);
    TensorId resolve(Scope& scope, std::string_view name);
    [[nodiscard]] std::int64_t opset(const Scope& scope, std::string_view domain) const;
    std::string unique_name(const Scope& scope, const NodeRecord& record);
    std::string tensor_name(const Scope& scope, std::string_view name) const;

    ModelRecord& model_;
    const ImportOptions& options_;
    bool keep_batch_;
    std::function<void()> release_;
    Functions functions_;
    Construction construction_;
    std::unique_ptr<DimensionNames> dimension_names_;
    std::vector<std::unique_ptr<Scope>> scopes_;
    std::pmr::monotonic_buffer_resource arena_;
    std::pmr::unordered_set<std::string_view> op_names_{&arena_};
    std::deque<std::string> made_names_;   ///< those of op_names_ that the file does not hold
    std::vector<std::string> data_sizes_;  ///< symbols that the caller could give a value
    /// Bodies by where they lie in the file, and the orders of bodies and functions: each is read only once.
    mutable std::unordered_map<const char*, std::shared_ptr<const GraphRecord>> bodies_;
    std::unordered_map<const void*, Order> orders_;
    std::uint64_t unnamed_ = 0;
};

/// Returns the path of the nn.Module that called a node, as recorded by PyTorch's exporters: in metadata
/// (pkg.torch.onnx.name_scopes) or in the node's name ("/layer1/layer1.0/conv1/Conv"); `fallback` if missing.
[[nodiscard]] std::string module_of(const NodeRecord& node, const std::string& fallback);

/// Returns the modules named by nodes, by path, with their class if in the metadata (pkg.torch.onnx.class_hierarchy).
using ModuleTypes = std::map<std::string, std::string, std::less<>>;
[[nodiscard]] ModuleTypes module_types(const std::vector<NodeRecord>& nodes, const std::function<void()>& release);

/// Lists the module calls of the forward pass from the paths of the operators in execution order.
void record_module_calls(Graph& graph, const ModuleTypes& types);

/// Returns true if PyTorch's exporter decomposed the operator that ended with `last`: it names the end of attention
/// after the call, and records the module class of an RMSNorm.
[[nodiscard]] bool taken_apart(const Op& last, OpKind kind, const ModuleTypes& types);

/// Reverts foldings of PyTorch's exporters into weights that eager PyTorch still executes: a batch normalisation folded
/// into the convolution before it, the transposed copy of a linear layer's weight, a bias of zeros. They are recognised
/// by names: copies have generated names ("onnx::Conv_497"), or the operator has the module path of the batch norm.
void restore_folded_layers(Graph& graph, const ModuleTypes& types);

/// Merges the weights of an embedding and a head with equal values: exporters that fold constants store a tied weight
/// twice, transposed for the head. External data at the same location are equal; otherwise a sample of values is
/// compared. Unreadable weights are not merged. `graph` is the import of `records` after layer recognition; `directory`
/// contains the model file.
void share_embedding(Graph& graph, const GraphRecord& records, const std::string& directory);

}  // namespace ftax::onnx_import
