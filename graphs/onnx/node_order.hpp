#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ftax/graph.hpp"
#include "graphs/onnx/records.hpp"

namespace ftax::onnx_import {

/// Depth to which If, Loop and Scan bodies may be nested.
inline constexpr int max_body_depth = 64;

struct NodeOrder {
    std::vector<std::uint32_t> live;  ///< indices of the nodes that the outputs need, every producer before its readers
    bool sorted = true;               ///< the file had them in such an order
    std::vector<std::string_view> dangling_in_dead;  ///< names without producer that only dead nodes read
};

/// Orders the nodes of one scope. `own` holds the scope's inputs and initializers, `is_outer` tells names that come
/// from enclosing scopes. Without outputs every node is live. Throws Error{model} for a name with two producers, a name
/// without any, and a cycle, which it prints.
[[nodiscard]] NodeOrder order_nodes(const std::vector<NodeRecord>& nodes, const std::vector<std::string_view>& outputs,
                                    const std::unordered_map<std::string_view, TensorId>& own,
                                    const std::function<bool(std::string_view)>& is_outer);

/// Bodies of a node: the graphs in its attributes.
[[nodiscard]] bool has_body(const NodeRecord& node) noexcept;

/// How a node is called in messages.
[[nodiscard]] std::string title_of(const NodeRecord& node, std::size_t index);

/// The local functions of a model, found by what a node calls.
class Functions {
  public:
    /// Checks that no function reaches itself, through bodies of If, Loop and Scan too, and that the graph with all
    /// calls inlined stays within `max_nodes`. Each function is counted once, however often it is called. Throws
    /// Error{model} printing the cycle, Error{limit}.
    Functions(const ModelRecord& model, std::uint64_t max_nodes);

    /// Returns nullptr when the node calls no local function.
    [[nodiscard]] const FunctionRecord* find(const NodeRecord& node) const;

  private:
    std::map<std::string, const FunctionRecord*, std::less<>> by_key_;
};

}  // namespace ftax::onnx_import
