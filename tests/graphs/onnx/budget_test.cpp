#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tests/graphs/onnx/model_files.hpp"

// Small files that ask for a great deal of work: each ends at a limit that names the node.

using namespace ftax;
using namespace ftax::test;

namespace {

::onnx::GraphProto& body(::onnx::NodeProto& node, const std::string& attribute = "body") {
    auto* a = node.add_attribute();
    a->set_name(attribute);
    a->set_type(::onnx::AttributeProto::GRAPH);
    return *a->mutable_g();
}

/// Gives a Loop's body its counter, condition and one carried tensor: the body returns what it gets.
::onnx::GraphProto& pass_on(::onnx::NodeProto& loop, const std::string& prefix) {
    ::onnx::GraphProto& graph = body(loop);
    for (const char* name : {"i", "c", "v"}) graph.add_input()->set_name(prefix + name);
    for (const char* name : {"c", "w"}) graph.add_output()->set_name(prefix + name);
    return graph;
}

OnnxModel model_with_trips(std::int64_t trips) {
    OnnxModel model;
    model.input("x", {"4"}).output("y");
    auto* count = model.graph().add_initializer();
    count->set_name("trips");
    count->set_data_type(::onnx::TensorProto::INT64);
    count->add_int64_data(trips);
    return model;
}

void check_limit(const OnnxModel& model, const std::string& name) {
    const Failure failure = failure_of([&] { return model.import(); });
    REQUIRE(failure);
    CHECK_MESSAGE(failure.code == ErrorCode::limit, failure.message);
    CHECK_MESSAGE(failure.says(name), failure.message);
}

}  // namespace

TEST_CASE("a Loop of a million passes ends at the limit, whether its nodes are alive, dead or initialisers") {
    for (const int kind : {0, 1, 2}) {
        OnnxModel model = model_with_trips(1'000'000);
        auto& loop = model.node("Loop", {"trips", "", "x"}, {"y"});
        ::onnx::GraphProto& graph = pass_on(loop, "");
        OnnxModel::add_node(*graph.mutable_node(), "Relu", {"v"}, {"w"});
        for (int i = 0; i < (kind == 1 ? 1000 : 0); ++i)
            OnnxModel::add_node(*graph.mutable_node(), "Exp", {"v"}, {"dead" + std::to_string(i)});
        for (int i = 0; i < (kind == 2 ? 1000 : 0); ++i) {
            auto* tensor = graph.add_initializer();
            tensor->set_name("w" + std::to_string(i));
            tensor->set_data_type(::onnx::TensorProto::FLOAT);
            tensor->add_dims(3);
        }
        check_limit(model, "Loop_of_y");
    }
}

TEST_CASE("nests of loops end at the limit") {
    for (const auto& [depth, trips] : std::vector<std::pair<int, std::int64_t>>{{3, 1000}, {30, 2}}) {
        OnnxModel model = model_with_trips(trips);
        auto* nodes = model.graph().mutable_node();
        std::string from = "x", to = "y";
        for (int level = 0; level < depth; ++level) {
            const std::string prefix = "l" + std::to_string(level) + "_";
            ::onnx::GraphProto& graph = pass_on(OnnxModel::add_node(*nodes, "Loop", {"trips", "", from}, {to}), prefix);
            nodes = graph.mutable_node();
            from = prefix + "v";
            to = prefix + "w";
        }
        OnnxModel::add_node(*nodes, "Relu", {from}, {to});
        check_limit(model, "Loop");
    }
}

TEST_CASE("a Scan over ten million items and sequences of sequences end at the limit") {
    OnnxModel scan;
    scan.input("x", {"10000000", "4"}).output("y");
    auto& node = scan.node("Scan", {"x"}, {"y"});
    OnnxModel::attribute(node, "num_scan_inputs", std::int64_t{1});
    ::onnx::GraphProto& graph = body(node);
    graph.add_input()->set_name("item");
    graph.add_output()->set_name("result");
    OnnxModel::add_node(*graph.mutable_node(), "Relu", {"item"}, {"result"});
    check_limit(scan, "Scan_of_y");

    OnnxModel split;
    split.input("x", {"500", "4"}).output("y");
    std::vector<std::string> all{"x"};
    for (int i = 0; i < 3000; ++i) {
        const std::string name = "s" + std::to_string(i);
        split.node("SplitToSequence", {"x"}, {name});
        OnnxModel::attribute(split.node("ConcatFromSequence", {name}, {name + "_c"}), "axis", std::int64_t{0});
        all.push_back(name + "_c");
    }
    split.node("Sum", all, {"y"});
    check_limit(split, "SplitToSequence");
}

