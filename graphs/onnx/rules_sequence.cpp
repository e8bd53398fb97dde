#include "graphs/onnx/rules.hpp"

namespace ftax::onnx_import {
namespace {

const std::vector<TensorId>* members(const Node& n, std::size_t input) {
    return n.has(input) ? n.construction.notes[n.inputs[input]].sequence.get() : nullptr;
}

void sequence_output(Node& n, DType dtype, std::optional<std::vector<TensorId>> known) {
    if (known) n.construction.spend(known->size() / 4, n.name);
    n.outputs[0] = {.dtype = dtype, .sequence = std::move(known), .is_sequence = true};
}

/// Position in a sequence of `size` members; nullopt when it depends on data.
std::optional<std::size_t> position(const Node& n, std::size_t input, std::size_t size, std::int64_t fallback) {
    std::int64_t at = fallback;
    if (n.has(input)) {
        const auto given = n.integers_of(input);
        if (!given || given->size() != 1) return std::nullopt;
        at = given->front();
    }
    if (at < 0) at += static_cast<std::int64_t>(size);
    if (at < 0 || at > static_cast<std::int64_t>(size)) n.fail("position {} in a sequence of {}", at, size);
    return static_cast<std::size_t>(at);
}

}  // namespace

void sequence_construct(Node& n) {
    for (std::size_t i = 0; i < n.inputs.size(); ++i) static_cast<void>(n.tensor(i));  // throws for an absent one
    sequence_output(n, n.dtype(0), n.inputs);
}

void sequence_empty(Node& n) {
    sequence_output(n, dtype_from_onnx(n.integer("dtype", 1)), std::vector<TensorId>{});
}

void sequence_insert(Node& n) {
    std::optional<std::vector<TensorId>> result;
    if (const auto* before = members(n, 0)) {
        if (const auto at = position(n, 2, before->size(), static_cast<std::int64_t>(before->size()))) {
            result = *before;
            result->insert(result->begin() + static_cast<std::ptrdiff_t>(*at), n.inputs[1]);
        }
    }
    sequence_output(n, n.dtype(0), std::move(result));
}

void sequence_erase(Node& n) {
    std::optional<std::vector<TensorId>> result;
    if (const auto* before = members(n, 0); before && !before->empty()) {
        if (const auto at = position(n, 1, before->size(), -1); at && *at < before->size()) {
            result = *before;
            result->erase(result->begin() + static_cast<std::ptrdiff_t>(*at));
        }
    }
    sequence_output(n, n.dtype(0), std::move(result));
}

void sequence_at(Node& n) {
    n.unknown_output(0, n.dtype(0));
    const auto* from = members(n, 0);
    if (!from) return;
    const auto at = position(n, 1, from->size(), 0);
    if (at && *at < from->size()) n.outputs[0].alias = (*from)[*at];
}

void sequence_length(Node& n) {
    const auto* from = members(n, 0);
    n.value_output(0, DType::i64, {}, {from ? n.math().integer(static_cast<std::int64_t>(from->size())) : Scalar{}});
}

void split_to_sequence(Node& n) {
    const Dims input = n.dims(0);  // a copy: emit() moves the tensors
    ShapeMath& math = n.math();
    const std::size_t axis = n.axis(n.integer("axis", 0), input.size());
    const bool by_one = !n.has(1);
    const bool keep = !by_one || n.integer("keepdims", 1) != 0;
    const auto whole = math.constant_value(input[axis]);
    std::optional<std::vector<std::int64_t>> parts;
    if (by_one) {
        if (whole && *whole <= max_followed_elements) parts.emplace(static_cast<std::size_t>(*whole), 1);
    } else if (const auto given = n.integers_of(1)) {
        if (n.rank(1) > 0) {
            parts = given;
        } else if (whole && given->front() > 0 && *whole / given->front() <= max_followed_elements) {
            parts.emplace();
            for (std::int64_t at = 0; at < *whole; at += given->front())
                parts->push_back(std::min(given->front(), *whole - at));
        }
    }
    if (!parts) return sequence_output(n, n.dtype(0), std::nullopt);
    sequence_output(
        n, n.dtype(0), mapped(*parts, [&](std::int64_t size) {
            Dims dims = input;
            dims[axis] = math.constant(size);
            if (!keep) dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
            const std::vector<std::int64_t> axes{static_cast<std::int64_t>(axis)};
            return n.emit(OpKind::slice, "part", {n.inputs[0]}, {{"axes", axes}}, n.dtype(0), std::move(dims));
        }));
}

void concat_from_sequence(Node& n) {
    n.unknown_output(0, n.dtype(0));
    const auto* from = members(n, 0);
    if (!from || from->empty()) return;
    const auto& tensors = n.construction.graph.tensors;
    if (!tensors[from->front()].known_shape) return;
    const bool stacked = n.integer("new_axis", 0) != 0;
    Dims result = tensors[from->front()].shape;
    const std::size_t axis = n.set_axis(n.required_integer("axis"), result.size() + stacked);
    if (stacked) {
        result.insert(result.begin() + static_cast<std::ptrdiff_t>(axis),
                      n.math().constant(static_cast<std::int64_t>(from->size())));
    } else {
        for (std::size_t i = 1; i < from->size(); ++i) {
            const Tensor& next = tensors[(*from)[i]];
            if (!next.known_shape || next.shape.size() != result.size()) return;
            result[axis] = n.math().add(result[axis], next.shape[axis]);
        }
    }
    n.op_inputs = *from;
    n.output(0, n.dtype(0), std::move(result));
}

/// An optional is replaced by its content.
void optional_pass(Node& n) {
    if (n.has(0)) {
        n.outputs[0].alias = n.inputs[0];
    } else {
        n.kind = OpKind::control;  // an optional without an element: nothing moves
        n.unknown_output(0, DType::unknown);
    }
}

void optional_has_element(Node& n) {
    n.value_output(0, DType::boolean, {}, {n.math().integer(n.has(0))});
}

}  // namespace ftax::onnx_import
