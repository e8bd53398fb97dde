#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "ftax/error.hpp"
#include "graphs/base/data_rows.hpp"
#include "graphs/base/embedded.hpp"
#include "graphs/onnx/node.hpp"
#include "tests/graphs/onnx/model_files.hpp"

using namespace ftax;
using namespace ftax::test;

namespace {

/// "[2,3]" or "?": the shape of the first output.
std::string shape(const OnnxModel& model) {
    const Graph graph = model.import();
    const Tensor& y = graph.tensors[graph.outputs[0]];
    if (!y.known_shape) return "?";
    std::string text;
    for (const Expression dim : y.shape) text += (text.empty() ? "" : ",") + graph.expressions.to_string(dim);
    return "[" + text + "]";
}

Failure failure(const OnnxModel& model) {
    return failure_of([&] { return model.import(); });
}

}  // namespace

TEST_CASE("every operator of data/onnx_operators.tsv is in one row, with the inputs and the flags that it names") {
    std::size_t operators = 0;
    for_each_data_row(embedded_text("data/onnx_operators.tsv"), [&](DataRow row) {
        for (const std::string_view word : words_of(row.text())) {
            const std::string name(word.substr(0, word.find('=')));
            CAPTURE(name);
            const auto colons = std::min(name.find("::"), name.size());
            const bool contributed = colons < name.size();
            const auto* const found = onnx_import::find_row(contributed ? name.substr(0, colons) : "",
                                                            contributed ? name.substr(colons + 2) : name);
            REQUIRE(found);
            CHECK((found->rule != nullptr));
            ++operators;
        }
    });
    CHECK(operators == onnx_import::op_table().size());
    CHECK(onnx_import::find_row("", "Range")->flags == onnx_import::reads_none);
    CHECK(onnx_import::find_row("", "Reshape")->flags == (onnx_import::any_rank | onnx_import::reads_first));
    CHECK(onnx_import::find_row("", "QLinearConv")->required_inputs == 8);
}

TEST_CASE("GatherND drops the dimensions that its indices name, behind those of the batch") {
    const auto gather = [](std::int64_t batch, std::int64_t depth) {
        OnnxModel model;
        model.input("x", {"2", "3", "4"})
            .input("i", {"2", std::to_string(depth)}, ::onnx::TensorProto::INT64)
            .output("y");
        OnnxModel::attribute(model.node("GatherND", {"x", "i"}, {"y"}), "batch_dims", batch);
        return model;
    };
    CHECK(shape(gather(0, 1)) == "[2,3,4]");
    CHECK(shape(gather(0, 3)) == "[2]");
    CHECK(shape(gather(1, 1)) == "[2,4]");
    CHECK(shape(gather(1, 2)) == "[2]");
    for (const auto& wrong : std::vector<std::vector<std::int64_t>>{{-1, 1}, {0, 4}, {1, 3}, {4, 0}})
        CHECK(failure(gather(wrong[0], wrong[1])).code == ErrorCode::model);
}

TEST_CASE("Pad's widths are an attribute up to operator set 10, an input from 11 on") {
    for (const std::int64_t opset : {2, 10, 11, 13}) {
        CAPTURE(opset);
        OnnxModel model(opset);
        model.input("x", {"2", "3"}).output("y");
        if (opset > 10) model.integers("pads", {0, 1, 0, 2});
        auto& pad = model.node(
            "Pad", opset > 10 ? std::vector<std::string>{"x", "pads"} : std::vector<std::string>{"x"}, {"y"});
        if (opset <= 10) OnnxModel::attribute(pad, "pads", std::vector<std::int64_t>{0, 1, 0, 2});
        CHECK(shape(model) == "[2,6]");
    }
}

TEST_CASE("a sequence of tensors of unlike rank joins to nothing that is known") {
    const auto joined = [](const std::vector<std::string>& second) {
        OnnxModel model;
        model.input("a", {"2", "3"}).input("b", second).output("y");
        model.node("SequenceConstruct", {"a", "b"}, {"s"});
        OnnxModel::attribute(model.node("ConcatFromSequence", {"s"}, {"y"}), "axis", std::int64_t{1});
        return shape(model);
    };
    CHECK(joined({"2", "5"}) == "[2,8]");
    CHECK(joined({"5"}) == "?");
}

