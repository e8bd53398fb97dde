#include <doctest/doctest.h>

#include "tests/graphs/onnx/model_files.hpp"

using namespace ftax;
using namespace ftax::test;

TEST_CASE("a list constant is a vector of its values, as torch's exporter writes the shapes of reshapes") {
    OnnxModel model(18);
    model.input("x", {"batch", "8", "1", "1"}).output("y");
    auto& batch = model.node("Shape", {"x"}, {"batch_size"});
    OnnxModel::attribute(batch, "start", std::int64_t{0});
    OnnxModel::attribute(batch, "end", std::int64_t{1});
    OnnxModel::attribute(model.node("Constant", {}, {"width"}), "value_ints", std::vector<std::int64_t>{8});
    OnnxModel::attribute(model.node("Concat", {"batch_size", "width"}, {"shape"}), "axis", std::int64_t{0});
    model.node("Reshape", {"x", "shape"}, {"y"});
    const Graph graph = model.import();
    const Tensor& y = graph.tensors[graph.outputs.at(0)];
    REQUIRE(y.shape.size() == 2);
    CHECK(graph.expressions.to_string(y.shape[0]) == "batch");
    CHECK(graph.expressions.constant_value(y.shape[1]) == 8);
}
