#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ftax/error.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/ir/rewriting/graph_edits.hpp"
#include "graphs/onnx/importer.hpp"
#include "graphs/onnx/records.hpp"

namespace ftax::onnx_import {
namespace {

/// Entries of a Python list of strings: "['', 'layer1', 'layer1.0']".
std::vector<std::string_view> python_strings(std::string_view text) {
    std::vector<std::string_view> entries;
    while (true) {
        const std::size_t open = text.find('\'');
        if (open == std::string_view::npos) return entries;
        const std::size_t close = text.find('\'', open + 1);
        if (close == std::string_view::npos) return entries;
        entries.push_back(text.substr(open + 1, close - open - 1));
        text.remove_prefix(close + 1);
    }
}

/// Modules entered on the way to a node, outermost first: "/layer1/layer1.0/conv1/Conv" → layer1, layer1.0,
/// layer1.0.conv1. A component that begins with the one before it replaces it.
std::vector<std::string> paths_of_name(std::string_view name) {
    std::vector<std::string> paths;
    const std::size_t end = name.rfind('/');
    if (!name.starts_with('/') || end == 0) return paths;
    std::string path;
    std::string_view last;
    for (const std::string_view component : words_of(name.substr(1, end - 1), '/')) {
        const bool extends =
            !last.empty() && component.starts_with(last) && component.substr(last.size()).starts_with('.');
        if (extends) path.resize(path.size() - last.size());
        if (!path.empty() && path.back() != '.') path += '.';
        path += component;
        last = component;
        paths.push_back(path);
    }
    return paths;
}

/// Parameters keep their own names ("fc.weight"); "onnx::Conv_497" and "val_45" are copies that the exporter made.
bool is_generated(std::string_view name) {
    if (name.starts_with("onnx::") || name.find("Transpose") != std::string_view::npos) return true;
    return name.starts_with("val_") && name.find_first_not_of("0123456789", 4) == std::string_view::npos;
}

/// Module that owns a parameter: "layer1.0.conv1.weight" → "layer1.0.conv1".
std::string owner_of(const std::string& parameter) {
    const std::size_t dot = parameter.rfind('.');
    return dot == std::string::npos ? std::string{} : parameter.substr(0, dot);
}

class Restoration {
  public:
    Restoration(Graph& graph, const ModuleTypes& types) : graph_(graph), types_(types) {}

    /// Returns how many batch norms were put back.
    std::size_t run() {
        const auto folded = [&](const Op& op) { return op.kind == OpKind::conv && is_folded(op); };
        for (Op& op : graph_.ops) {
            if (op.kind == OpKind::linear) restore_weight(op);
            if (!folded(op) && is_bias_added(op)) op.inputs.resize(2);
        }
        if (std::ranges::none_of(graph_.ops, folded)) return 0;
        std::vector<Op> ops;
        ops.reserve(graph_.ops.size());
        for (Op& op : graph_.ops) {
            const bool splits = folded(op);
            ops.push_back(std::move(op));
            if (splits) split_batch_norm(ops);
        }
        graph_.ops = std::move(ops);
        assign_producers(graph_);
        return restored_;
    }

  private:
    [[nodiscard]] bool is_folded(const Op& op) const {
        const std::string& weight = graph_.tensors[op.inputs[1]].name;
        const bool biased = op.inputs.size() > 2 && op.inputs[2] != no_tensor;
        // A weight norm is folded too, but leaves the convolution its own bias.
        if (biased && weight.starts_with("onnx::Conv")) return is_generated(graph_.tensors[op.inputs[2]].name);
        return is_batch_norm(op.module) && owner_of(weight) != op.module;
    }

    /// The dynamo exporter adds a bias of zeros to convolutions without one, next to the module's own weight.
    [[nodiscard]] bool is_bias_added(const Op& op) const {
        if (op.kind != OpKind::conv || op.inputs.size() != 3 || op.inputs[2] == no_tensor) return false;
        const std::string& weight = graph_.tensors[op.inputs[1]].name;
        return !op.module.empty() && owner_of(weight) == op.module && is_generated(graph_.tensors[op.inputs[2]].name);
    }

    [[nodiscard]] bool is_batch_norm(const std::string& module) const {
        return value_or(types_, module, {}).find("BatchNorm") != std::string::npos;
    }