TEST_CASE("Resize uses scales, or sizes if there are no scales") {
    const auto resize = [](bool scales, bool sizes) {
        OnnxModel model(13);
        model.input("x", {"1", "2", "4", "6"}).output("y").integers("sizes", {1, 2, 9, 9});
        auto* tensor = model.graph().add_initializer();
        tensor->set_name("scales");
        tensor->set_data_type(::onnx::TensorProto::FLOAT);
        tensor->add_dims(4);
        for (const float scale : {1.f, 1.f, 2.f, 0.5f}) tensor->add_float_data(scale);
        std::vector<std::string> inputs{"x", "", scales ? "scales" : ""};
        if (sizes) inputs.push_back("sizes");
        model.node("Resize", inputs, {"y"});
        return model;
    };
    CHECK(shape(resize(true, false)) == "[1,2,8,3]");
    CHECK(shape(resize(false, true)) == "[1,2,9,9]");
    CHECK(shape(resize(true, true)) == "[1,2,8,3]");
    CHECK(failure(resize(false, false)).says("neither scales nor sizes"));
}

TEST_CASE("an initialiser that lies elsewhere has to say where") {
    for (const char* key : {"", "offset", "location"}) {
        OnnxModel model;
        model.input("x", {"4"}).output("y").weight("w", {4});
        model.node("Add", {"x", "w"}, {"y"});
        auto* tensor = model.graph().mutable_initializer(0);
        tensor->set_data_location(::onnx::TensorProto::EXTERNAL);
        if (*key) {
            auto* entry = tensor->add_external_data();
            entry->set_key(key);
            entry->set_value(std::string(key) == "offset" ? "0" : "");
        }
        CHECK(failure(model).says("names no location"));
    }
}

TEST_CASE("a Loop may leave out its condition and what it carries") {
    OnnxModel model;
    model.input("x", {"4"}).output("y").integers("trips", {3});
    model.graph().mutable_initializer(0)->clear_dims();
    auto& loop = model.node("Loop", {"trips"}, {"y"});
    auto* body = loop.add_attribute();
    body->set_name("body");
    body->set_type(::onnx::AttributeProto::GRAPH);
    ::onnx::GraphProto& graph = *body->mutable_g();
    OnnxModel::value(*graph.add_input(), "i", {}, ::onnx::TensorProto::INT64);
    OnnxModel::value(*graph.add_input(), "c", {}, ::onnx::TensorProto::BOOL);
    OnnxModel::add_node(*graph.mutable_node(), "Relu", {"x"}, {"r"});
    graph.add_output()->set_name("c");
    graph.add_output()->set_name("r");
    CHECK(shape(model) == "[3,4]");
}

TEST_CASE(
    "a recurrence without hidden_size has that of its weights: four gates of an LSTM, three of a GRU, one of an RNN") {
    for (const auto& kind : {std::pair<const char*, std::int64_t>{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}}) {
        OnnxModel model;
        model.input("x", {"5", "2", "7"})
            .output("y")
            .weight("w", {1, 12 * kind.second, 7})
            .weight("r", {1, 12 * kind.second, 12});
        model.node(kind.first, {"x", "w", "r"}, {"y"});
        const Graph graph = model.import();
        CHECK(bound_type(graph.tensors[graph.outputs.at(0)], bind(graph, {})).shape ==
              std::vector<std::int64_t>{5, 1, 2, 12});
    }
}

TEST_CASE("numbers of eight bits are those of their format") {
    const auto size = [](int type, int bits) {
        OnnxModel model;
        model.output("y");
        auto* tensor = model.graph().add_initializer();
        tensor->set_name("n");
        tensor->set_data_type(type);
        tensor->add_dims(1);
        tensor->add_int32_data(bits);
        OnnxModel::attribute(model.node("Cast", {"n"}, {"i"}), "to", std::int64_t{7});
        model.node("ConstantOfShape", {"i"}, {"y"});
        return shape(model);
    };
    constexpr int e4m3 = 17, e5m2 = 19;  // of TensorProto.DataType
    const std::pair<const char*, std::pair<int, int>> numbers[] = {{"[1]", {0x38, 0x3c}},
                                                                   {"[2]", {0x40, 0x40}},
                                                                   {"[3]", {0x44, 0x42}},
                                                                   {"[5]", {0x4a, 0x45}},
                                                                   {"[8]", {0x50, 0x48}}};
    for (const auto& [text, bits] : numbers) {
        CHECK(size(e4m3, bits.first) == text);
        CHECK(size(e5m2, bits.second) == text);
    }
}
