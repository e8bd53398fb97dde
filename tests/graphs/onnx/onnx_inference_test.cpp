#include <doctest/doctest.h>
#include <onnx/shape_inference/implementation.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ftax/error.hpp"
#include "graphs/loading.hpp"
#include "tests/graphs/onnx/testdata.hpp"

// Second oracle: ONNX's own shape inference, which also knows the tensors between the operators.

using namespace ftax;
using namespace ftax::test;

namespace {

using Shape = std::vector<std::int64_t>;

/// Shapes that ONNX infers completely, by the name of the tensor.
std::map<std::string, Shape> inferred_by_onnx(const std::string& bytes) {
    ::onnx::ModelProto model;
    REQUIRE(model.ParseFromString(bytes));
    const ::onnx::ShapeInferenceOptions options(/*check_type=*/false, /*error_mode=*/0, /*data_prop=*/true);
    ::onnx::shape_inference::InferShapes(model, ::onnx::OpSchemaRegistry::Instance(), options);
    std::map<std::string, Shape> shapes;
    const auto add = [&](const ::onnx::ValueInfoProto& value) {
        if (!value.type().has_tensor_type() || !value.type().tensor_type().has_shape()) return;
        Shape shape;
        for (const auto& dim : value.type().tensor_type().shape().dim()) {
            if (!dim.has_dim_value()) return;
            shape.push_back(dim.dim_value());
        }
        shapes.emplace(value.name(), std::move(shape));
    };
    for (const auto& value : model.graph().value_info()) add(value);
    for (const auto& value : model.graph().output()) add(value);
    return shapes;
}

std::optional<Shape> numbers_of(const Graph& graph, const Tensor& tensor) {
    if (!tensor.known_shape) return std::nullopt;
    Shape shape;
    for (const Expression dim : tensor.shape) {
        const auto value = graph.expressions.constant_value(dim);
        if (!value) return std::nullopt;
        shape.push_back(*value);
    }
    return shape;
}

}  // namespace

TEST_CASE("ONNX's own shape inference agrees on outputs and on the tensors between operators") {
    std::size_t known_to_both = 0, models = 0;
    for (const auto& path : model_files()) {
        const std::string bytes = without_answers(path);
        std::map<std::string, Shape> expected;
        try {
            expected = inferred_by_onnx(bytes);
        } catch (const std::exception&) {  // operators newer than the installed ONNX
            continue;
        }
        try {
            const Graph graph = import_onnx(bytes, path.string(), {});
            ++models;
            for (const Tensor& tensor : graph.tensors) {
                const auto found = expected.find(tensor.name);
                if (tensor.role == TensorRole::input || found == expected.end()) continue;
                const auto shape = numbers_of(graph, tensor);
                if (!shape) continue;
                ++known_to_both;
                // ONNX 1.12 gives STFT one frame too few.
                const std::string model = path.parent_path().filename().string();
                if (!model.starts_with("test_stft")) CHECK_MESSAGE(*shape == found->second, model, ": ", tensor.name);
            }
        } catch (const Error&) {  // counted by the test of recorded outputs
        }
    }
    CHECK(models >= 1000);
    CHECK(known_to_both >= 1700);
}
