#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <memory_resource>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graphs/onnx/node.hpp"
#include "graphs/onnx/node_order.hpp"
#include "graphs/onnx/symbols.hpp"

namespace ftax::onnx_import {

/// A list of nodes being imported: the main graph, the body of a function, or one pass of an If, Loop or Scan body.
struct Scope {
    const std::vector<NodeRecord>* nodes = nullptr;
    std::shared_ptr<const GraphRecord> body;  ///< keeps the nodes of a body alive
    std::shared_ptr<const std::vector<std::uint32_t>> order;
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
    Graph run();

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
    void order_scope(Scope& scope, const std::vector<std::string_view>& outputs, std::string_view what);
    void run_scopes(std::size_t below);  ///< until no more than `below` are open
    void finish_graph(const Scope& scope);

    void import_node(Scope& scope, const NodeRecord& record, std::size_t index);
    void apply_row(Scope& scope, Call call, const OpRow& row);
    void apply_unknown(Scope& scope, Call call, OpKind kind);
    void settle(Scope& scope, Node& node, const OpRow* row);
    void fill_from_declaration(const Scope& scope, Node& node);
    void name_data_sizes(Node& node);
    void call_function(Scope& scope, Call call, const FunctionRecord& function);

    // control_flow.cpp
    struct Iteration;
    bool import_control(Scope& scope, Call& call);
    bool import_if(Scope& scope, Call& call);
    bool import_loop(Scope& scope, Call& call);
    bool import_scan(Scope& scope, Call& call);
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
    Functions functions_;
    Construction construction_;
    std::unique_ptr<DimensionNames> dimension_names_;
    std::vector<std::unique_ptr<Scope>> scopes_;
    std::unordered_map<const FunctionRecord*, std::shared_ptr<const std::vector<std::uint32_t>>> function_orders_;
    std::pmr::monotonic_buffer_resource arena_;
    std::pmr::unordered_set<std::string_view> op_names_{&arena_};
    std::deque<std::string> made_names_;   ///< those of op_names_ that the file does not hold
    std::vector<std::string> data_sizes_;  ///< symbols that the caller could give a value
    /// Bodies by where they lie in the file, and the order of their nodes: each is read once, however often it runs.
    mutable std::unordered_map<const char*, std::shared_ptr<const GraphRecord>> bodies_;
    std::unordered_map<const GraphRecord*, std::shared_ptr<const std::vector<std::uint32_t>>> body_orders_;
    std::uint64_t unnamed_ = 0;
};

}  // namespace ftax::onnx_import
