#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ftax/import.hpp"
#include "tests/graphs/onnx/model_files.hpp"
#include "tests/program.hpp"

// External data, rows 31 to 33 of the bad inputs, and what bodies and local functions can do wrong (26 to 28).

using namespace ftax;
using namespace ftax::test;

namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

/// x → Reshape to a shape that stands in external data → y: its value is needed.
OnnxModel needs_external(const Entries& entries) {
    OnnxModel model;
    model.input("x", {"2", "8"}).output("y").weight("shape", {2}, ::onnx::TensorProto::INT64);
    auto& tensor = *model.graph().mutable_initializer(0);
    tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : entries) {
        auto* entry = tensor.add_external_data();
        entry->set_key(key);
        entry->set_value(value);
    }
    model.node("Reshape", {"x", "shape"}, {"y"});
    return model;
}

const std::string shape_bytes("\x04\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0", 16);

Failure load(const TemporaryFolder& folder, const OnnxModel& model) {
    const std::string path = folder.write("model.onnx", model.bytes());
    return failure_of([&] { return load_graph(path); });
}

}  // namespace

TEST_CASE(
    "BAD_INPUTS 31: external data outside the model's folder, linked or not a regular file is refused when needed") {
    const TemporaryFolder outer;
    std::filesystem::create_directories(outer.path / "models");
    outer.write("secret.bin", shape_bytes);
    outer.write("models/good.bin", shape_bytes);
    const auto attempt = [&](const std::string& location) {
        const std::string path = outer.write("models/model.onnx", needs_external({{"location", location}}).bytes());
        return failure_of([&] { return load_graph(path); });
    };
    CHECK_FALSE(attempt("good.bin"));
    CHECK_FALSE(attempt("./good.bin"));

    std::filesystem::create_symlink(outer.path / "secret.bin", outer.path / "models/link.bin");
    std::filesystem::create_directory_symlink(outer.path, outer.path / "models/folder");
    std::filesystem::create_hard_link(outer.path / "secret.bin", outer.path / "models/hard.bin");
    REQUIRE(::mkfifo((outer.path / "models/fifo").c_str(), 0600) == 0);
    std::filesystem::create_directories(outer.path / "models/directory");
    for (const std::string location : {"../secret.bin", "a/../../secret.bin", "/etc/passwd", "/dev/zero", "link.bin",
                                       "folder/secret.bin", "hard.bin", "fifo", "directory", "..", "."}) {
        const auto failure = attempt(location);
        REQUIRE_MESSAGE(failure, location);
        CHECK_MESSAGE(failure.code == ErrorCode::refused, location, ": ", failure.message);
    }
}

TEST_CASE("BAD_INPUTS 31: external data that no shape depends on is not opened") {
    OnnxModel model;
    model.input("x", {"batch", "8"}).output("y").weight("w", {8, 4});
    auto& tensor = *model.graph().mutable_initializer(0);
    tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
    auto* entry = tensor.add_external_data();
    entry->set_key("location");
    entry->set_value("/etc/passwd");
    model.node("MatMul", {"x", "w"}, {"y"});
    const Graph graph = model.import();
    CHECK(graph.ops.at(0).kind == OpKind::linear);
}

TEST_CASE("BAD_INPUTS 32: wrong offsets and lengths, and inline beside external data, are refused") {
    const TemporaryFolder folder;
    folder.write("data.bin", shape_bytes);
    const auto failure_with = [&](Entries entries) {
        entries.insert(entries.begin(), {"location", "data.bin"});
        return load(folder, needs_external(entries));
    };
    CHECK_FALSE(failure_with({{"offset", "0"}, {"length", "16"}, {"checksum", "ignored"}, {"unknown", "-1"}}));
    for (const Entries& entries :
         {Entries{{"offset", "-1"}}, Entries{{"length", "-16"}}, Entries{{"offset", "99999999999999999999999"}},
          Entries{{"offset", "18446744073709551615"}, {"length", "16"}}, Entries{{"offset", "8"}, {"length", "16"}},
          Entries{{"offset", "1x"}}, Entries{{"offset", ""}}, Entries{{"length", "8"}}}) {
        const auto failure = failure_with(entries);
        REQUIRE_MESSAGE(failure, entries[0].second);
        CHECK_MESSAGE(failure.code == ErrorCode::model, failure.message);
    }
    OnnxModel both = needs_external({{"location", "data.bin"}});
    both.graph().mutable_initializer(0)->set_raw_data(shape_bytes);
    CHECK(load(folder, both).says("both inline and external"));
    CHECK(load(folder, needs_external({})).code == ErrorCode::model);
}

