#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ftax/graph.hpp"

namespace ftax {

/// Arithmetic and traffic of one operator, as the algorithm needs them: each operand counted once.
struct Work {
    std::int64_t flops = 0;  ///< a multiply-add counts as two (so MACs = flops / 2 for contractions)
    std::int64_t read_bytes = 0;
    std::int64_t write_bytes = 0;
};

/// Computes the work of `op`. Views, shape arithmetic and identities have none; broadcast operands count once.
/// Throws Error{limit} when a sum leaves int64.
/// Source: FLOP counts follow torch.utils.flop_counter for contractions; one flop per element and function otherwise.
[[nodiscard]] Work work_of(const Graph& graph, const Op& op, const BoundShapes& bound);

/// Operators whose work is a guess: without a rule, or of a tensor whose shape is not known.
[[nodiscard]] std::vector<bool> guessed_operators(const Graph& graph);
/// Share of the FLOPs that is no guess, or that share of the multiplied weights where it is smaller: an operator of
/// unknown rows has few FLOPs to count. Throws what work_of() throws.
[[nodiscard]] double modelled_flops(const Graph& graph, const BoundShapes& bound, const std::vector<bool>& guessed);
/// Says how many operators are guessed and why; empty where none is.
[[nodiscard]] std::vector<std::string> warnings_of_guesses(const Graph& graph, const std::vector<bool>& guessed);

/// Sums the work of all operators. Throws Error{limit} when a sum leaves int64.
[[nodiscard]] Work total_work(const Graph& graph, const BoundShapes& bound);

}  // namespace ftax
