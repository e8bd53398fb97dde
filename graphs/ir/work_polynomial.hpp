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

/// The work of a graph as a function of its unbound dimensions; highest powers first.
struct WorkPolynomial {
    std::vector<std::string> symbols;
    std::vector<PolynomialTerm> flops, bytes;  ///< as in total_work; bytes are read + written
    /// True if it also holds between the sizes of the grid, else for multiples of `step`, since shapes are rounded.
    bool everywhere = true;
    std::int64_t step = 1;
};

/// Finds the polynomial by evaluating total_work on a grid of small sizes, and verifies it off the grid. nullopt for
/// more than four unbound symbols, non-polynomial functions, powers above three, or grid sizes that the model does not
/// support. `bindings` are the bound symbols.
[[nodiscard]] std::optional<WorkPolynomial> work_polynomial(const Graph& graph, const ShapeBindings& bindings);

}  // namespace ftax
