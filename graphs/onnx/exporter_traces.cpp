#include "graphs/onnx/exporter_traces.hpp"

#include <fmt/format.h>

#include "src/core/rewriting/graph_edits.hpp"

namespace ftax::onnx_import {
namespace {

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

    void run() {
        std::vector<Op> ops;
        ops.reserve(graph_.ops.size());
        for (Op& op : graph_.ops) {
            if (op.kind == OpKind::linear) restore_weight(op);
            const bool folded = op.kind == OpKind::conv && is_folded(op);
            if (!folded && is_bias_added(op)) op.inputs.resize(2);
            ops.push_back(std::move(op));
            if (folded) split_batch_norm(ops);
        }
        graph_.ops = std::move(ops);
        assign_producers(graph_);
    }

    [[nodiscard]] std::size_t restored() const noexcept { return restored_; }

  private:
    [[nodiscard]] bool is_folded(const Op& op) const {
        const std::string& weight = graph_.tensors[op.inputs[1]].name;
        const bool biased = op.inputs.size() > 2 && op.inputs[2] != no_tensor;
        // A weight norm is folded too, but leaves the convolution its own bias.
        if (biased && weight.starts_with("onnx::Conv")) return is_generated(graph_.tensors[op.inputs[2]].name);
        return is_batch_norm(op.module) && owner_of(weight) != op.module;
    }

    /// The dynamo exporter gives a convolution without bias one of zeros, beside the module's own weight.
    [[nodiscard]] bool is_bias_added(const Op& op) const {
        if (op.kind != OpKind::conv || op.inputs.size() != 3 || op.inputs[2] == no_tensor) return false;
        const std::string& weight = graph_.tensors[op.inputs[1]].name;
        return !op.module.empty() && owner_of(weight) == op.module && is_generated(graph_.tensors[op.inputs[2]].name);
    }

    [[nodiscard]] bool is_batch_norm(const std::string& module) const {
        const auto type = types_.find(module);
        return type != types_.end() && type->second.find("BatchNorm") != std::string::npos;
    }

    TensorId add_parameter(const std::string& name, DType dtype, Expression channels) {
        Tensor tensor;
        tensor.name = name;
        tensor.dtype = dtype;
        tensor.role = TensorRole::weight;
        tensor.shape = {channels};
        graph_.tensors.push_back(std::move(tensor));
        return static_cast<TensorId>(graph_.tensors.size() - 1);
    }

    /// Splits the last operator into the convolution without bias and a batch norm that keeps its output.
    void split_batch_norm(std::vector<Op>& ops) {
        Op& conv = ops.back();
        const TensorId result = conv.outputs[0];
        const DType dtype = graph_.tensors[conv.inputs[1]].dtype;
        const Expression channels = graph_.tensors[conv.inputs[1]].shape[0];
        // The legacy exporter does not say what the batch norm was called.
        const bool known = is_batch_norm(conv.module);
        Op norm;
        norm.kind = OpKind::batch_norm;
        norm.source = "BatchNormalization";
        norm.module = known ? conv.module : conv.module.empty() ? std::string{} : conv.module + ".batch_norm";
        norm.name = conv.name + "/batch_norm";
        if (known) conv.module = owner_of(graph_.tensors[conv.inputs[1]].name);
        conv.inputs.resize(2);

        Tensor between = graph_.tensors[result];
        between.name += "/unnormalized";
        graph_.tensors.push_back(std::move(between));
        const auto middle = static_cast<TensorId>(graph_.tensors.size() - 1);
        conv.outputs = {middle};
        norm.inputs = {middle};
        for (const std::string_view part : {"weight", "bias", "running_mean", "running_var"}) {
            norm.inputs.push_back(add_parameter(fmt::format("{}.{}", norm.name, part), dtype, channels));
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

}  // namespace

bool taken_apart(const Op& last, OpKind kind, const ModuleTypes& types) {
    if (kind == OpKind::attention) return last.name.find("scaled_dot_product_attention") != std::string::npos;
    const auto type = types.find(last.module);
    return type != types.end() && type->second == "torch.nn.modules.normalization.RMSNorm";
}

void restore_folded_layers(Graph& graph, const ModuleTypes& types) {
    Restoration restoration(graph, types);
    restoration.run();
    if (restoration.restored() > 0) {
        graph.warnings.push_back(fmt::format(
            "{} batch normalisations that the exporter folded into convolutions are put back", restoration.restored()));
    }
}

}  // namespace ftax::onnx_import
