#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory_resource>
#include <numeric>
#include <span>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/onnx/importer.hpp"

namespace ftax::onnx_import {
namespace {

constexpr std::uint32_t no_node = std::numeric_limits<std::uint32_t>::max();

/// Names that the bodies of a node read, its own inner names included: those resolve to nothing outside.
void append_captures(const NodeRecord& node, std::vector<std::string_view>& names) {
    std::vector<std::pair<std::vector<Bytes>, int>> open;  // parts and depth of bodies
    const auto open_bodies = [&](const NodeRecord& owner, int depth) {
        if (!has_body(owner)) return;
        if (depth > max_body_depth)
            throw_error(ErrorCode::limit, "node '{}': bodies nested deeper than {} levels", excerpt(node.name),
                        max_body_depth);
        for (AttributeRecord& attribute : attributes_of(owner))
            if (!attribute.graph.empty()) open.emplace_back(std::move(attribute.graph), depth);
    };
    open_bodies(node, 1);
    while (!open.empty()) {
        const auto [parts, depth] = std::move(open.back());
        open.pop_back();
        const GraphRecord graph = read_graph(parts, std::numeric_limits<std::uint64_t>::max());
        for (const NodeRecord& inner : graph.nodes) {
            names.insert(names.end(), inner.inputs.begin(), inner.inputs.end());
            open_bodies(inner, depth + 1);
        }
        for (const ValueRecord& output : graph.outputs) names.push_back(output.name);
    }
}

/// Producers and readers of one scope as numbers.
class Dependencies {
  public:
    Dependencies(const std::vector<NodeRecord>& nodes, const std::pmr::unordered_map<std::string_view, TensorId>& own,
                 const std::function<bool(std::string_view)>& is_outer)
        : first_(nodes.size() + 1) {
        producers_.reserve(nodes.size());
        for (std::uint32_t i = 0; i < nodes.size(); ++i) {
            for (const std::string_view output : nodes[i].outputs) {
                if (output.empty()) continue;
                const auto [known, added] = producers_.emplace(output, i);
                if (!added || own.contains(output))
                    throw_error(ErrorCode::model, "'{}' has two producers: {} and {}", excerpt(output),
                                title_of(nodes[i], i),
                                added ? "an input or initializer" : title_of(nodes[known->second], known->second));
            }
        }
        std::vector<std::string_view> captures;
        for (std::uint32_t i = 0; i < nodes.size(); ++i) {
            first_[i] = edges_.size();
            const auto add = [&](std::string_view name, bool captured) {
                if (name.empty()) return;
                if (const std::uint32_t from = producer(name); from != no_node) {
                    edges_.push_back(from);
                } else if (!captured && !own.contains(name) && !is_outer(name)) {
                    dangling_.emplace_back(i, name);
                }
            };
            for (const std::string_view input : nodes[i].inputs) add(input, false);
            if (!has_body(nodes[i])) continue;
            captures.clear();
            append_captures(nodes[i], captures);
            for (const std::string_view name : captures) add(name, true);
        }
        first_[nodes.size()] = edges_.size();
    }

    [[nodiscard]] std::uint32_t producer(std::string_view name) const { return value_or(producers_, name, no_node); }
    [[nodiscard]] std::span<const std::uint32_t> edges(std::uint32_t node) const {
        return std::span(edges_).subspan(first_[node], first_[node + 1] - first_[node]);
    }
    [[nodiscard]] const std::vector<std::pair<std::uint32_t, std::string_view>>& dangling() const { return dangling_; }

