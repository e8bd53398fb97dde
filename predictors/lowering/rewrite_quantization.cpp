#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graphs/ir/operands.hpp"
#include "graphs/ir/rewriting/graph_edits.hpp"
#include "predictors/lowering/rewrites.hpp"

// Engine builders' handling of QuantizeLinear/DequantizeLinear pairs of an ONNX file.

namespace ftax::rewrites {
namespace {

bool has_quantized_kernel(const Op& op) {
    return op.is(OpKind::conv, OpKind::conv_transpose, OpKind::linear, OpKind::matmul);
}

/// Operators that return values of their input and thus commute with quantisation.
/// Source: TensorRT, developer guide, "Q/DQ Layer-Placement Recommendations" (commuting layers).
bool commutes(const Op& op) {
    if (is_view(op) || op.kind == OpKind::concat || op.kind == OpKind::copy) return true;
    return (op.kind == OpKind::pool || op.kind == OpKind::global_pool) && op.text("function") == "max";
}

/// Operators with kernels that read and write narrow values. Source: as above, "quantizable layers".
bool is_quantizable(const Op& op) {
    using enum OpKind;
    return has_quantized_kernel(op) || commutes(op) || op.is(pointwise, pool, global_pool, resize);
}

/// Returns the precision of products with operands of this type; empty if there is none.
std::string_view precision_of(DType type) {
    if (type == DType::i8 || type == DType::u8) return "int8";
    return type == DType::f8e4m3 ? "fp8" : "";
}

class Folding {
  public:
    explicit Folding(Graph& graph)
        : graph_(graph),
          stands_for_(graph.tensors.size()),
          removed_(graph.ops.size(), false),
          readers_(readers_of(graph)) {
        for (TensorId id = 0; id < stands_for_.size(); ++id) stands_for_[id] = id;
        assign_producers(graph);
    }

    void run() {
        for (Op& op : graph_.ops) mark_contraction(op);
        for (OpId id = 0; id < graph_.ops.size(); ++id)
            if (graph_.ops[id].kind == OpKind::quantize && !removed_[id]) fold_quantize(id);
        for (OpId id = 0; id < graph_.ops.size(); ++id)
            if (graph_.ops[id].kind == OpKind::dequantize) fold_dequantize(id);
        for (Op& op : graph_.ops)
            for (TensorId& input : op.inputs)
                if (input != no_tensor) input = stands_for_[input];
        for (OpId id = static_cast<OpId>(graph_.ops.size()); id-- > 0;) narrow_inputs(graph_.ops[id]);
        erase(graph_, removed_);
    }

  private:
    /// Returns the narrow tensor that a DequantizeLinear converts to this one; nullopt if there is none.
    std::optional<TensorId> narrow(TensorId id) const {
        if (id == no_tensor || graph_.tensors[id].producer == no_op) return std::nullopt;
        const Op& op = graph_.ops[graph_.tensors[id].producer];
        if (op.kind != OpKind::dequantize || precision_of(graph_.tensors[op.inputs[0]].dtype).empty())
            return std::nullopt;
        return op.inputs[0];
    }
    bool is_known(TensorId id) const {
        return graph_.tensors[id].role == TensorRole::weight || graph_.tensors[id].role == TensorRole::constant;
    }
    bool is_output(TensorId id) const { return std::ranges::count(graph_.outputs, id) > 0; }

    /// A product is quantised if both operands are.
    void mark_contraction(Op& op) const {
        if (!has_quantized_kernel(op) || op.inputs.size() < 2) return;
        const auto a = narrow(op.inputs[0]), b = narrow(op.inputs[1]);
        if (!a || !b) return;
        op.attributes.push_back({std::string(operands), std::string(precision_of(graph_.tensors[*a].dtype))});
    }

    /// Returns true if the kernel that writes this tensor can write the narrow type; a full-precision product cannot.
    bool writes_narrow(TensorId id) const {
        const OpId producer = graph_.tensors[id].producer;
        if (producer == no_op || !is_quantizable(graph_.ops[producer])) return false;
        const Op& op = graph_.ops[producer];
        if (has_quantized_kernel(op)) return !op.text(operands).empty();
        const bool joins = op.kind == OpKind::pointwise && op.inputs.size() == 1 && op.inputs[0] != no_tensor;
        if (!joins) return true;
        const OpId before = graph_.tensors[op.inputs[0]].producer;
        return before == no_op || !has_quantized_kernel(graph_.ops[before]) || writes_narrow(op.inputs[0]);
    }

