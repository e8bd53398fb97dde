// A weight that embedding and head share, as exporters that fold constants write it: twice, the head's transposed.
#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "ftax/import.hpp"
#include "tests/graphs/onnx/model_files.hpp"

using namespace ftax;
using namespace ftax::test;

namespace {

constexpr std::int64_t words = 300, width = 20;

using Value = std::function<float(std::int64_t row, std::int64_t column)>;

float trained(std::int64_t word, std::int64_t column) {
    return static_cast<float>(word) + static_cast<float>(column) / 64;
}

std::string numbers(std::int64_t rows, std::int64_t columns, const Value& value) {
    std::string bytes;
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
            const float number = value(i, j);
            bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
        }
    }
    return bytes;
}

/// tokens → embedding → product with a head of its own → scores
OnnxModel language_model() {
    OnnxModel model;
    model.input("tokens", {"batch", "7"}, ::onnx::TensorProto::INT64).output("scores");
    model.weight("wte.weight", {words, width}).weight("onnx::MatMul_99", {width, words});
    model.node("Gather", {"wte.weight", "tokens"}, {"x"});
    model.node("MatMul", {"x", "onnx::MatMul_99"}, {"scores"});
    return model;
}

OnnxModel with_values(const Value& embedding, const Value& head) {
    OnnxModel model = language_model();
    model.graph().mutable_initializer(0)->set_raw_data(numbers(words, width, embedding));
    model.graph().mutable_initializer(1)->set_raw_data(numbers(width, words, head));
    return model;
}

/// Weights that operators read.
std::size_t weights(const Graph& graph) {
    std::set<TensorId> read;
    for (const Op& op : graph.ops) {
        for (const TensorId input : op.inputs) {
            if (input != no_tensor && graph.tensors[input].role == TensorRole::weight) read.insert(input);
        }
    }
    return read.size();
}

float transposed(std::int64_t row, std::int64_t column) {
    return trained(column, row);
}

}  // namespace

TEST_CASE("a head that is a transposed copy of the embedding is one weight with it") {
    const Graph graph = with_values(trained, transposed).import();
    CHECK(weights(graph) == 1);
    CHECK(graph.ops.back().kind == OpKind::linear);
    CHECK(graph.ops.back().inputs[1] == graph.ops.front().inputs[0]);
}

TEST_CASE("weights of other values, of one value everywhere and of none stay apart") {
    const auto off_by_one = [](std::int64_t row, std::int64_t column) { return transposed(row, column) + 1; };
    const auto zero = [](std::int64_t, std::int64_t) { return 0.0F; };
    CHECK(weights(with_values(trained, off_by_one).import()) == 2);
    CHECK(weights(with_values(zero, zero).import()) == 2);
    CHECK(weights(language_model().import()) == 2);
    OnnxModel huge = with_values(trained, transposed);
    for (const int i : {0, 1}) {
        huge.graph().mutable_initializer(i)->set_dims(0, std::int64_t{1} << 31);
        huge.graph().mutable_initializer(i)->set_dims(1, std::int64_t{1} << 31);
    }
    CHECK(weights(huge.import()) == 2);
    OnnxModel truncated = with_values(trained, transposed);
    truncated.graph().mutable_initializer(1)->mutable_raw_data()->resize(100);
    CHECK(weights(truncated.import()) == 2);
}

TEST_CASE("a shared weight is found in external data, and what cannot be read stays apart") {
    const TemporaryFolder folder;
    const auto external = [](OnnxModel model, const std::string& location, std::int64_t second_offset) {
        for (const int i : {0, 1}) {
            auto& tensor = *model.graph().mutable_initializer(i);
            tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
            const auto add = [&](const std::string& key, const std::string& value) {
                auto* entry = tensor.add_external_data();
                entry->set_key(key);
                entry->set_value(value);
            };
            add("location", location);
            add("offset", std::to_string(i * second_offset));
            add("length", std::to_string(4 * words * width));
        }
        return model;
    };
    folder.write("data.bin", numbers(words, width, trained) + numbers(width, words, transposed));
    const auto loaded = [&](const OnnxModel& model) { return load_graph(folder.write("model.onnx", model.bytes())); };
    CHECK(weights(loaded(external(language_model(), "data.bin", 4 * words * width))) == 1);
    CHECK(weights(loaded(external(language_model(), "missing.bin", 4 * words * width))) == 2);
    CHECK(weights(loaded(external(language_model(), "../data.bin", 4 * words * width))) == 2);

    OnnxModel same;  // a head in the embedding's own layout, at the embedding's own place
    same.input("tokens", {"batch"}, ::onnx::TensorProto::INT64).output("scores");
    same.weight("wte.weight", {words, width}).weight("lm_head.weight", {words, width});
    same.node("Gather", {"wte.weight", "tokens"}, {"x"});
    OnnxModel::attribute(same.node("Gemm", {"x", "lm_head.weight"}, {"scores"}), "transB", 1);
    CHECK(weights(loaded(external(same, "missing.bin", 0))) == 1);
}