  private:
    std::vector<std::size_t> first_;  ///< edges_[first_[i], first_[i + 1]): producers that node i reads
    std::vector<std::uint32_t> edges_;
    std::vector<std::pair<std::uint32_t, std::string_view>> dangling_;
    std::pmr::monotonic_buffer_resource arena_;
    std::pmr::unordered_map<std::string_view, std::uint32_t> producers_{&arena_};
};

/// Visits what the roots reach, depth first with a stack of its own; `leave` is called with a node after all that it
/// reads. Throws Error{model} with `complaint` and the names on the way where one reads itself.
template <class Edges, class Leave, class Name>
void visit(std::size_t count, const std::vector<std::uint32_t>& roots, const Edges& edges, const Leave& leave,
           std::string_view complaint, const Name& name) {
    enum class Mark : std::uint8_t { unseen, open, done };
    std::vector<Mark> marks(count, Mark::unseen);
    std::vector<std::pair<std::uint32_t, std::size_t>> stack;
    const auto enter = [&](std::uint32_t node) {
        if (marks[node] != Mark::unseen) return;
        marks[node] = Mark::open;
        stack.emplace_back(node, 0);
    };
    for (const std::uint32_t root : roots) {
        enter(root);
        while (!stack.empty()) {
            const std::uint32_t node = stack.back().first;
            const std::span<const std::uint32_t> read = edges(node);
            if (stack.back().second == read.size()) {
                marks[node] = Mark::done;
                stack.pop_back();
                leave(node);
                continue;
            }
            const std::uint32_t next = read[stack.back().second++];
            if (marks[next] == Mark::open) {
                std::string cycle = name(next);
                for (auto step = stack.rbegin(); step->first != next; ++step) {
                    cycle = fmt::format("{} → {}", name(step->first), cycle);
                    if (cycle.size() > 2000) break;  // a cycle through a million nodes need not be printed whole
                }
                throw_error(ErrorCode::model, "{}: {} → {}", complaint, name(next), cycle);
            }
            enter(next);
        }
    }
}

std::string key_of(std::string_view domain, std::string_view name, std::string_view overload) {
    return fmt::format("{}::{}:{}", domain == "ai.onnx" ? std::string_view{} : domain, name, overload);
}

/// Nodes of a list and of all bodies below it, flat.
std::vector<NodeRecord> with_bodies(const std::vector<NodeRecord>& nodes, std::uint64_t max_nodes) {
    std::vector<NodeRecord> all = nodes;
    std::vector<int> depth(all.size(), 0);
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!has_body(all[i])) continue;
        if (depth[i] == max_body_depth)
            throw_error(ErrorCode::limit, "{}: bodies nested deeper than {} levels", title_of(all[i], i),
                        max_body_depth);
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

bool has_body(const NodeRecord& node) noexcept {
    return node.op_type == "If" || node.op_type == "Loop" || node.op_type == "Scan" || node.op_type == "SequenceMap";
}

std::string title_of(const NodeRecord& node, std::size_t index) {
    return node.name.empty() ? fmt::format("node {} ({})", index, node.op_type)
                             : fmt::format("node '{}' ({})", excerpt(node.name), excerpt(node.op_type));
}

NodeOrder order_nodes(const std::vector<NodeRecord>& nodes, const std::vector<std::string_view>& outputs,
                      const std::pmr::unordered_map<std::string_view, TensorId>& own,
                      const std::function<bool(std::string_view)>& is_outer) {
    const Dependencies dependencies(nodes, own, is_outer);
    std::vector<std::uint32_t> roots;
    for (const std::string_view output : outputs) {
        const std::uint32_t producer = dependencies.producer(output);
        if (producer != no_node) {
            roots.push_back(producer);
        } else if (!own.contains(output) && !is_outer(output)) {
            throw_error(ErrorCode::model, "the graph output '{}' has no producer", excerpt(output));
        }
    }
    if (outputs.empty())
        for (std::uint32_t i = 0; i < nodes.size(); ++i) roots.push_back(i);

    std::vector<bool> live(nodes.size(), false);
    NodeOrder order;
    const auto leave = [&](std::uint32_t node) {
        live[node] = true;
        order.live.push_back(node);
    };
    const auto edges = [&](std::uint32_t node) { return dependencies.edges(node); };
    visit(nodes.size(), roots, edges, leave, "the graph has a cycle",
          [&](std::uint32_t node) { return title_of(nodes[node], node); });
    for (const auto& [node, name] : dependencies.dangling()) {
        if (live[node])
            throw_error(ErrorCode::model, "{} reads '{}', which nothing produces", title_of(nodes[node], node),
                        excerpt(name));
        order.dangling_in_dead.push_back(name);
    }
    // Keep the file's order where it is one already: it is the order in which the exporter saw the program run.
    for (std::uint32_t i = 0; i < nodes.size(); ++i)
        for (const std::uint32_t producer : dependencies.edges(i))
            order.sorted = order.sorted && (!live[i] || producer < i);
    if (order.sorted) std::ranges::sort(order.live);
    return order;
}

Functions::Functions(const ModelRecord& model, std::uint64_t max_nodes) {
    if (model.functions.empty()) return;
    for (const FunctionRecord& function : model.functions)
        by_key_.emplace(key_of(function.domain, function.name, function.overload), &function);
    const std::size_t count = model.functions.size();
    // Index `count` is the main graph.
    std::vector<std::vector<std::uint32_t>> calls(count + 1);
    std::vector<std::uint64_t> nodes(count + 1);
    for (std::size_t i = 0; i <= count; ++i) {
        const auto all = with_bodies(i < count ? model.functions[i].nodes : model.graph.nodes, max_nodes);
        nodes[i] = all.size();
        for (const NodeRecord& node : all)
            if (const FunctionRecord* callee = find(node))
                calls[i].push_back(static_cast<std::uint32_t>(callee - model.functions.data()));
    }
    std::vector<std::uint32_t> roots(count + 1);
    std::iota(roots.begin(), roots.end(), 0);
    const auto edges = [&](std::uint32_t function) { return std::span<const std::uint32_t>(calls[function]); };
    const auto leave = [&](std::uint32_t function) {
        for (const std::uint32_t callee : calls[function])
            nodes[function] = std::min(nodes[function] + nodes[callee], max_nodes + 1);
    };
    visit(count + 1, roots, edges, leave, "local functions call each other in a cycle",
          [&](std::uint32_t function) { return excerpt(model.functions[function].name); });
    if (nodes[count] > max_nodes)
        throw_error(ErrorCode::limit, "the graph has more than {} nodes once its functions are inlined (--max-nodes)",
                    max_nodes);
}

const FunctionRecord* Functions::find(const NodeRecord& node) const {
    return by_key_.empty() ? nullptr : value_or(by_key_, key_of(node.domain, node.op_type, node.overload), nullptr);
}

}  // namespace ftax::onnx_import