    void fold_quantize(OpId id) {
        const Op& op = graph_.ops[id];
        const TensorId wide = op.inputs[0];
        const DType type = graph_.tensors[op.outputs[0]].dtype;
        if (precision_of(type).empty()) return;
        if (is_known(wide)) {
            graph_.tensors[op.outputs[0]].role = TensorRole::weight;
            removed_[id] = true;
            return;
        }
        // A value is quantised once for all readers.
        for (const OpId other : readers_[wide]) {
            if (other >= id || removed_[other] || graph_.ops[other].kind != OpKind::quantize) continue;
            if (graph_.tensors[graph_.ops[other].outputs[0]].dtype != type) continue;
            stands_for_[op.outputs[0]] = graph_.ops[other].outputs[0];
            removed_[id] = true;
            return;
        }
        const bool alone = std::ranges::all_of(readers_[wide], [&](OpId reader) {
            return graph_.ops[reader].kind == OpKind::quantize &&
                   graph_.tensors[graph_.ops[reader].outputs[0]].dtype == type;
        });
        if (!alone || is_output(wide) || !writes_narrow(wide)) return;
        Op& producer = graph_.ops[graph_.tensors[wide].producer];
        // Operators after a quantised result are not fused into the product.
        if (has_quantized_kernel(producer))
            producer.attributes.push_back({std::string(epilogue), std::string(quantized_result)});
        producer.outputs[0] = op.outputs[0];
        graph_.tensors[op.outputs[0]].producer = graph_.tensors[wide].producer;
        for (const OpId reader : readers_[wide]) {
            stands_for_[graph_.ops[reader].outputs[0]] = op.outputs[0];
            removed_[reader] = true;
        }
    }

    /// Readers with kernels for narrow values read them directly.
    void fold_dequantize(OpId id) {
        const Op& op = graph_.ops[id];
        const TensorId wide = op.outputs[0];
        bool needed = is_output(wide);
        for (const OpId reader : readers_[wide]) {
            Op& taker = graph_.ops[reader];
            const bool bias = has_quantized_kernel(taker) && taker.inputs[0] != wide && taker.inputs[1] != wide;
            const bool quantised = !precision_of(graph_.tensors[op.inputs[0]].dtype).empty() && is_quantizable(taker) &&
                                   (!has_quantized_kernel(taker) || !taker.text(operands).empty());
            if (!bias && !quantised) {
                needed = true;
                continue;
            }
            std::ranges::replace(taker.inputs, wide, op.inputs[0]);
        }
        removed_[id] = !needed || is_known(op.inputs[0]);
        if (removed_[id] && needed) graph_.tensors[wide].role = TensorRole::weight;
    }

    /// Quantisation moves up through operators that commute with it.
    void narrow_inputs(const Op& op) {
        if (!commutes(op) || op.outputs.empty()) return;
        const DType type = graph_.tensors[op.outputs[0]].dtype;
        if (precision_of(type).empty()) return;
        for (const TensorId input : op.inputs) {
            if (input == no_tensor || is_known(input) || readers_[input].size() != 1 || is_output(input)) continue;
            if (is_float(graph_.tensors[input].dtype) && writes_narrow(input)) graph_.tensors[input].dtype = type;
        }
    }

    Graph& graph_;
    std::vector<TensorId> stands_for_;
    std::vector<bool> removed_;
    std::vector<std::vector<OpId>> readers_;  ///< readers of each tensor
};

}  // namespace

/// Folds QuantizeLinear/DequantizeLinear pairs into adjacent operators: products of two quantised operands run in the
/// narrow type, and results read only by quantised operators are written in it, also through data movement and maximum;
/// the remaining quantisations are separate kernels. A full-precision product cannot write narrow values, and a product
/// with a quantised result has no further epilogue. Source: TensorRT, developer guide, "Explicit Quantization".
void fold_quantization(Graph& graph) {
    if (std::ranges::find(graph.ops, OpKind::dequantize, &Op::kind) == graph.ops.end()) return;
    Folding(graph).run();
    assign_producers(graph);
}

}  // namespace ftax::rewrites