    /// Splits the last operator into the convolution without bias and a batch norm that keeps its output.
    void split_batch_norm(std::vector<Op>& ops) {
        Op& conv = ops.back();
        const TensorId result = conv.outputs[0];
        const DType dtype = graph_.tensors[conv.inputs[1]].dtype;
        const Expression channels = graph_.tensors[conv.inputs[1]].shape[0];
        // The legacy exporter does not say what the batch norm was called.
        const bool known = is_batch_norm(conv.module);
        Op norm{.kind = OpKind::batch_norm, .name = conv.name + "/batch_norm", .source = "BatchNormalization"};
        norm.module = known ? conv.module : conv.module.empty() ? std::string{} : conv.module + ".batch_norm";
        if (known) conv.module = owner_of(graph_.tensors[conv.inputs[1]].name);
        conv.inputs.resize(2);

        Tensor between = graph_.tensors[result];
        between.name += "/unnormalized";
        const TensorId middle = append(graph_, std::move(between));
        conv.outputs = {middle};
        norm.inputs = {middle};
        for (const std::string_view part : {"weight", "bias", "running_mean", "running_var"}) {
            const std::string name = fmt::format("{}.{}", norm.name, part);
            norm.inputs.push_back(
                append(graph_, {.name = name, .dtype = dtype, .role = TensorRole::weight, .shape = {channels}}));
        }
        norm.outputs = {result};
        norm.attributes = {{"axis", std::int64_t{1}}};
        ops.push_back(std::move(norm));
        ++restored_;
    }

    /// nn.Linear keeps [n, k]; the exporter transposed it into a copy of its own for MatMul.
    void restore_weight(Op& op) {
        Tensor& weight = graph_.tensors[op.inputs[1]];
        if (op.integer("transposed_weight", 1) != 0 || !is_generated(weight.name) || weight.shape.size() != 2) return;
        std::swap(weight.shape[0], weight.shape[1]);
        op.attributes.clear();
    }

    Graph& graph_;
    const ModuleTypes& types_;
    std::size_t restored_ = 0;
};

constexpr std::uint32_t raw_data = 9;                         // field of TensorProto
constexpr std::int64_t largest_side = std::int64_t{1} << 28;  // matrix side whose byte count fits into 64 bits
constexpr std::size_t most_tables = 16;                       // a guess: tokens, positions, types; text and speech

/// A matrix of numbers in the file.
class Matrix {
  public:
    Matrix(const TensorRecord& record, const std::string& directory)
        : record_(record), directory_(directory), value_bytes_(bits_of(dtype_from_onnx(record.data_type)) / 8) {
        if (record.external || record.message.size() != 1) return;
        for_each_field(record.message[0], [&](const Field& field) {
            if (field.number == raw_data && field.type == WireType::length_delimited) raw_ = field.bytes.data;
        });
    }

    /// The bytes of one number; nullopt where they cannot be read.
    [[nodiscard]] std::optional<std::string> at(std::int64_t row, std::int64_t column) const {
        const std::int64_t offset = (row * record_.dims[1] + column) * value_bytes_;
        if (record_.external) {
            ExternalData value = *record_.external;
            value.offset += static_cast<std::uint64_t>(offset);
            value.length = static_cast<std::uint64_t>(value_bytes_);
            try {
                return read_external_data(value, directory_, value_bytes_);
            } catch (const Error&) {
                return std::nullopt;
            }
        }
        if (static_cast<std::uint64_t>(offset + value_bytes_) > raw_.size()) return std::nullopt;
        return std::string(raw_.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(value_bytes_)));
    }

  private:
    const TensorRecord& record_;
    const std::string& directory_;
    std::int64_t value_bytes_;
    std::string_view raw_;
};

bool equal_values(const TensorRecord& embedding, const TensorRecord& head, const std::string& directory) {
    const bool same = embedding.dims == head.dims;
    const bool transposed = embedding.dims[0] == head.dims[1] && embedding.dims[1] == head.dims[0];
    if (embedding.data_type != head.data_type || (!same && !transposed)) return false;
    const auto &here = embedding.external, &there = head.external;
    if (same && here && there && here->location == there->location && here->offset == there->offset) return true;
    const Matrix a(embedding, directory), b(head, directory);
    constexpr std::int64_t samples = 64;
    std::optional<std::string> first;
    bool varied = false;  // what holds one number everywhere has not been trained and may equal anything
    bool straight = same, turned = transposed;
    for (std::int64_t i = 0; i < samples && (straight || turned); ++i) {
        const std::int64_t row = i * (embedding.dims[0] - 1) / (samples - 1), column = (i * 37) % embedding.dims[1];
        const auto value = a.at(row, column);
        if (!value) return false;
        if (!first) first = value;
        varied = varied || *value != *first;
        straight = straight && b.at(row, column) == value;
        turned = turned && b.at(column, row) == value;
    }
    return varied && (straight || turned);
}

}  // namespace