TEST_CASE("BAD_INPUTS 33: absent external data leaves a graph without that value") {
    const TemporaryFolder folder;
    const std::string path = folder.write("model.onnx", needs_external({{"location", "missing.bin"}}).bytes());
    const Graph graph = load_graph(path);
    CHECK(graph.ops.at(0).kind == OpKind::reshape);
    CHECK_FALSE(graph.tensors[graph.outputs[0]].known_shape);
}

namespace {

/// The graph that an attribute of a node holds, empty so far.
::onnx::GraphProto& add_graph(::onnx::NodeProto& node, const std::string& attribute_name) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(attribute_name);
    attribute.set_type(::onnx::AttributeProto::GRAPH);
    auto& graph = *attribute.mutable_g();
    graph.set_name(attribute_name);
    return graph;
}

/// Body {Relu(x) × nodes} of an If, without inputs, with one output.
void add_body(::onnx::AttributeProto& attribute, const std::string& name, const std::string& captured, int nodes) {
    attribute.set_name(name);
    attribute.set_type(::onnx::AttributeProto::GRAPH);
    auto& graph = *attribute.mutable_g();
    graph.set_name(name);
    std::string last = captured;
    for (int i = 0; i < nodes; ++i) {
        const std::string next = name + std::to_string(i);
        OnnxModel::add_node(*graph.mutable_node(), "Relu", {last}, {next});
        last = next;
    }
    graph.add_output()->set_name(last);
}

OnnxModel loop_model() {
    OnnxModel model;
    model.input("x", {"batch", "8"}).output("y").output("all");
    auto& loop = model.node("Loop", {"trips", "", "x"}, {"y", "all"});
    auto& body = add_graph(loop, "body");
    OnnxModel::value(*body.add_input(), "i", {}, ::onnx::TensorProto::INT64);
    OnnxModel::value(*body.add_input(), "go", {}, ::onnx::TensorProto::BOOL);
    OnnxModel::value(*body.add_input(), "state", {"batch", "8"});
    OnnxModel::add_node(*body.mutable_node(), "Exp", {"state"}, {"next"});
    OnnxModel::add_node(*body.mutable_node(), "Identity", {"go"}, {"go_on"});
    for (const char* name : {"go_on", "next", "next"}) body.add_output()->set_name(name);
    return model;
}

}  // namespace

TEST_CASE("BAD_INPUTS 26: a known condition selects a branch, an unknown one warns and gives a range") {
    const auto model = [](bool constant, std::int64_t value) {
        OnnxModel m;
        m.input("x", {"batch", "8"}).output("y");
        if (constant) {
            m.integers("c", {value});
        } else {
            m.input("c", {"1"}, ::onnx::TensorProto::BOOL);
        }
        auto& node = m.node("If", {"c"}, {"y"});
        add_body(*node.add_attribute(), "then_branch", "x", 3);
        add_body(*node.add_attribute(), "else_branch", "x", 1);
        return m;
    };
    const auto import = [&](bool constant, std::int64_t value) { return model(constant, value).import(); };
    CHECK(import(true, 1).ops.size() == 3);
    CHECK(import(true, 0).ops.size() == 1);
    const Graph unknown = import(false, 0);
    CHECK(unknown.ops.size() == 3);
    CHECK(unknown.warnings.size() == 1);
    ImportOptions other;
    other.branches["If_of_y"] = false;
    CHECK(model(false, 0).import(other).ops.size() == 1);

    const TemporaryFolder folder;
    const std::string path = folder.write("if.onnx", model(false, 0).bytes());
    const auto prediction = [&](const std::string& more) {
        const ProgramRun run = run_program("predict '" + path + "' --device t4 --batch 4096 --json - " + more);
        REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
        return nlohmann::json::parse(run.output)["predictions"][0];
    };
    const auto range = prediction(""), then_only = prediction("--branch If_of_y=then"),
               else_only = prediction("--branch If_of_y=else");
    CHECK(range["branches_s"]["min"] == else_only["latency_s"]);
    CHECK(range["branches_s"]["max"] == then_only["latency_s"]);
    CHECK(else_only["latency_s"] < then_only["latency_s"]);
    CHECK(range["low_s"] == else_only["low_s"]);
    CHECK(range["high_s"] == then_only["high_s"]);
    CHECK_FALSE(then_only.contains("branches_s"));
    CHECK(run_program("predict '" + path + "' --device t4 --batch 1 --branch If_of_y=both").exit_code == 2);
}

