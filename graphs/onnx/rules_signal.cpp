#include "graphs/onnx/rules.hpp"

namespace ftax::onnx_import {

void dft(Node& n) {
    Dims result = n.dims(0);
    if (result.size() < 2) n.fail("input must have a signal and a component axis");
    // Opset 20 made the axis an input.
    std::int64_t axis_value = n.opset >= 20 ? -2 : n.integer("axis", 1);
    if (n.opset >= 20) {
        if (const auto given = n.integers_of(2); given && given->size() == 1) axis_value = given->front();
    }
    const std::size_t axis = n.axis(axis_value, result.size());
    if (n.has(1)) {
        const auto length = n.expressions(1);
        result[axis] = length && length->size() == 1 ? length->front() : unknown_dim;
    }
    ShapeMath& math = n.math();
    if (n.integer("onesided", 0) != 0) result[axis] = math.add(math.floor_divide(result[axis], 2), 1);
    result.back() = math.constant(2);
    n.drop_inputs_from(1);
    n.output(0, n.dtype(0), std::move(result));
}

void stft(Node& n) {
    const Dims& signal = n.dims(0);
    if (signal.size() < 2) n.fail("signal must have rank 2 or 3");
    ShapeMath& math = n.math();
    const auto step = n.expressions(1);
    Expression frame = unknown_dim;
    if (n.has(3)) {
        if (const auto length = n.expressions(3); length && length->size() == 1) frame = length->front();
    } else if (n.has(2) && n.rank(2) == 1) {
        frame = n.dims(2)[0];
    }
    const Expression hop = step && step->size() == 1 ? step->front() : unknown_dim;
    const Expression frames = math.add(math.floor_divide(math.subtract(signal[1], frame), hop), 1);
    const bool onesided = n.integer("onesided", 1) != 0;
    n.op_inputs = {n.inputs[0]};
    n.output(0, n.dtype(0),
             {signal[0], frames, onesided ? math.add(math.floor_divide(frame, 2), 1) : frame, math.constant(2)});
}

}  // namespace ftax::onnx_import
