#pragma once

#include <map>
#include <string>
#include <vector>

#include "graphs/onnx/records.hpp"

namespace ftax::onnx_import {

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
