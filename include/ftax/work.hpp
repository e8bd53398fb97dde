#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ftax/graph.hpp"

namespace ftax {

/// Minimum arithmetic and memory traffic of one operator: each operand counted once.
struct Work {
    std::int64_t flops = 0;  ///< a multiply-add counts as two (so MACs = flops / 2 for contractions)
    std::int64_t read_bytes = 0;
    std::int64_t write_bytes = 0;
};

/// Computes the work of `op`. Views, shape arithmetic and identities have no work; broadcast operands count once.
/// Throws Error{limit} if a sum exceeds int64.
/// Source: FLOP counts follow torch.utils.flop_counter for contractions; one flop per element and function otherwise.
[[nodiscard]] Work work_of(const Graph& graph, const Op& op, const BoundShapes& bound);

/// Returns, for each operator, whether its work is guessed: it has no rule, or a tensor of unknown shape.
[[nodiscard]] std::vector<bool> guessed_operators(const Graph& graph);
/// Returns the share of FLOPs that is not guessed, or the same share of the multiplied weights if that is smaller:
/// operators with an unknown number of rows contribute few countable FLOPs. Throws what work_of() throws.
[[nodiscard]] double modelled_flops(const Graph& graph, const BoundShapes& bound, const std::vector<bool>& guessed);
/// Returns warnings with the number of guessed operators and the reasons; empty if none is guessed.
[[nodiscard]] std::vector<std::string> warnings_of_guesses(const Graph& graph, const std::vector<bool>& guessed);

/// Sums the work of all operators. Throws Error{limit} if a sum exceeds int64.
[[nodiscard]] Work total_work(const Graph& graph, const BoundShapes& bound);

}  // namespace ftax
