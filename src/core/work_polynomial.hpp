#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ftax/graph.hpp"

namespace ftax {

/// One term of a polynomial: coefficient × Π symbol^power, the powers in the order of WorkPolynomial::symbols.
struct PolynomialTerm {
    double coefficient = 0;
    std::vector<int> powers;
};

/// The work of a graph as a function of the dimensions that are open; highest powers first.
struct WorkPolynomial {
    std::vector<std::string> symbols;
    std::vector<PolynomialTerm> flops, bytes;  ///< as total_work counts them, bytes read and written together
    /// Whether it holds between the sizes of the grid too. Otherwise it holds for multiples of `step`: shapes round in
    /// between.
    bool everywhere = true;
    std::int64_t step = 1;
};

/// Finds the polynomial by evaluating total_work on a grid of small sizes, and checks it beside the grid. Nothing for a
/// graph of more than four open symbols, of other functions or of powers above three, or where a size of the grid is
/// none of the model. `bindings` are the symbols that have a value.
[[nodiscard]] std::optional<WorkPolynomial> work_polynomial(const Graph& graph, const ShapeBindings& bindings);

}  // namespace ftax