namespace {

/// A chain of functions, each calling the next several times; the last one has as many Relus.
OnnxModel nested_functions(int depth, int width) {
    OnnxModel model;
    model.input("x", {"4"}).output("y");
    auto* imported = model.proto.add_opset_import();
    imported->set_domain("local");
    imported->set_version(1);
    for (int level = 0; level < depth; ++level) {
        auto* function = model.proto.add_functions();
        function->set_name("f" + std::to_string(level));
        function->set_domain("local");
        function->add_input("a");
        function->add_output("b" + std::to_string(width - 1));
        for (int i = 0; i < width; ++i) {
            const bool last = level == depth - 1;
            auto& call = OnnxModel::add_node(*function->mutable_node(), last ? "Relu" : "f" + std::to_string(level + 1),
                                             {i == 0 ? "a" : "b" + std::to_string(i - 1)}, {"b" + std::to_string(i)});
            if (!last) call.set_domain("local");
        }
    }
    model.node("f0", {"x"}, {"y"}).set_domain("local");
    return model;
}

}  // namespace

TEST_CASE("functions that call functions ten deep and wide end at the limit, those that fit it are inlined") {
    const OnnxModel bomb = nested_functions(10, 10);
    const Failure failure = failure_of([&] { return bomb.import(); });
    CHECK_MESSAGE(failure.code == ErrorCode::limit, failure.message);
    CHECK(nested_functions(3, 4).import().ops.size() == 4 * 4 * 4);
    ImportOptions options;
    options.max_nodes = 64;
    CHECK(failure_of([&] { return nested_functions(3, 4).import(options); }).code == ErrorCode::limit);
    options.max_nodes = 63;  // before any of them is inlined
    CHECK(failure_of([&] { return nested_functions(3, 4).import(options); }).says("once its functions are inlined"));
    options.max_nodes = 200;
    CHECK(nested_functions(3, 4).import(options).ops.size() == 64);
}

TEST_CASE("a Loop runs while its condition holds and no more often than it says") {
    const auto passes = [](std::int64_t trips, std::optional<bool> condition, std::optional<bool> condition_of_body) {
        OnnxModel model = model_with_trips(trips);
        const auto boolean = [](::onnx::GraphProto& graph, const std::string& name, bool value) {
            auto* tensor = graph.add_initializer();
            tensor->set_name(name);
            tensor->set_data_type(::onnx::TensorProto::BOOL);
            tensor->add_int32_data(value);
        };
        if (condition) boolean(model.graph(), "goes_on", *condition);
        auto& loop = model.node("Loop", {trips < 0 ? "" : "trips", condition ? "goes_on" : "", "x"}, {"y"});
        ::onnx::GraphProto& graph = pass_on(loop, "");
        if (condition_of_body) {
            boolean(graph, "again", *condition_of_body);
            graph.mutable_output(0)->set_name("again");
        }
        OnnxModel::add_node(*graph.mutable_node(), "Relu", {"v"}, {"w"});
        const Graph imported = model.import();
        return std::count_if(imported.ops.begin(), imported.ops.end(),
                             [](const Op& op) { return op.kind == OpKind::pointwise; });
    };
    CHECK(passes(3, {}, {}) == 3);
    CHECK(passes(0, {}, {}) == 0);
    CHECK(passes(3, true, {}) == 3);
    CHECK(passes(3, false, {}) == 0);
    CHECK(passes(-1, false, {}) == 0);
    CHECK(passes(3, true, false) == 1);
    CHECK(passes(5, {}, false) == 1);
    CHECK(passes(-1, true, false) == 1);
    CHECK(passes(4, true, true) == 4);
}
