#include "src/core/operands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ftax/error.hpp"

namespace ftax {
namespace {

/// How many inputs and outputs a kind needs; one of each where it is not listed.
struct Needs {
    OpKind kind;
    std::size_t inputs, outputs;
};
constexpr std::array exceptions{
    Needs{OpKind::conv, 2, 1},    Needs{OpKind::conv_transpose, 2, 1}, Needs{OpKind::linear, 2, 1},
    Needs{OpKind::matmul, 2, 1},  Needs{OpKind::attention, 3, 1},      Needs{OpKind::embedding, 2, 1},
    Needs{OpKind::fill, 0, 1},    Needs{OpKind::shape, 0, 0},          Needs{OpKind::to_host, 0, 0},
    Needs{OpKind::control, 0, 0}, Needs{OpKind::custom, 0, 0},
};

}  // namespace

std::optional<std::string> missing_operand(const Op& op) {
    const auto* const found =
        std::find_if(exceptions.begin(), exceptions.end(), [&](const Needs& n) { return n.kind == op.kind; });
    const Needs needs = found == exceptions.end() ? Needs{op.kind, 1, 1} : *found;
    for (std::size_t i = 0; i < needs.inputs; ++i) {
        if (i < op.inputs.size() && op.inputs[i] != no_tensor) continue;
        return fmt::format("{} needs {} input{}; input {} is absent", name_of(op.kind), needs.inputs,
                           needs.inputs == 1 ? "" : "s", i + 1);
    }
    if (op.outputs.size() < needs.outputs) return fmt::format("{} has no output", name_of(op.kind));
    return std::nullopt;
}

void check_operands(const Graph& graph) {
    for (const Op& op : graph.ops) {
        if (const auto missing = missing_operand(op)) {
            throw Error(ErrorCode::model, fmt::format("{}: operator {}: {}", graph.name, op.name, *missing));
        }
    }
}

}  // namespace ftax
