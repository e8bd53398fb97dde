#include <fmt/format.h>

#include "graphs/onnx/rules.hpp"

namespace ftax::onnx_import {

/// Output 0 has the type and shape of input 0.
void same_as_first(Node&) {}

namespace {

/// Before opset 7 operands broadcast only with broadcast=1, the second aligned at `axis`: the first shape stays.
Dims broadcast_inputs(const Node& n) {
    Dims dims = n.dims(0);
    if (n.opset < 7) return dims;
    for (std::size_t i = 1; i < n.inputs.size(); ++i) dims = n.broadcast(dims, n.dims(i));
    return dims;
}

/// Canonical passes recognise decomposed functions by their scalar constants.
void note_scalar_operand(Node& n) {
    if (n.inputs.size() != 2) return;
    for (std::size_t i = 0; i < 2; ++i) {
        if (!n.construction.is_folded(n.inputs[i])) continue;
        if (const auto scalar = n.scalar(i)) {
            n.set("scalar", *scalar);
            return;
        }
    }
}

}  // namespace

void broadcast_all(Node& n) {
    n.output(0, n.dtype(0), broadcast_inputs(n));
    note_scalar_operand(n);
}

void where(Node& n) {
    n.output(0, n.dtype(1), n.broadcast(n.broadcast(n.dims(0), n.dims(1)), n.dims(2)));
}

void cast(Node& n) {
    const std::int64_t code = n.required_integer("to");
    const DType to = dtype_from_onnx(code);
    if (to == DType::unknown)
        n.construction.warn(fmt::format("node '{}' casts to the unknown element type {}", n.name, code));
    n.output(0, to, n.dims(0));
    if (to == n.dtype(0)) n.outputs[0].alias = n.inputs[0];
}

void cast_like(Node& n) {
    n.output(0, n.dtype(1), n.dims(0));
    if (n.dtype(1) == n.dtype(0)) {
        n.outputs[0].alias = n.inputs[0];
    } else if (n.construction.is_folded(n.inputs[0]) && n.value(0)) {
        evaluate_cast(n);  // only the type of the other operand matters, known or not
    }
}

void alias_first(Node& n) {
    n.outputs[0].alias = n.inputs[0];
}

void dropout(Node& n) {
    n.output(1, n.opset >= 12 ? DType::boolean : n.dtype(0), n.dims(0));
    const bool training = n.opset >= 12 && n.scalar(2).value_or(0) != 0;
    if (training) return;
    n.kind = OpKind::identity;
    n.outputs[0].alias = n.inputs[0];
}

void clip(Node& n) {
    const auto bound = [&](std::string_view key, std::size_t input) -> std::optional<double> {
        if (n.opset >= 11) return n.scalar(input);
        if (!n.attribute(key)) return std::nullopt;
        return n.real(key, 0);
    };
    const auto low = bound("min", 1);
    const auto high = bound("max", 2);
    if (low && high && *low == 0 && *high == 6) {
        n.function = "relu6";
        return;
    }
    if (low) n.set("low", *low);
    if (high) n.set("high", *high);
}

}  // namespace ftax::onnx_import
