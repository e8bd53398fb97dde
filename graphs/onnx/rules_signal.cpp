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

void tf_idf(Node& n) {
    const auto indexes = n.integers("ngram_indexes");
    if (!indexes) n.fail("required attribute 'ngram_indexes' is missing");
    std::int64_t width = 0;
    for (const std::int64_t i : *indexes) width = std::max(width, i + 1);
    Dims result = n.dims(0);
    if (result.empty()) result.push_back(n.math().constant(1));
    result.back() = n.math().constant(width);
    n.output(0, DType::f32, std::move(result));
}

void string_same(Node& n) {
    Dims result = n.dims(0);
    const AttributeRecord* stopwords = n.attribute("stopwords");
    if (stopwords && !stopwords->texts.empty() && !result.empty()) result.back() = unknown_dim;  // words drop out
    n.output(0, DType::string, std::move(result));
}

void ml_scores(Node& n) {
    const Dims& input = n.dims(0);
    Dims result = input.empty() ? Dims{n.math().constant(1)} : Dims{input[0]};
    result.push_back(n.attribute("n_targets") ? n.math().constant(n.integer("n_targets", 1)) : unknown_dim);
    n.output(0, DType::f32, std::move(result));
}

void ml_labels(Node& n) {
    const Dims& input = n.dims(0);
    const Dims labels = input.empty() ? Dims{n.math().constant(1)} : Dims{input[0]};
    const bool strings = n.attribute("classlabels_strings") != nullptr;
    n.output(0, strings ? DType::string : DType::i64, labels);
    n.output(1, DType::f32, {labels[0], unknown_dim});
}

void optimizer(Node& n) {
    // inputs R, T, then X…, G…, state…: the outputs are the new X… and state…
    const std::size_t states = n.function == "adam" ? 2 : 1;
    const std::size_t tensors = (n.inputs.size() - 2) / (2 + states);
    for (std::size_t i = 0; i < n.output_count() && tensors > 0; ++i) {
        const std::size_t source = i < tensors ? 2 + i : 2 + tensors + i;
        if (n.has(source)) n.output(i, n.dtype(source), n.dims(source));
    }
}

}  // namespace ftax::onnx_import
