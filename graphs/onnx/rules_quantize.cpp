#include "graphs/onnx/rules.hpp"

namespace ftax::onnx_import {

void quantize(Node& n) {
    DType dtype = DType::u8;
    if (n.has(2)) {
        dtype = n.dtype(2);
    } else if (n.attribute("output_dtype") && n.integer("output_dtype", 0) != 0) {
        dtype = dtype_from_onnx(n.integer("output_dtype", 2));
    }
    n.output(0, dtype, n.dims(0));
}

void dequantize(Node& n) {
    n.output(0, n.dtype(1), n.dims(0));
}

void dynamic_quantize(Node& n) {
    n.output(0, DType::u8, n.dims(0));
    n.output(1, DType::f32, {});
    n.output(2, DType::u8, {});
}

void qlinear_same(Node& n) {
    // QLinearAdd, QLinearMul: A, scale, zero, B, scale, zero, …; the others have one tensor operand
    const bool two = n.function == "add" || n.function == "mul";
    n.output(0, n.dtype(0), two ? n.broadcast(n.dims(0), n.dims(3)) : n.dims(0));
    n.op_inputs = {n.inputs[0]};
    if (two) n.op_inputs.push_back(n.inputs[3]);
}

void matmul_nbits(Node& n) {
    Dims result = n.dims(0);
    if (result.empty()) n.fail("A is a scalar");
    result.back() = n.math().constant(n.required_integer("N"));
    n.output(0, n.dtype(0), std::move(result));
    // The operator's weight is stored in blocks; a linear operator wants [n, k] in the packed element type.
    const std::int64_t bits = n.integer("bits", 4);
    const DType packed = bits == 2 ? DType::u2 : bits == 8 ? DType::u8 : DType::u4;
    const Dims dims{n.math().constant(n.required_integer("N")), n.math().constant(n.required_integer("K"))};
    const TensorId weight = n.construction.add_tensor(n.name + "/weight", packed, TensorRole::weight, dims);
    n.op_inputs = {n.inputs[0], weight};
    if (n.has(5)) n.op_inputs.push_back(n.inputs[5]);
}

}  // namespace ftax::onnx_import