TEST_CASE("BAD_INPUTS 26: loops are unrolled by a constant trip count or --trip, else counted once with a warning") {
    OnnxModel constant = loop_model();
    constant.integers("trips", {5});
    const Graph unrolled = constant.import();
    CHECK(std::count_if(unrolled.ops.begin(), unrolled.ops.end(), [](const Op& op) { return op.source == "Exp"; }) ==
          5);
    CHECK(unrolled.expressions.to_string(unrolled.tensors[unrolled.outputs[1]].shape[0]) == "5");

    OnnxModel dynamic = loop_model();
    dynamic.input("trips", {}, ::onnx::TensorProto::INT64);
    const Graph once = dynamic.import();
    REQUIRE(once.warnings.size() == 1);
    CHECK(once.warnings[0].find("--trip Loop_of_y=N") != std::string::npos);
    ImportOptions options;
    options.trip_counts["Loop_of_y"] = 7;
    const Graph seven = dynamic.import(options);
    CHECK(std::count_if(seven.ops.begin(), seven.ops.end(), [](const Op& op) { return op.source == "Exp"; }) == 7);
    options.trip_counts["Loop_of_y"] = 1'000'000'000;
    options.max_nodes = 10'000;
    CHECK(failure_of([&] { return dynamic.import(options); }).code == ErrorCode::limit);
}

TEST_CASE("a loop without a trip count runs while its condition is known to hold, as exporters write embedding bags") {
    const auto model = [](bool known) {
        OnnxModel m;
        m.input("x", {"batch", "8"}).output("y").integers("zero", {0}).integers("one", {1});
        if (known) {
            m.integers("bags", {5});
        } else {
            m.input("bags", {}, ::onnx::TensorProto::INT64);
        }
        m.node("Less", {"zero", "one"}, {"true"});
        auto& loop = m.node("Loop", {"", "true", "zero", "x"}, {"n", "y"});
        auto& body = add_graph(loop, "body");
        OnnxModel::value(*body.add_input(), "i", {}, ::onnx::TensorProto::INT64);
        OnnxModel::value(*body.add_input(), "go", {}, ::onnx::TensorProto::BOOL);
        OnnxModel::value(*body.add_input(), "at", {}, ::onnx::TensorProto::INT64);
        OnnxModel::value(*body.add_input(), "state", {"batch", "8"});
        OnnxModel::add_node(*body.mutable_node(), "Exp", {"state"}, {"next"});
        OnnxModel::add_node(*body.mutable_node(), "Add", {"at", "one"}, {"after"});
        OnnxModel::add_node(*body.mutable_node(), "Less", {"after", "bags"}, {"go_on"});
        for (const char* name : {"go_on", "after", "next"}) body.add_output()->set_name(name);
        return m.import();
    };
    const auto passes = [](const Graph& graph) {
        return std::count_if(graph.ops.begin(), graph.ops.end(), [](const Op& op) { return op.source == "Exp"; });
    };
    CHECK(passes(model(true)) == 5);
    CHECK(model(true).warnings.empty());
    CHECK(passes(model(false)) == 1);
    REQUIRE(model(false).warnings.size() == 1);
    CHECK(model(false).warnings[0].find("one pass is counted (--trip Loop_of_n=N)") != std::string::npos);
}

