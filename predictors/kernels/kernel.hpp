#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ftax/graph.hpp"
#include "predictors/kernels/shapes.hpp"

namespace ftax {

/// Condition for launching a kernel: eager frameworks copy only if a view cannot express the result, which depends on
/// the bound shapes (batch 1 lets more dimensions merge than batch 2).
enum class LaunchCondition : std::uint8_t {
    always,
    unless_viewable,      ///< a reshape of `reads[0]` to the shape of `writes[0]` needs a copy
    unless_batch_merges,  ///< the leading dimensions of `reads[0]` cannot become one batch dimension (torch.matmul)
    unless_contiguous,    ///< the operator's input is not contiguous, which the operator requires
    unless_in_format_of_result,  ///< `reads[0]` is not dense in the memory format (NCHW or NHWC) of the result
    within_longest,              ///< the attention's sequence is at most `longest`
    beyond_longest,
    beyond_few_rows,  ///< the result has more than `longest` rows
};

/// Part of an operator that a kernel computes, if there are several.
enum class OperatorPart : std::uint8_t {
    whole,
    scores,  ///< attention: scores
    softmax,
    values,
    input_products,        ///< recurrence: input product of the first layer, all steps at once
    later_input_products,  ///< the same for each later layer
    state_product,         ///< product with the state, per step, layer and direction
    state_update,          ///< gates and new state
    steps,                 ///< all steps of each layer and direction in one kernel
};

/// One kernel of a schedule. Its shape is a prototype: it holds all that the framework and its libraries decide, and
/// binding the graph's symbols fills in the dimensions (bound_kernel.hpp).
struct Kernel {
    KernelShape shape;
    MathPath path = MathPath::fp32;
    LaunchCondition when = LaunchCondition::always;
    std::int64_t longest = 0;  ///< see LaunchCondition
    OperatorPart part = OperatorPart::whole;
    OpId op = no_op;  ///< operator with the dimensions and attributes
    std::vector<TensorId> reads{}, writes{};
    TensorId strided_read = no_tensor;    ///< tensor whose elements are read one by one from memory sectors
    std::optional<DType> written_type{};  ///< type of `writes` if not the storage type: casts
};

}  // namespace ftax
