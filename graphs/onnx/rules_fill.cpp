#include "graphs/onnx/rules.hpp"

namespace ftax::onnx_import {

void constant(Node& n) {
    ShapeMath& math = n.math();
    const auto vector_of = [&](auto&& values, DType dtype) {
        Scalars scalars = mapped(values, [&](auto value) { return math.from(Number(value)); });
        const Expression count = math.constant(static_cast<std::int64_t>(scalars.size()));
        n.value_output(0, dtype, {count}, std::move(scalars));
    };
    for (const AttributeRecord& attribute : n.attributes) {
        if (!attribute.tensor.empty()) {
            const TensorRecord& tensor =
                n.construction.records.emplace_back(read_tensor(attribute.tensor, attribute.sparse));
            n.output(0, dtype_from_onnx(tensor.data_type), {});
            n.outputs[0].alias = n.construction.add_record(std::string(n.record.outputs[0]), tensor);
            return;
        }
        if (attribute.name == "value_float")
            return n.value_output(0, DType::f32, {}, {math.from(n.real("value_float", 0))});
        if (attribute.name == "value_int")
            return n.value_output(0, DType::i64, {}, {math.integer(n.integer("value_int", 0))});
        if (attribute.name == "value_floats") return vector_of(attribute.reals, DType::f32);
        if (attribute.name == "value_ints") return vector_of(attribute.integers, DType::i64);
        if (attribute.name == "value_string") return n.value_output(0, DType::string, {}, Scalars(1));
        if (attribute.name == "value_strings") {
            const std::size_t count = attribute.texts.size();
            return n.value_output(0, DType::string, {math.constant(static_cast<std::int64_t>(count))}, Scalars(count));
        }
    }
    n.fail("has no value");
}

void shape(Node& n) {
    const Dims& dims = n.dims(0);
    const auto rank = static_cast<std::int64_t>(dims.size());
    const auto clamped = [&](std::int64_t index) {
        if (index < 0) index += rank;
        return std::min(std::max<std::int64_t>(index, 0), rank);
    };
    const std::int64_t start = clamped(n.integer("start", 0));
    const std::int64_t end = clamped(n.integer("end", rank));
    Scalars value;
    for (std::int64_t i = start; i < end; ++i) value.push_back(n.math().from(dims[static_cast<std::size_t>(i)]));
    n.value_output(0, DType::i64, {n.math().constant(static_cast<std::int64_t>(value.size()))}, value);
}

void size(Node& n) {
    n.value_output(0, DType::i64, {}, {n.math().from(n.math().product(n.dims(0)))});
}

void constant_of_shape(Node& n) {
    DType dtype = DType::f32;
    Scalar value = n.math().integer(0);
    if (const AttributeRecord* given = n.attribute("value")) {
        const TensorRecord tensor = read_tensor(given->tensor);
        dtype = dtype_from_onnx(tensor.data_type);
        const auto numbers = tensor.external ? std::nullopt : read_numbers(tensor, 1);
        value = numbers ? n.math().from(numbers->front()) : Scalar{};
    }
    const auto dims = n.target_shape(0);
    if (!dims) return n.unknown_output(0, dtype);
    n.output(0, dtype, *dims);
    const auto count = n.math().static_count(*dims);
    if (count && *count <= max_followed_elements) n.outputs[0].value = Scalars(static_cast<std::size_t>(*count), value);
}

void range(Node& n) {
    ShapeMath& math = n.math();
    const auto element = [&](std::size_t input) {
        const Scalars* value = n.value(input);
        return value && value->size() == 1 ? value->front() : Scalar{};
    };
    const Scalar span = math.apply("sub", {element(1), element(0)}, false);
    const Scalar count = math.apply("ceil", {math.apply("div", {span, element(2)}, false)}, false);
    Expression length = ShapeMath::expression(count);
    if (const auto known = math.constant_value(length); known && *known < 0) length = math.constant(0);
    n.output(0, n.dtype(0), {length});
}

void random_shape(Node& n) {
    auto dims = n.constants("shape");
    if (!dims) n.fail("required attribute 'shape' is missing");
    n.output(0, dtype_from_onnx(n.integer("dtype", 1)), std::move(*dims));
}

/// A new tensor like input 0, of the type that `dtype` names.
void like_first(Node& n) {
    n.output(0, n.attribute("dtype") ? dtype_from_onnx(n.integer("dtype", 1)) : n.dtype(0), n.dims(0));
}

void multinomial(Node& n) {
    if (n.rank(0) != 2) n.fail("input must have rank 2");
    n.output(0, dtype_from_onnx(n.integer("dtype", 6)), {n.dims(0)[0], n.math().constant(n.integer("sample_size", 1))});
}

void window_function(Node& n) {
    n.output(0, dtype_from_onnx(n.integer("output_datatype", 1)), {n.only(0)});
}

void mel_weight_matrix(Node& n) {
    ShapeMath& math = n.math();
    n.output(0, dtype_from_onnx(n.integer("output_datatype", 1)),
             {math.add(math.floor_divide(n.only(1), 2), 1), n.only(0)});
}

void dft(Node& n) {
    Dims& result = n.result();
    if (result.size() < 2) n.fail("input must have a signal and a component axis");
    // Opset 20 made the axis an input.
    std::int64_t axis_value = n.opset >= 20 ? -2 : n.integer("axis", 1);
    if (n.opset >= 20)
        if (const auto given = n.integers_of(2); given && given->size() == 1) axis_value = given->front();
    const std::size_t axis = n.axis(axis_value, result.size());
    n.set("axes", std::vector{static_cast<std::int64_t>(axis)});
    n.set("pairs", std::int64_t{1});
    if (n.has(1)) result[axis] = n.only(1);
    ShapeMath& math = n.math();
    if (n.integer("onesided", 0) != 0) result[axis] = math.add(math.floor_divide(result[axis], 2), 1);
    result.back() = math.constant(2);
}

void stft(Node& n) {
    const Dims& signal = n.dims(0);
    if (signal.size() < 2) n.fail("signal must have rank 2 or 3");
    ShapeMath& math = n.math();
    Expression frame = unknown_dim;
    if (n.has(3)) {
        frame = n.only(3);
    } else if (n.has(2) && n.rank(2) == 1) {
        frame = n.dims(2)[0];
    }
    const Expression frames = math.add(math.floor_divide(math.subtract(signal[1], frame), n.only(1)), 1);
    const bool onesided = n.integer("onesided", 1) != 0;
    n.op_inputs = {n.inputs[0]};
    if (const auto points = math.constant_value(frame)) {
        n.set("frame", *points);
        n.set("bins", onesided ? *points / 2 + 1 : *points);
    }
    n.set("pairs", std::int64_t{1});
    n.output(0, n.dtype(0),
             {signal[0], frames, onesided ? math.add(math.floor_divide(frame, 2), 1) : frame, math.constant(2)});
}

}  // namespace ftax::onnx_import
