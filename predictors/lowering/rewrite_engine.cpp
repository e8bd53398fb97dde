#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "graphs/ir/rewriting/graph_edits.hpp"
#include "predictors/lowering/rewrites.hpp"

// Engine builders' rewrites of transformers: fused attention, sibling layers in one product, no data movement between.

namespace ftax::rewrites {
namespace {

/// Operators whose kernels accept any strides.
bool is_strided(const Op& op) {
    return op.is(OpKind::matmul, OpKind::attention, OpKind::linear);
}

bool is_movement(const Op& op) {
    return op.is(OpKind::transpose, OpKind::slice, OpKind::split, OpKind::expand);
}

/// Returns true if two layers of one input can be merged: same reduction, both with or both without bias, 2-D weights.
bool may_merge(const Graph& graph, const Op& a, const Op& b) {
    const auto bias = [](const Op& op) { return op.inputs.size() > 2 && op.inputs[2] != no_tensor; };
    const auto plain = [&](const Op& op) {
        const Tensor& weight = graph.tensors[op.inputs[1]];
        return op.inputs.size() <= 3 && weight.role == TensorRole::weight && weight.shape.size() == 2 &&
               op.text(epilogue).empty() && !graph.tensors[op.outputs[0]].shape.empty();
    };
    return a.inputs[0] == b.inputs[0] && plain(a) && plain(b) && bias(a) == bias(b) && a.attributes == b.attributes;
}

/// Replaces the layers of `group` (in order, with one input) by one product and slices for its readers.
void append_merged(Graph& graph, const std::vector<OpId>& group, std::vector<Op>& ops) {
    Op merged = graph.ops[group.front()];
    Op pieces{.kind = OpKind::split, .name = merged.name + "/split", .source = merged.source, .module = merged.module};
    Expression width = graph.tensors[merged.outputs[0]].shape.back();
    pieces.outputs = merged.outputs;
    for (std::size_t i = 1; i < group.size(); ++i) {
        const Op& layer = graph.ops[group[i]];
        width = graph.expressions.add(width, graph.tensors[layer.outputs[0]].shape.back());
        merged.name += " + " + layer.name;
        pieces.outputs.push_back(layer.outputs[0]);
    }
    const auto widened = [&](TensorId id, std::size_t axis) {
        Tensor tensor = graph.tensors[id];
        tensor.name += "/merged";
        tensor.shape[axis] = width;
        return append(graph, std::move(tensor));
    };
    const std::size_t last = graph.tensors[merged.outputs[0]].shape.size() - 1;
    pieces.attributes = {{"axis", static_cast<std::int64_t>(last)}};
    merged.inputs[1] = widened(merged.inputs[1], merged.integer("transposed_weight", 1) != 0 ? 0 : 1);
    if (merged.inputs.size() > 2 && merged.inputs[2] != no_tensor) merged.inputs[2] = widened(merged.inputs[2], 0);
    pieces.inputs = merged.outputs = {widened(merged.outputs[0], last)};
    graph.tensors[merged.outputs[0]].strides.clear();
    ops.push_back(std::move(merged));
    ops.push_back(std::move(pieces));
}

}  // namespace

/// Merges layers with the same input (queries, keys and values; gate and up) into one; its readers take slices. Source:
/// TensorRT, demo/BERT (one product for all three); Myelin, horizontal fusion; vLLM, QKVParallelLinear and
/// MergedColumnParallelLinear.
void merge_sibling_layers(Graph& graph) {
    std::vector<std::vector<OpId>> groups(graph.ops.size());  // indexed by the first member
    std::vector<bool> merged(graph.ops.size(), false);
    std::vector<std::vector<OpId>> layers_of(graph.tensors.size());
    for (OpId id = 0; id < graph.ops.size(); ++id) {
        const Op& op = graph.ops[id];
        if (op.kind == OpKind::linear && op.outputs.size() == 1) layers_of[op.inputs[0]].push_back(id);
    }
    for (const std::vector<OpId>& layers : layers_of) {
        for (std::size_t i = 0; i < layers.size(); ++i) {
            if (merged[layers[i]]) continue;
            std::vector<OpId> group{layers[i]};
            for (std::size_t j = i + 1; j < layers.size(); ++j)
                if (!merged[layers[j]] && may_merge(graph, graph.ops[layers[i]], graph.ops[layers[j]]))
                    group.push_back(layers[j]);
            if (group.size() == 1) continue;
            for (const OpId id : group) merged[id] = true;
            groups[layers[i]] = std::move(group);
        }
    }
    std::vector<Op> ops;
    ops.reserve(graph.ops.size());
    for (OpId id = 0; id < graph.ops.size(); ++id) {
        if (!groups[id].empty()) {
            append_merged(graph, groups[id], ops);
        } else if (!merged[id]) {
            ops.push_back(std::move(graph.ops[id]));
        }
    }
    graph.ops = std::move(ops);
    assign_producers(graph);
}

/// Lets products and attention read and write transposed, sliced and expanded data in place. Source: layers of TensorRT
/// engines; none moves data in a BERT.
void fold_movement(Graph& graph) {
    assign_producers(graph);
    const auto passes = [](const Op& op) { return op.kind == OpKind::reshape || is_movement(op); };
    const std::vector<bool> strided = read_only_by(graph, is_strided, passes);
    std::vector<bool> written_strided(graph.tensors.size(), false);
    for (Op& op : graph.ops) {
        if (is_strided(op) || (passes(op) && !op.inputs.empty() && written_strided[op.inputs[0]]))
            for (const TensorId output : op.outputs) written_strided[output] = true;
        if (!is_movement(op)) continue;
        const bool read_so = std::ranges::all_of(op.outputs, [&](TensorId t) { return strided[t]; });
        const bool written_so = !op.inputs.empty() && op.inputs[0] != no_tensor && written_strided[op.inputs[0]];
        if (read_so || written_so) op.kind = OpKind::reshape;
    }
}

/// Fuses additions into norms that read them; if `writes_sum`, also into RMS norms, and sums that others read.
static void fuse_residuals(Graph& graph, bool writes_sum) {
    assign_producers(graph);
    std::vector<std::size_t> norms_of(graph.tensors.size(), 0);
    const auto is_norm = [&](const Op& op) {
        return op.kind == OpKind::layer_norm || (writes_sum && op.kind == OpKind::rms_norm);
    };
    for (const Op& op : graph.ops)
        if (is_norm(op)) ++norms_of[op.inputs[0]];
    const std::vector<int> readers = count_readers(graph);
    std::vector<bool> removed(graph.ops.size(), false);
    for (OpId id = 0; id < graph.ops.size(); ++id) {
        Op& norm = graph.ops[id];
        if (!is_norm(norm)) continue;
        const TensorId sum = norm.inputs[0];
        const OpId addition = graph.tensors[sum].producer;
        if (addition == no_op || norms_of[sum] != 1 || (readers[sum] > 1 && !writes_sum)) continue;
        const Op& add = graph.ops[addition];
        if (!computes(add, "add") || add.inputs.size() != 2) continue;
        // Other readers of the sum run after the norm, which also writes it.
        const bool early = std::any_of(graph.ops.begin() + addition, graph.ops.begin() + id,
                                       [&](const Op& op) { return std::ranges::count(op.inputs, sum) > 0; });
        if (early) continue;
        norm.inputs[0] = add.inputs[0];
        norm.inputs.push_back(add.inputs[1]);
        if (readers[sum] > 1) norm.outputs.push_back(sum);
        removed[addition] = true;
    }
    erase(graph, removed);
}

/// Fuses a residual addition into the norm that reads it, which also writes the sum if it has other readers.
/// Source: TensorRT, CustomSkipLayerNormPluginDynamic; Myelin's layers of residual and norm.
void fuse_residual_layer_norm(Graph& graph) {
    fuse_residuals(graph, true);
}

/// As fuse_residual_layer_norm, for sums without other readers. Source: ONNX Runtime, SkipLayerNormFusion.
void fuse_skip_layer_norm(Graph& graph) {
    fuse_residuals(graph, false);
}

/// Renames operators to TensorRT's layers (IEngineInspector, trtexec --dumpProfile).
void name_engine_layers(Graph& graph) {
    const auto with_epilogue = [](const Op& op, std::string name) {
        if (op.inputs.size() > 2 && op.inputs[2] != no_tensor) name += " + Bias";
        for (const Attribute& attribute : op.attributes) {
            const auto* function = std::get_if<std::string>(&attribute.value);
            if (attribute.name != epilogue || function == nullptr) continue;
            if (*function == quantized_result) continue;
            name += function->starts_with("gelu") ? " + GELU" : *function == "add" ? " + Add" : " + ReLU";
        }
        return name;
    };
    for (Op& op : graph.ops) {
        using enum OpKind;
        if (op.is(linear, matmul)) op.source = with_epilogue(op, "MatrixMultiply");
        if (op.is(conv)) op.source = with_epilogue(op, "Convolution");
        if (op.is(conv_transpose)) op.source = with_epilogue(op, "Deconvolution");
        if (op.is(attention)) op.source = "CustomQKVToContext (fmha)";
        if (op.is(layer_norm)) op.source = op.inputs.size() > 3 ? "CustomSkipLayerNorm" : "LayerNorm";
        if (op.is(batch_norm)) op.source = "Scale";
        if (op.is(softmax)) op.source = "SoftMax";
        if (op.is(pointwise, cast)) op.source = "PointWise";
        if (op.is(embedding, gather)) op.source = "Gather";
        if (op.is(pool, global_pool)) op.source = "Pooling";
        if (op.is(reduce)) op.source = "Reduce";
        if (op.is(slice, split, expand)) op.source = "Slice";
        if (op.is(transpose)) op.source = "Shuffle";
        if (op.is(copy)) op.source = "Reformat";
    }
}

}  // namespace ftax::rewrites
