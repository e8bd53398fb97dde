#include <doctest/doctest.h>

#include <filesystem>
#include <random>

#include "ftax/import.hpp"
#include "tests/graphs/onnx/model_files.hpp"
#include "tests/program.hpp"

// Files that are not what they should be: rows 1 to 9 of the bad inputs.

using namespace ftax;
using namespace ftax::test;

namespace {

std::string varint(std::uint64_t value) {
    std::string bytes;
    for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
    return bytes + static_cast<char>(value);
}

std::string field(int number, const std::string& content) {
    return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(content.size()) + content;
}

Failure import_failure(const std::string& bytes) {
    return failure_of([&] { return import_onnx(bytes, "test.onnx", {}); });
}

}  // namespace

TEST_CASE("BAD_INPUTS 1: empty, foreign and random files are refused with offset and detected type") {
    const TemporaryFolder folder;
    const auto load = [&](const std::string& name, const std::string& bytes) {
        const std::string path = folder.write(name, bytes);
        return failure_of([&] { return load_graph(path); });
    };
    for (const auto& [name, bytes, type] :
         {std::tuple<std::string, std::string, std::string>{"empty.onnx", "", "empty"},
          {"weights.onnx", "\x89HDF\r\n\x1a\n rest", "HDF5"},
          {"program.onnx",
           std::string("\x7f"
                       "ELF\x02\x01\x01\0",
                       8),
           "ELF"},
          {"state.onnx", std::string("\x80\x02}q\x01.", 6), "pickle"},
          {"model.txt", std::string("\xff\xfe\xfd\xfc", 4), "no known format"}}) {
        const auto failure = load(name, bytes);
        REQUIRE(failure);
        CHECK(failure.code == ErrorCode::model);
        CHECK_MESSAGE(failure.says(type), failure.message);
    }
    CHECK(load("empty.onnx", "").says("byte 0"));
    // Content decides, not the extension.
    CHECK_FALSE(load("model.txt", relu_model().bytes()));
}

TEST_CASE("BAD_INPUTS 1: every truncation of a model and random bytes end in an error, never in a crash") {
    const std::string whole = relu_model().bytes();
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const auto failure = import_failure(whole.substr(0, size));
        REQUIRE_MESSAGE(failure, "truncated to ", size);
        CHECK(failure.code == ErrorCode::model);
    }
    CHECK(import_failure(whole.substr(0, whole.size() - 1)).says("byte "));
    std::mt19937 random(1);
    for (int round = 0; round < 3000; ++round) {
        std::string bytes = whole;
        for (int i = 0; i < 1 + round % 8; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
        import_failure(bytes);  // some still are models
    }
    for (int round = 0; round < 3000; ++round) {
        std::string bytes(1 + random() % 64, '\0');
        for (char& c : bytes) c = static_cast<char>(random());
        const auto failure = import_failure(bytes);
        REQUIRE(failure);
        CHECK((failure.code == ErrorCode::model || failure.code == ErrorCode::limit));
    }
}

TEST_CASE("BAD_INPUTS 2: impossible wire data is refused with its byte offset") {
    const std::string good = relu_model().bytes();
    const auto offset = "byte " + std::to_string(good.size());
    const std::string overlong = good + varint(3 << 3 | 0) + std::string(10, '\xff') + '\x01';
    for (const auto& [bytes, what] :
         {std::pair<std::string, std::string>{good + varint(60 << 3 | 2) + varint(1000), "announced"},
          {overlong, "varint"},
          {good + varint(60 << 3 | 6), "wire type 6"},
          {good + varint(60 << 3 | 7), "wire type 7"},
          {good + std::string(1, '\0') + '\x01', "field number 0"},
          {good + varint(60 << 3 | 5) + "ab", "announced"}}) {
        const auto failure = import_failure(bytes);
        REQUIRE(failure);
        CHECK(failure.code == ErrorCode::model);
        CHECK_MESSAGE(failure.says(what), failure.message);
        CHECK_MESSAGE(failure.says("byte "), failure.message);
    }
    CHECK(import_failure(good + varint(60 << 3 | 6)).says(offset));
    // graph (7) as a varint
    CHECK(import_failure(good + varint(7 << 3) + '\x05').says("wire type"));
}

TEST_CASE("BAD_INPUTS 3: unknown fields and nested groups are skipped, to a depth of 100") {
    const std::string good = relu_model().bytes();
    const auto groups = [](int depth) {
        std::string open, close;
        for (int i = 0; i < depth; ++i) {
            open += varint(90 << 3 | 3);
            close += varint(90 << 3 | 4);
        }
        return open + field(91, "inside") + close;
    };
    CHECK_FALSE(import_failure(good + field(1000, "future") + varint(1001 << 3) + varint(7) + groups(100)));
    const auto deep = import_failure(good + groups(101));
    REQUIRE(deep);
    CHECK(deep.code == ErrorCode::limit);
    CHECK(import_failure(good + groups(1'000'000)).code == ErrorCode::limit);
    CHECK(import_failure(good + varint(90 << 3 | 3)).code == ErrorCode::model);
    CHECK(import_failure(good + varint(90 << 3 | 4)).code == ErrorCode::model);
}

