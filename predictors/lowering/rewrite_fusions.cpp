#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graphs/ir/canonical/canonical.hpp"
#include "graphs/ir/operands.hpp"
#include "graphs/ir/rewriting/graph_edits.hpp"
#include "predictors/lowering/launch_rules.hpp"
#include "predictors/lowering/rewrites.hpp"

// Recognition and fusion of layers.

namespace ftax::rewrites {
namespace {

bool is_convolution(const Op& op) {
    return op.kind == OpKind::conv || op.kind == OpKind::conv_transpose;
}
bool is_contraction(const Op& op) {
    return is_convolution(op) || op.kind == OpKind::linear;
}
bool is_elementwise(const Op& op) {
    return op.kind == OpKind::pointwise || op.kind == OpKind::cast;
}

std::vector<TensorId> activations_of(const Graph& graph, const Op& op) {
    std::vector<TensorId> result;
    for (const TensorId input : present(op.inputs)) {
        const TensorRole role = graph.tensors[input].role;
        if (role == TensorRole::activation || role == TensorRole::input) result.push_back(input);
    }
    return result;
}

/// Fuses each operator for which `match` returns a predecessor into that predecessor, which then writes the result.
/// `match` may change the predecessor's inputs.
template <class Match>
void absorb(Graph& graph, const Match& match) {
    assign_producers(graph);
    std::vector<int> readers = count_readers(graph);
    std::vector<bool> removed(graph.ops.size(), false);
    for (OpId id = 0; id < graph.ops.size(); ++id) {
        const OpId into = match(id, readers);
        if (into == no_op) continue;
        const TensorId result = graph.ops[id].outputs[0];
        graph.ops[into].outputs[0] = result;
        graph.tensors[result].producer = into;
        removed[id] = true;
    }
    erase(graph, removed);
}

void mark_epilogue(Op& contraction, std::string_view function) {
    contraction.attributes.push_back({std::string(epilogue), std::string(function)});
}

/// Clipping activations, which a kernel can apply while writing, without a table or exponential.
bool is_clipping(const Op& op) {
    return computes(op, "relu", "relu6", "clip", "clamp", "leaky_relu");
}

/// Fuses clipping activations, if the library can, or additions of two tensors into the preceding contraction.
template <class Accept>
void absorb_epilogues(Graph& graph, const Accept& accept, bool clips, std::string_view addition) {
    absorb(graph, [&](OpId id, const std::vector<int>& readers) -> OpId {
        const Op& op = graph.ops[id];
        if (op.kind != OpKind::pointwise || op.outputs.size() != 1) return no_op;
        const std::vector<TensorId> inputs = activations_of(graph, op);
        if (inputs.size() == 1 && clips) {
            const OpId into = is_clipping(op) ? sole_producer(graph, readers, inputs[0], accept) : no_op;
            if (into != no_op) mark_epilogue(graph.ops[into], op.text("function"));
            return into;
        }
        if (inputs.size() != 2 || op.text("function") != addition) return no_op;
        // When the last of the contractions runs, the other summand is available.
        for (const auto& [own, other] : {std::pair(inputs[0], inputs[1]), std::pair(inputs[1], inputs[0])}) {
            const OpId into = sole_producer(graph, readers, own, accept);
            const OpId before = graph.tensors[other].producer;
            if (into == no_op || (before != no_op && before > into)) continue;
            if (graph.ops[into].inputs.size() < 3) graph.ops[into].inputs.resize(3, no_tensor);
            graph.ops[into].inputs.push_back(other);
            mark_epilogue(graph.ops[into], addition);
            return into;
        }
        return no_op;
    });
}

/// Replaces each run of operators that belong to its first one by the operator that `fuse` makes of them, if any.
template <class Belongs, class Fuse>
void fuse_runs(Graph& graph, const Belongs& belongs, const Fuse& fuse) {
    const std::vector<int> readers = count_readers(graph);
    std::vector<bool> removed(graph.ops.size(), false);
    for (std::size_t first = 0, end = 0; first < graph.ops.size(); first = std::max(end, first + 1)) {
        end = first;
        while (end < graph.ops.size() && belongs(graph.ops[first], graph.ops[end])) ++end;
        if (end < first + 2) continue;
        std::optional<Op> fused = fuse(std::span(graph.ops).subspan(first, end - first));
        if (!fused) continue;
        fused->name = graph.ops[first].name;
        fused->module = graph.ops[first].module;
        std::vector<TensorId> written;
        std::vector<int> read_inside(graph.tensors.size(), 0);
        for (std::size_t id = first; id < end; ++id) {
            const Op& op = graph.ops[id];
            for (const TensorId input : present(op.inputs)) {
                ++read_inside[input];
                const bool known = std::ranges::count(written, input) + std::ranges::count(fused->inputs, input) > 0;
                if (!known) fused->inputs.push_back(input);
            }
            written.insert(written.end(), op.outputs.begin(), op.outputs.end());
            removed[id] = id + 1 < end;
        }
        for (const TensorId tensor : written)
            if (readers[tensor] > read_inside[tensor]) fused->outputs.push_back(tensor);
        graph.ops[end - 1] = std::move(*fused);
    }
    erase(graph, removed);
}

template <class Fusible>
void fuse_into_pointwise(Graph& graph, const Fusible& fusible) {
    fuse_runs(
        graph, [&](const Op&, const Op& op) { return fusible(op); },
        [](std::span<const Op>) {
            return std::optional(Op{.kind = OpKind::pointwise,
                                    .source = "fused",
                                    .attributes = {{"function", std::string(fused_function)}}});
        });
}

}  // namespace

/// Recognises layers in their decomposed form: GELU, LayerNorm, products with a weight and a sum.
/// Source: ONNX Runtime, GeluFusion, FastGeluFusion, LayerNormFusion, MatMulAddFusion.
void recognise_layers(Graph& graph) {
    canonicalize(graph, SpelledOut::recognise);
}

/// Folds a batch norm into the convolution or linear layer whose only reader it is; a bias remains.
/// Source: ONNX Runtime, ConvBNFusion; TensorRT, layer fusion "convolution and scale".
void fold_batch_norm(Graph& graph) {
    absorb(graph, [&](OpId id, const std::vector<int>& readers) -> OpId {
        const Op& norm = graph.ops[id];
        if (!scales_channels(norm)) return no_op;
        const OpId into = sole_producer(graph, readers, norm.inputs[0], is_contraction);
        if (into == no_op) return no_op;
        Op& contraction = graph.ops[into];
        const TensorId shift = norm.inputs.size() > 2 ? norm.inputs[2] : no_tensor;
        if (contraction.inputs.size() < 3) contraction.inputs.push_back(shift);
        return into;
    });
}

/// Fuses a following relu, and a residual addition in between, into the epilogue of a convolution.
/// Source: ONNX Runtime, ConvActivationFusion and ConvAddActivationFusion (FusedConv supports relu on CUDA).
void fuse_conv_relu(Graph& graph) {
    // FusedConv does not support an addition without relu: mark additions followed by a relu.
    absorb(graph, [&](OpId id, const std::vector<int>& readers) -> OpId {
        const Op& relu = graph.ops[id];
        if (!is_clipping(relu)) return no_op;
        const OpId into = sole_producer(graph, readers, relu.inputs[0],
                                        [](const Op& op) { return is_convolution(op) || computes(op, "add"); });
        if (into == no_op) return no_op;
        if (computes(graph.ops[into], "add")) graph.ops[into].attributes = {{"function", "add_relu"}};
        if (is_convolution(graph.ops[into])) mark_epilogue(graph.ops[into], "relu");
        return into;
    });
    absorb_epilogues(graph, is_convolution, false, "add_relu");
}

/// As fuse_conv_relu, for any clipping activation, and for linear layers. Sigmoid and swish stay separate kernels.
/// Source: TensorRT 8, layer fusions "convolution and ReLU" and "convolution and clip".
void fuse_epilogue(Graph& graph) {
    const auto open = [](const Op& op) { return is_contraction(op) && op.text(epilogue) != quantized_result; };
    absorb_epilogues(graph, open, true, "add");
}

/// Fuses a following GELU or ReLU into a linear layer (TensorRT, demo/BERT).
void fuse_activation(Graph& graph) {
    absorb(graph, [&](OpId id, const std::vector<int>& readers) -> OpId {
        const Op& op = graph.ops[id];
        if (!computes(op, "gelu", "gelu_tanh", "relu") || op.inputs.size() != 1) return no_op;
        const OpId into = sole_producer(graph, readers, op.inputs[0], [](const Op& layer) {
            return layer.kind == OpKind::linear && layer.text(epilogue).empty();
        });
        if (into != no_op) mark_epilogue(graph.ops[into], op.text("function"));
        return into;
    });
}

/// Fuses a clipping activation into a batch norm that was not folded into a convolution.
/// Source: TensorRT, layer fusion "scale and activation".
void fuse_scale_and_activation(Graph& graph) {
    absorb(graph, [&](OpId id, const std::vector<int>& readers) -> OpId {
        const Op& op = graph.ops[id];
        return is_clipping(op) ? sole_producer(graph, readers, op.inputs[0], scales_channels) : no_op;
    });
}

/// Fuses consecutive elementwise operators; intermediate results cause no traffic. Source: TensorRT, pointwise fusion.
void fuse_pointwise(Graph& graph) {
    fuse_into_pointwise(graph, is_elementwise);
}

/// As fuse_pointwise, for elementwise operators and batch norms.
/// Source: TorchScript's NVFuser (PyTorch 1.12), which leaves single operators alone.
void fuse_pointwise_and_batch_norm(Graph& graph) {
    fuse_into_pointwise(graph, [](const Op& op) { return is_elementwise(op) || scales_channels(op); });
}

bool are_one_node(const Op& a, const Op& b) {
    if (!a.source.starts_with("com.microsoft::") || a.source != b.source) return false;
    const auto node = [](const Op& op) { return std::string_view(op.name).substr(0, op.name.rfind('/')); };
    return node(a) == node(b) || node(a) == b.name || a.name == node(b);
}

/// Merges consecutive data movement within a com.microsoft node into one kernel: splitting packed queries, keys and
/// values and moving their heads to the front. Source: ONNX Runtime, contrib_ops/cuda/bert (LaunchTransposeQkv,
/// AddBiasTransposeQKV, LaunchTransCtx).
void join_movement_of_nodes(Graph& graph) {
    const auto moves = [](const Op& op) { return is_view(op) || op.kind == OpKind::copy; };
    fuse_runs(
        graph, [&](const Op& first, const Op& op) { return moves(op) && are_one_node(first, op); },
        [](std::span<const Op> run) {
            const bool reorders =
                !std::ranges::all_of(run, [](const Op& op) { return op.is(OpKind::reshape, OpKind::identity); });
            return reorders ? std::optional(Op{.kind = OpKind::copy, .source = run[0].source}) : std::nullopt;
        });
}

}  // namespace ftax::rewrites
