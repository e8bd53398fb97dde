#include "graphs/onnx/rules.hpp"

namespace ftax::onnx_import {

void gather(Node& n) {
    const Dims& data = n.dims(0);
    const Dims& indices = n.dims(1);
    const std::size_t axis = n.set_axis(n.integer("axis", 0), data.size());
    Dims result(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(axis));
    result.insert(result.end(), indices.begin(), indices.end());
    result.insert(result.end(), data.begin() + static_cast<std::ptrdiff_t>(axis) + 1, data.end());
    n.output(0, n.dtype(0), std::move(result));
    if (axis == 0 && data.size() == 2 && n.construction.is_folded(n.inputs[0])) {
        n.kind = OpKind::embedding;
    } else if (n.scalar(1) && n.construction.is_folded(n.inputs[1])) {
        // x[:, i] with a number: PyTorch's select, a view
        n.kind = OpKind::slice;
        n.set("axes", std::vector<std::int64_t>{static_cast<std::int64_t>(axis)});
        n.read_first(1);
    }
}

void gather_elements(Node& n) {
    n.set_axis(n.integer("axis", 0), n.rank(0));
    n.output(0, n.dtype(0), n.dims(1));
}

void gather_nd(Node& n) {
    const Dims& data = n.dims(0);
    const Dims& indices = n.dims(1);
    const std::int64_t batch = n.integer("batch_dims", 0);
    if (indices.empty()) n.fail("indices is a scalar");
    const auto depth = n.math().constant_value(indices.back());
    if (!depth) return n.unknown_output(0, n.dtype(0));
    const auto rank = static_cast<std::int64_t>(data.size());
    if (batch < 0 || *depth < 0 || batch > rank || *depth > rank - batch)
        n.fail("indices of depth {} with {} batch dims for rank {}", *depth, batch, data.size());
    Dims result(indices.begin(), indices.end() - 1);
    result.insert(result.end(), data.begin() + batch + *depth, data.end());
    n.output(0, n.dtype(0), std::move(result));
}

void scatter(Node& n) {
    if (n.attribute("axis")) n.set_axis(n.integer("axis", 0), n.rank(0));
}

void one_hot(Node& n) {
    Dims result = n.dims(0);
    const std::size_t axis = n.axis(n.integer("axis", -1), result.size() + 1);
    result.insert(result.begin() + static_cast<std::ptrdiff_t>(axis), n.only(1));
    n.output(0, n.dtype(2), std::move(result));
}

void nonzero(Node& n) {
    n.output(0, DType::i64, {n.math().constant(static_cast<std::int64_t>(n.rank(0))), unknown_dim});
}

void compress(Node& n) {
    Expression kept = unknown_dim;
    if (const auto condition = n.integers_of(1)) {
        std::int64_t count = 0;
        for (const std::int64_t c : *condition) count += c != 0;
        kept = n.math().constant(count);
    }
    if (!n.attribute("axis")) return n.output(0, n.dtype(0), {kept});
    n.result()[n.axis(n.integer("axis", 0), n.rank(0))] = kept;
}

void non_max_suppression(Node& n) {
    n.output(0, DType::i64, {unknown_dim, n.math().constant(3)});
}

void embed_layer_norm(Node& n) {
    // input_ids, segment_ids?, word/position/segment tables, gamma, beta: ONNX Runtime runs one kernel
    const Dims& ids = n.dims(0);
    const Dims& table = n.dims(2);
    if (ids.size() != 2 || table.size() != 2) n.fail("ids and word table must have rank 2");
    const DType dtype = n.dtype(2);
    n.op_inputs = {n.inputs[2], n.inputs[0]};
    n.output(0, dtype, {ids[0], ids[1], table[1]});
    n.output(1, DType::i32, {ids[0]});
    n.output(2, dtype, {ids[0], ids[1], table[1]});
}

}  // namespace ftax::onnx_import