TEST_CASE("BAD_INPUTS 4: a model beyond 2 GiB is mapped and its payload skipped; --max-bytes limits") {
    const TemporaryFolder folder;
    const std::uint64_t payload = 3ull << 30;
    // TensorProto {dims 768, 1048576; data_type FLOAT; name "w"; raw_data: a hole}, last in the file
    const std::string tensor_head = varint(1 << 3) + varint(1 << 20) + varint(1 << 3) + varint(768) + varint(2 << 3) +
                                    varint(1) + field(8, "w") + varint(9 << 3 | 2) + varint(payload);
    OnnxModel model;
    model.input("x", {"batch", "1048576"}).output("y");
    model.node("MatMul", {"x", "w"}, {"y"});
    const std::string graph_head =
        model.graph().SerializeAsString() + varint(5 << 3 | 2) + varint(tensor_head.size() + payload) + tensor_head;
    model.proto.clear_graph();
    const std::string head = model.bytes() + varint(7 << 3 | 2) + varint(graph_head.size() + payload) + graph_head;
    const std::string path = folder.write("huge.onnx", head);
    std::filesystem::resize_file(path, head.size() + payload);

    // In a process of its own that may allocate 100 MiB; pages of the mapped file do not count.
    const ProgramRun limited = run_program("inspect '" + path + "' --batch 1", "ulimit -d 102400");
    CHECK_MESSAGE(limited.exit_code == 0, limited.errors);
    CHECK(run_program("inspect '" + path + "' --batch 1", "ulimit -d 256").exit_code != 0);
    const Graph graph = load_graph(path);
    REQUIRE(graph.ops.size() == 1);
    CHECK(graph.expressions.to_string(graph.tensors[graph.outputs[0]].shape[1]) == "768");

    ImportOptions small;
    small.max_bytes = 1ull << 30;
    const auto failure = failure_of([&] { return load_graph(path, small); });
    REQUIRE(failure);
    CHECK(failure.code == ErrorCode::limit);
    CHECK(failure.says("--max-bytes"));
}

TEST_CASE("BAD_INPUTS 5: duplicate fields and split messages are merged as protobuf does") {
    OnnxModel first, second;
    first.input("x", {"batch", "8"});
    first.node("Relu", {"x"}, {"a"});
    second.proto.clear_ir_version();
    second.proto.clear_opset_import();
    second.node("Exp", {"a"}, {"y"});
    second.output("y");
    const Graph graph = import_onnx(first.bytes() + second.bytes(), "test.onnx", {});
    CHECK(graph.ops.size() == 2);
    CHECK(graph.inputs.size() == 1);
    CHECK(graph.outputs.size() == 1);
    // The last value of a scalar counts: the second ir_version is 0.
    CHECK(import_failure(first.bytes() + second.bytes() + varint(1 << 3) + '\0').says("ir_version"));
}

TEST_CASE("BAD_INPUTS 6: any bytes may stand in names") {
    const std::string name("\xff<script>\x1b[31m\n\0\"'", 18);
    OnnxModel model;
    model.input(name, {"batch", "8"}).output("y");
    model.node("Relu", {name}, {"y"}).set_name(name);
    const Graph graph = model.import();
    CHECK(graph.ops.at(0).name == name);
    CHECK(graph.tensors[graph.inputs[0]].name == name);
}

TEST_CASE("BAD_INPUTS 8: a file without graph, version or operator set is not a model; a newer IR version warns") {
    OnnxModel model = relu_model();
    model.proto.clear_graph();
    CHECK(failure_of([&] { return model.import(); }).says("graph"));
    model = relu_model();
    model.proto.clear_ir_version();
    CHECK(failure_of([&] { return model.import(); }).code == ErrorCode::model);
    model.proto.set_ir_version(0);
    CHECK(failure_of([&] { return model.import(); }).says("ir_version"));
    model.proto.set_ir_version(99);
    CHECK(model.import().warnings.size() == 1);
    model.proto.clear_opset_import();
    CHECK(failure_of([&] { return model.import(); }).says("operator set"));
}

TEST_CASE("BAD_INPUTS 9: an operator set newer than known uses the newest rules; --strict refuses it") {
    const OnnxModel model = [] {
        OnnxModel m(99);
        m.input("x", {"batch", "8"}).output("y");
        m.node("Relu", {"x"}, {"y"});
        return m;
    }();
    const Graph graph = model.import();
    REQUIRE(graph.warnings.size() == 1);
    CHECK(graph.warnings[0].find("99") != std::string::npos);
    ImportOptions strict;
    strict.strict = true;
    CHECK(failure_of([&] { return model.import(strict); }).code == ErrorCode::model);
}
