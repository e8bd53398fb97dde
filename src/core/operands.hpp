#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ftax/graph.hpp"

namespace ftax {

/// Says which input or output `op` lacks of those that its kind cannot do without; nullopt where it has them all.
[[nodiscard]] std::optional<std::string> missing_operand(const Op& op);

/// Throws Error{model} naming the first operator that lacks an operand, whose perm (transpose) or axes (slice, roll)
/// its input does not have, or that convolves what has no channels.
void check_operands(const Graph& graph);

/// Whether the operator only tells where its result lies: a framework that works with strides launches nothing for it.
[[nodiscard]] bool is_view(const Op& op);

/// How many of its first inputs a scatter (index_copy, slice_scatter …) writes into: one, or its attribute `bases`.
[[nodiscard]] std::size_t scatter_bases(const Op& scatter);
/// The operands of a scatter whose elements it writes into others, one for each that it writes into: its last. Empty
/// where it makes a new tensor, or writes a number everywhere.
[[nodiscard]] std::vector<TensorId> scattered(const Graph& graph, const Op& scatter);

/// What a recurrent operator works on.
struct RecurrentDimensions {
    std::int64_t steps = 1, batch = 1;
    std::int64_t input = 1;   ///< values of a step of one sequence; `hidden * directions` from the second layer on
    std::int64_t hidden = 1;  ///< values of its state, in each direction
    std::int64_t gates = 1;   ///< values of a step before they become one of the state: 4 in an LSTM, 3 in a GRU
    std::int64_t layers = 1, directions = 1;
};
/// Reads them from x[steps,batch,input] ({batch_first}: x[batch,steps,input]), from packed sequences x[tokens,input],
/// sizes of the batch at each step, or from x[batch,input] of a single step. What is not known counts as 1.
[[nodiscard]] RecurrentDimensions recurrent_dimensions(const Graph& graph, const Op& recurrent,
                                                       const BoundShapes& bound);

}  // namespace ftax
