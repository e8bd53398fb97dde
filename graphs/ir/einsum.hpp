#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ftax {

/// An equation of einsum. The dimensions of an operand or of the result have a label each: a letter, or a control
/// character where an ellipsis stands for them.
struct EinsumEquation {
    std::vector<std::string> operands;
    std::string result;
    bool has_arrow = false;
    std::string problem;  ///< why it does not fit the operands; empty if it does
};

/// Reads "bij,...jk->b...k" for operands with `ranks` dimensions. Without an arrow the result has the ellipsis and then
/// the labels that occur once, in alphabetical order. Source: numpy.einsum, torch.einsum, ONNX Einsum.
[[nodiscard]] EinsumEquation read_einsum(std::string_view text, std::span<const std::size_t> ranks);

/// What the labels of two operands are to their product as a batch of matrices, in the order of `order`.
struct EinsumRoles {
    std::string batch;          ///< of both operands and the result
    std::string rows, columns;  ///< of the first or the second operand alone
    std::string summed;         ///< of both operands, not of the result
};
[[nodiscard]] EinsumRoles einsum_roles(std::string_view a, std::string_view b, std::string_view result,
                                       std::string_view order);

/// Position in `from` of each label of `to`.
[[nodiscard]] std::vector<std::int64_t> einsum_permutation(std::string_view from, std::string_view to);

}  // namespace ftax
