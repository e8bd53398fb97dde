#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory_resource>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ftax/graph.hpp"
#include "graphs/onnx/records.hpp"

namespace ftax::onnx_import {

inline constexpr int max_body_depth = 64;

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

}  // namespace ftax::onnx_import
