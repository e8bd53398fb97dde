#include "graphs/onnx/function_calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ftax/error.hpp"
#include "graphs/onnx/node_order.hpp"
#include "src/core/excerpt.hpp"

namespace ftax::onnx_import {
namespace {

std::string key_of(std::string_view domain, std::string_view name, std::string_view overload) {
    return fmt::format("{}::{}:{}", domain == "ai.onnx" ? std::string_view{} : domain, name, overload);
}

/// Nodes of a list and of all bodies below it, flat.
std::vector<NodeRecord> with_bodies(const std::vector<NodeRecord>& nodes, std::uint64_t max_nodes) {
    std::vector<NodeRecord> all = nodes;
    std::vector<int> depth(all.size(), 0);
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!has_body(all[i])) continue;
        if (depth[i] == max_body_depth) {
            throw Error(ErrorCode::limit,
                        fmt::format("{}: bodies nested deeper than {} levels", title_of(all[i], i), max_body_depth));
        }
        for (const AttributeRecord& attribute : attributes_of(all[i])) {
            if (attribute.graph.empty()) continue;
            for (NodeRecord& inner : read_graph(attribute.graph, max_nodes).nodes) {
                all.push_back(std::move(inner));
                depth.push_back(depth[i] + 1);
            }
        }
    }
    return all;
}

}  // namespace

Functions::Functions(const ModelRecord& model, std::uint64_t max_nodes) {
    if (model.functions.empty()) return;
    for (const FunctionRecord& function : model.functions) {
        by_key_.emplace(key_of(function.domain, function.name, function.overload), &function);
    }
    const std::size_t count = model.functions.size();
    // Place `count` stands for the main graph.
    std::vector<std::vector<std::size_t>> calls(count + 1);
    std::vector<std::uint64_t> nodes(count + 1);
    for (std::size_t i = 0; i <= count; ++i) {
        const auto all = with_bodies(i < count ? model.functions[i].nodes : model.graph.nodes, max_nodes);
        nodes[i] = all.size();
        for (const NodeRecord& node : all) {
            if (const FunctionRecord* callee = find(node))
                calls[i].push_back(static_cast<std::size_t>(callee - model.functions.data()));
        }
    }
    std::vector<char> state(count + 1, 0);  // 0 unseen, 1 open, 2 done
    std::vector<std::pair<std::size_t, std::size_t>> stack;
    for (std::size_t root = 0; root <= count; ++root) {
        if (state[root] != 0) continue;
        state[root] = 1;
        stack.emplace_back(root, 0);
        while (!stack.empty()) {
            const std::size_t at = stack.back().first;
            if (stack.back().second == calls[at].size()) {
                for (const std::size_t callee : calls[at])
                    nodes[at] = std::min(nodes[at] + nodes[callee], max_nodes + 1);
                state[at] = 2;
                stack.pop_back();
                continue;
            }
            const std::size_t callee = calls[at][stack.back().second++];
            if (state[callee] == 1) {
                std::string cycle = excerpt(model.functions[callee].name);
                for (auto step = stack.rbegin(); step->first != callee; ++step) {
                    cycle = fmt::format("{} → {}", excerpt(model.functions[step->first].name), cycle);
                }
                throw Error(ErrorCode::model, fmt::format("local functions call each other in a cycle: {} → {}",
                                                          excerpt(model.functions[callee].name), cycle));
            }
            if (state[callee] == 0) {
                state[callee] = 1;
                stack.emplace_back(callee, 0);
            }
        }
    }
    if (nodes[count] > max_nodes) {
        throw Error(
            ErrorCode::limit,
            fmt::format("the graph has more than {} nodes once its functions are inlined (--max-nodes)", max_nodes));
    }
}

const FunctionRecord* Functions::find(const NodeRecord& node) const {
    if (by_key_.empty()) return nullptr;
    const auto found = by_key_.find(key_of(node.domain, node.op_type, node.overload));
    return found == by_key_.end() ? nullptr : found->second;
}

}  // namespace ftax::onnx_import
