#include "predictors/lowering/autocast.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>

#include "graphs/base/mapped.hpp"
#include "graphs/ir/rewriting/graph_edits.hpp"
#include "predictors/lowering/rewrites.hpp"

namespace ftax::autocast {
namespace {

constexpr std::array<std::string_view, 4> summing_functions{"sum", "prod", "norm", "cumsum"};

Policy policy_of(const Op& op) {
    using enum OpKind;
    if (op.is(conv, conv_transpose, linear, matmul, attention, recurrent)) return Policy::lower;
    if (op.is(layer_norm, group_norm)) return Policy::full;
    if (op.is(softmax, log_softmax)) return Policy::full_result;
    if (computes(op, "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log1p", "log2", "pow", "rsqrt",
                 "reciprocal", "softplus", "tan"))
        return Policy::full;
    if (op.is(reduce, cumulative) && std::ranges::count(summing_functions, op.text("function")) > 0)
        return Policy::full_result;
    return Policy::widest;
}

}  // namespace

std::vector<Policy> policies(const Graph& graph) {
    std::unordered_set<std::string_view> fast_modules;
    for (const ModuleCall& call : graph.module_calls)
        if (call.type.starts_with("timm.")) fast_modules.insert(call.path);
    return mapped(graph.ops, [&](const Op& op) {
        const bool norm = op.kind == OpKind::layer_norm || op.kind == OpKind::group_norm;
        return norm && fast_modules.contains(op.module) ? Policy::lower : policy_of(op);
    });
}

void assign_storage(const Graph& graph, const std::vector<Policy>& policies, std::vector<DType>& storage) {
    const auto widest = [&](const Op& op) {
        DType type = DType::f16;
        bool any_float = false;
        for (const TensorId input : present(op.inputs)) {
            if (!is_float(storage[input])) continue;
            const Tensor& tensor = graph.tensors[input];
            // Parameters of norms and scalars do not widen a result.
            const bool of_norms =
                op.integer(rewrites::generated, 0) != 0 && op.integer(rewrites::parameter_operand, 0) == 0;
            const bool parameter = tensor.role == TensorRole::weight && (op.kind == OpKind::batch_norm || of_norms);
            if (parameter || tensor.shape.empty()) continue;
            any_float = true;
            if (storage[input] == DType::f32) type = DType::f32;
        }
        return any_float ? type : DType::f32;
    };
    // Generated kernels write what only contractions read, directly or as views, already cast.
    const std::vector<bool> lowered = read_only_by(
        graph,
        [&](const Op& op) { return policies[static_cast<std::size_t>(&op - graph.ops.data())] == Policy::lower; },
        [](const Op& op) {
            using enum OpKind;
            return op.is(reshape, transpose, identity, slice, split, expand);
        });
    for (OpId id = 0; id < graph.ops.size(); ++id) {
        const Op& op = graph.ops[id];
        const bool generated = op.integer(rewrites::generated, 0) != 0;
        DType type = DType::f32;
        // An engine's product writes f32 if its epilogue adds a tensor in f32.
        const bool adds = !op.text(rewrites::epilogue).empty() && op.inputs.size() > 2 && op.inputs.back() != no_tensor;
        const bool full = adds && graph.tensors[op.inputs.back()].role == TensorRole::activation &&
                          storage[op.inputs.back()] == DType::f32;
        if (policies[id] == Policy::lower && !full) type = DType::f16;
        if (policies[id] == Policy::widest) type = widest(op);
        // An explicit .float() widens; .half() and .to(x.dtype) keep the type of their operand under autocast.
        for (const TensorId output : op.outputs)
            if (is_float(storage[output])) storage[output] = generated && lowered[output] ? DType::f16 : type;
    }
}

}  // namespace ftax::autocast