std::string module_of(const NodeRecord& node, const std::string& fallback) {
    const auto scopes = python_strings(metadata_of(node, "pkg.torch.onnx.name_scopes"));
    if (scopes.size() >= 2) return std::string(scopes[scopes.size() - 2]);  // the last entry is the operator itself
    const auto paths = paths_of_name(node.name);
    return paths.empty() ? fallback : paths.back();
}

ModuleTypes module_types(const std::vector<NodeRecord>& nodes, const std::function<void()>& release) {
    ModuleTypes types;
    std::size_t passed = 0;
    for (const NodeRecord& node : nodes) {
        if (release && ++passed % release_interval == 0) release();
        const auto scopes = python_strings(metadata_of(node, "pkg.torch.onnx.name_scopes"));
        const auto classes = python_strings(metadata_of(node, "pkg.torch.onnx.class_hierarchy"));
        for (std::size_t i = 0; i + 1 < scopes.size() && i + 1 < classes.size(); ++i)
            types.emplace(scopes[i], classes[i]);
        if (!scopes.empty()) continue;
        for (std::string& path : paths_of_name(node.name)) types.emplace(std::move(path), std::string{});
    }
    return types;
}

void record_module_calls(Graph& graph, const ModuleTypes& types) {
    std::string previous;
    for (const Op& op : graph.ops) {
        if (op.module == previous) continue;
        // Every prefix of the path that the operator before was not inside is a new call.
        std::size_t end = 0;
        while (end < op.module.size()) {
            end = std::min(op.module.find('.', end + 1), op.module.size());
            const std::string_view path = std::string_view(op.module).substr(0, end);
            const bool inside = std::string_view(previous).starts_with(path) &&
                                (previous.size() == path.size() || previous[path.size()] == '.');
            if (inside) continue;
            // A list of modules ("layers" of "layers.0") is a part of paths, but never called.
            if (end < op.module.size() && !types.contains(path)) continue;
            graph.module_calls.push_back({std::string(path), value_or(types, path, {})});
        }
        previous = op.module;
    }
    if (graph.module_calls.empty()) return;
    graph.module_calls.insert(graph.module_calls.begin(), {"", value_or(types, "", {})});
}

bool taken_apart(const Op& last, OpKind kind, const ModuleTypes& types) {
    if (kind == OpKind::attention) return last.name.find("scaled_dot_product_attention") != std::string::npos;
    return value_or(types, last.module, {}) == "torch.nn.modules.normalization.RMSNorm";
}

void restore_folded_layers(Graph& graph, const ModuleTypes& types) {
    const std::size_t restored = Restoration(graph, types).run();
    if (restored == 0) return;
    graph.warnings.push_back(
        fmt::format("{} batch normalisations that the exporter folded into convolutions are put back", restored));
}

void share_embedding(Graph& graph, const GraphRecord& records, const std::string& directory) {
    std::unordered_map<std::string_view, const TensorRecord*> matrices;
    for (const TensorRecord& record : records.initializers) {
        if (record.dims.size() != 2) continue;
        const auto [least, most] = std::minmax(record.dims[0], record.dims[1]);
        if (least > 0 && most <= largest_side) matrices.emplace(record.name, &record);
    }
    const auto record_of = [&](const Op& op, std::size_t input) -> const TensorRecord* {
        if (op.inputs.size() <= input || op.inputs[input] == no_tensor) return nullptr;
        const Tensor& tensor = graph.tensors[op.inputs[input]];
        return tensor.role == TensorRole::weight ? value_or(matrices, tensor.name, nullptr) : nullptr;
    };
    std::vector<std::pair<TensorId, const TensorRecord*>> tables;
    for (const Op& op : graph.ops) {
        if (op.kind != OpKind::embedding || tables.size() == most_tables) continue;
        if (const TensorRecord* record = record_of(op, 0)) tables.emplace_back(op.inputs[0], record);
    }
    for (Op& op : graph.ops) {
        const TensorRecord* head = op.kind == OpKind::linear ? record_of(op, 1) : nullptr;
        if (head == nullptr) continue;
        const auto table = std::ranges::find_if(
            tables, [&](const auto& t) { return t.second != head && equal_values(*t.second, *head, directory); });
        if (table == tables.end()) continue;
        graph.tensors[op.inputs[1]].shape = graph.tensors[table->first].shape;
        op.inputs[1] = table->first;
        std::erase_if(op.attributes, [](const Attribute& a) { return a.name == "transposed_weight"; });
    }
}

}  // namespace ftax::onnx_import
