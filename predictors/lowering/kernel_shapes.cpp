#include "predictors/lowering/kernel_shapes.hpp"

#include <algorithm>

#include "graphs/base/checked_math.hpp"
#include "graphs/ir/operands.hpp"
#include "predictors/kernels/bound_kernel.hpp"

namespace ftax {

KernelShape kernel_shape(const Graph& graph, const Schedule& schedule, const Kernel& kernel, const BoundShapes& bound) {
    KernelShape shape = kernel.shape;
    const BoundKernel operands{graph, schedule.storage, schedule.weight_bytes, kernel, bound};
    std::visit([&](auto& s) { bind_dimensions(s, operands); }, shape);
    return shape;
}

bool is_launched(const Graph& graph, const Kernel& kernel, const BoundShapes& bound) {
    if (kernel.when == LaunchCondition::always) return true;
    const Op& op = graph.ops[kernel.op];
    const Tensor& result = graph.tensors[op.outputs[0]];
    const auto read = [&]() -> const Tensor& { return graph.tensors[kernel.reads[0]]; };
    switch (kernel.when) {
        case LaunchCondition::always:
            return true;
        case LaunchCondition::unless_viewable:
            return !is_viewable(read(), graph.tensors[kernel.writes[0]], bound);
        case LaunchCondition::unless_contiguous:
            return !is_contiguous(graph.tensors[op.inputs[0]], bound);
        case LaunchCondition::unless_in_format_of_result:
            return is_channels_last(result, bound) ? !is_channels_last(read(), bound) : !is_contiguous(read(), bound);
        case LaunchCondition::within_longest:
        case LaunchCondition::beyond_longest: {
            const std::int64_t length =
                std::max(dim(graph.tensors[op.inputs[0]], bound, -2), dim(graph.tensors[op.inputs[1]], bound, -2));
            return (length <= kernel.longest) == (kernel.when == LaunchCondition::within_longest);
        }
        case LaunchCondition::beyond_few_rows:
            return element_count(result, bound) > kernel.longest * dim(result, bound, -1);
        case LaunchCondition::unless_batch_merges:
            return !leading_dims_merge(read(), bound);
    }
    return true;
}

std::int64_t repetitions(const Graph& graph, const Kernel& kernel, const BoundShapes& bound) {
    const Op& op = graph.ops[kernel.op];
    if (op.kind != OpKind::recurrent || kernel.part == OperatorPart::whole) return 1;
    const RecurrentDimensions d = recurrent_dimensions(graph, op, bound);
    if (kernel.part == OperatorPart::later_input_products) return d.layers - 1;
    if (kernel.part == OperatorPart::steps) return checked_multiply(d.layers, d.directions);
    const bool each_step = kernel.part == OperatorPart::state_product || kernel.part == OperatorPart::state_update;
    return each_step ? checked_multiply(checked_multiply(d.steps, d.layers), d.directions) : 1;
}

std::vector<CountedKernel> list_kernels(const Graph& graph, const Schedule& schedule, const BoundShapes& bound) {
    std::vector<CountedKernel> listed;
    for (const Kernel& kernel : schedule.kernels) {
        if (!is_launched(graph, kernel, bound)) continue;
        const auto count = static_cast<double>(repetitions(graph, kernel, bound));
        const KernelShape shape = kernel_shape(graph, schedule, kernel, bound);
        const auto same = std::ranges::find_if(
            listed, [&](const CountedKernel& other) { return other.path == kernel.path && other.shape == shape; });
        if (same == listed.end()) {
            listed.push_back({shape, kernel.path, count});
        } else {
            same->count += count;
        }
    }
    return listed;
}

}  // namespace ftax