TEST_CASE("BAD_INPUTS 26: bodies nested deeper than 64 levels hit a limit") {
    const auto nested = [](int depth) {
        OnnxModel model;
        model.input("x", {"8"}).output("y").integers("c", {1});
        auto* node = &model.node("If", {"c"}, {"y"});
        for (int i = 0; i < depth; ++i) {
            add_body(*node->add_attribute(), "else_branch", "x", 1);
            auto& branch = *node->add_attribute();
            branch.set_name("then_branch");
            branch.set_type(::onnx::AttributeProto::GRAPH);
            auto& graph = *branch.mutable_g();
            const std::string output = "deep" + std::to_string(i);
            graph.add_output()->set_name(output);
            node = &OnnxModel::add_node(*graph.mutable_node(), i + 1 < depth ? "If" : "Relu",
                                        {i + 1 < depth ? "c" : "x"}, {output});
        }
        return model;
    };
    CHECK(nested(60).import().ops.size() == 1);
    CHECK(failure_of([&] { return nested(90).import(); }).code == ErrorCode::limit);
}

TEST_CASE("BAD_INPUTS 27: calls in bodies of local functions count as those outside, however deep the bodies") {
    // F's node is `calls` of G, each inside `depth` branches; G is one operator, or calls F.
    const auto model_of = [](int depth, int calls, const std::string& inner) {
        OnnxModel model;
        model.input("x", {"8"}).output("y").integers("c", {1});
        model.node("F", {"x", "c"}, {"y"}).set_domain("local");
        const auto function = [&](const std::string& name) -> ::onnx::FunctionProto& {
            auto& f = *model.proto.add_functions();
            f.set_name(name);
            f.set_domain("local");
            for (const char* input : {"a", "b"}) f.add_input(input);
            f.add_output("z");
            return f;
        };
        auto* nodes = function("F").mutable_node();
        auto* outputs = static_cast<::onnx::GraphProto*>(nullptr);
        for (int i = 0; i < depth; ++i) {
            const std::string result = i == 0 ? "z" : "z" + std::to_string(i);
            auto& node = OnnxModel::add_node(*nodes, "If", {"b"}, {result});
            if (outputs) outputs->add_output()->set_name(result);
            for (const char* branch : {"else_branch", "then_branch"}) {
                auto& attribute = *node.add_attribute();
                attribute.set_name(branch);
                attribute.set_type(::onnx::AttributeProto::GRAPH);
                outputs = attribute.mutable_g();
                nodes = outputs->mutable_node();
                if (std::string(branch) == "then_branch") break;
                OnnxModel::add_node(*nodes, "Exp", {"a"}, {"e" + std::to_string(i)});
                outputs->add_output()->set_name("e" + std::to_string(i));
            }
        }
        std::string last = "a";
        for (int i = 0; i < calls; ++i) {
            const std::string next = depth == 0 && i + 1 == calls ? "z" : "g" + std::to_string(i);
            OnnxModel::add_node(*nodes, "G", {last, "b"}, {next}).set_domain("local");
            last = next;
        }
        if (outputs) outputs->add_output()->set_name(last);
        auto& node = OnnxModel::add_node(*function("G").mutable_node(), inner, {"a"}, {"z"});
        if (inner == "F") {
            node.add_input("b");
            node.set_domain("local");
        }
        return model;
    };
    for (const int depth : {0, 1, 2, 7, 30}) {
        CAPTURE(depth);
        const auto cycle = failure_of([&] { return model_of(depth, 1, "F").import(); });
        CHECK(cycle.code == ErrorCode::model);
        CHECK_MESSAGE(cycle.says("F → G → F"), cycle.message);
        for (const int calls : {2, 9}) {
            // Nodes: the call of F; in it a branch and an operator for each depth, the calls of G and its operator.
            ImportOptions options;
            options.max_nodes = static_cast<std::uint64_t>(1 + 2 * depth + 2 * calls);
            const auto most = failure_of([&] { return model_of(depth, calls, "Relu").import(options); });
            CHECK_FALSE_MESSAGE(most.says("once its functions are inlined"), most.message);
            --options.max_nodes;
            const auto beyond = failure_of([&] { return model_of(depth, calls, "Relu").import(options); });
            CHECK(beyond.code == ErrorCode::limit);
            CHECK_MESSAGE(beyond.says("once its functions are inlined"), beyond.message);
        }
        const Graph graph = model_of(depth, 3, "Relu").import();
        CHECK(std::count_if(graph.ops.begin(), graph.ops.end(), [](const Op& op) { return op.source == "Relu"; }) == 3);
    }
    const auto deep = failure_of([&] { return model_of(66, 1, "Relu").import(); });
    CHECK(deep.code == ErrorCode::limit);
    CHECK_MESSAGE(deep.says("bodies nested deeper than 64 levels"), deep.message);
}

TEST_CASE("BAD_INPUTS 27: functions that reach themselves are refused with the path; 28: expansion is bounded") {
    const auto function = [](OnnxModel& model, const std::string& name, const std::vector<std::string>& calls) {
        auto& f = *model.proto.add_functions();
        f.set_name(name);
        f.set_domain("local");
        f.add_input("a");
        f.add_output("z");
        std::string last = "a";
        for (std::size_t i = 0; i < calls.size(); ++i) {
            const std::string next = i + 1 == calls.size() ? "z" : "t" + std::to_string(i);
            auto& node = OnnxModel::add_node(*f.mutable_node(), calls[i], {last}, {next});
            if (calls[i] != "Relu") node.set_domain("local");
            last = next;
        }
    };
    OnnxModel model;
    model.input("x", {"8"}).output("y");
    model.node("F0", {"x"}, {"y"}).set_domain("local");
    OnnxModel mutual = model;
    function(mutual, "F0", {"F1"});
    function(mutual, "F1", {"Relu", "F0"});
    const auto cycle = failure_of([&] { return mutual.import(); });
    REQUIRE(cycle);
    CHECK(cycle.code == ErrorCode::model);
    CHECK_MESSAGE(cycle.says("F0 → F1 → F0"), cycle.message);

    OnnxModel inlined = model;
    function(inlined, "F0", {"F1", "F1"});
    function(inlined, "F1", {"Relu", "Relu"});
    CHECK(inlined.import().ops.size() == 4);

    OnnxModel bomb = model;
    for (int i = 0; i < 60; ++i) {
        const std::string next = i == 59 ? "Relu" : "F" + std::to_string(i + 1);
        function(bomb, "F" + std::to_string(i), {next, next});
    }
    CHECK(failure_of([&] { return bomb.import(); }).code == ErrorCode::limit);

    OnnxModel deep = model;  // a chain of calls as deep as it is long needs no stack
    for (int i = 0; i < 20'000; ++i)
        function(deep, "F" + std::to_string(i), {i == 19'999 ? "Relu" : "F" + std::to_string(i + 1)});
    CHECK(deep.import().ops.size() == 1);

    // Paths of inlined nodes do not grow with the depth of the calls or the length of names: 200 MB are enough.
    OnnxModel long_names = model;
    function(long_names, "F0", std::vector<std::string>(2000, "F1"));
    function(long_names, "F1", {"Relu", "Relu"});
    for (auto& node : *long_names.proto.mutable_functions(1)->mutable_node()) node.set_name(std::string(100'000, 'n'));
    const TemporaryFolder folder;
    for (const OnnxModel* hostile : {&deep, &long_names}) {
        const ProgramRun run =
            run_program("inspect '" + folder.write("deep.onnx", hostile->bytes()) + "'", "ulimit -d 204800");
        CHECK_MESSAGE(run.exit_code == 0, run.errors);
    }
}
