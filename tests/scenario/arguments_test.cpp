#include <doctest/doctest.h>

#include <functional>

#include "ftax/measurement.hpp"
#include "ftax/text_graph.hpp"
#include "src/scenario/scenario.hpp"
#include "src/scenario/usable_rows.hpp"
#include "tests/failure.hpp"

using namespace ftax;
using namespace ftax::scenario;

namespace {

template <class Call>
int code_of(Call call) {
    return static_cast<int>(test::failure_of(call).code);
}

int batch_code(const char* text) {
    return code_of([&] { return parse_batches(text); });
}

}  // namespace

TEST_CASE("--batch takes numbers, factors and steps") {
    using List = std::vector<std::int64_t>;
    CHECK(parse_batches("7") == List{7});
    CHECK(parse_batches("1,2,4:128:x2") == List{1, 2, 4, 8, 16, 32, 64, 128});
    CHECK(parse_batches("4:9:x2") == List{4, 8});
    CHECK(parse_batches("10:20:+5") == List{10, 15, 20});
    CHECK(parse_batches("9223372036854775807") == List{9223372036854775807});
    CHECK(parse_batches("9223372036854775806:9223372036854775807:x3") == List{9223372036854775806});
}

TEST_CASE("BAD_INPUTS 50: batch 0, negative, 2^63, and lists without an end") {
    CHECK(batch_code("0") == 2);
    CHECK(batch_code("-1") == 2);
    CHECK(batch_code("9223372036854775808") == 4);
    CHECK(batch_code("99999999999999999999999") == 4);
    CHECK(batch_code("") == 2);
    CHECK(batch_code("1,") == 2);
    CHECK(batch_code("8x") == 2);
    CHECK(batch_code("1.5") == 2);
    CHECK(batch_code("1:8") == 2);
    CHECK(batch_code("1:8:") == 2);
    CHECK(batch_code("1:8:x1") == 2);
    CHECK(batch_code("1:8:x0") == 2);
    CHECK(batch_code("1:8:*2") == 2);
    CHECK(batch_code("8:1:x2") == 2);
    CHECK(batch_code("1:1000000:+1") == 4);
}

TEST_CASE("--dim and --shapes") {
    CHECK(parse_dimensions({"seq=128", "seq=128"}) == ShapeBindings{{"seq", 128}});
    for (const char* text : {"seq", "=1", "seq=", "seq=0", "seq=-3", "seq=x", "seq=256"}) {
        CHECK(code_of([&] { return parse_dimensions({"seq=128", text}); }) == 2);
    }
    CHECK(code_of([&] { return parse_dimensions({"n=9223372036854775808"}); }) == 4);
    CHECK(test::failure_of([&] { return parse_dimensions({"6"}, "--trip"); }).says("--trip '6'"));

    const InputShape shape = parse_input_shape("onnx::in:0:batchx3x224x2*w");
    CHECK(shape.input == "onnx::in:0");
    CHECK(shape.dims == std::vector<std::string>{"batch", "3", "224", "2*w"});
    for (const char* text : {"in", ":1x2", "in:", "in:1xx2", "in:1x"}) {
        CHECK(code_of([&] { return parse_input_shape(text); }) == 2);
    }
}

TEST_CASE("values folded by an exporter cause a warning under eager PyTorch only") {
    Graph graph = parse_text_graph(
        "graph g\nmodule linear \"torch.nn.modules.linear.Linear\"\ninput %x f32[2,64]\nweight %linear.weight "
        "f32[64,64]\n"
        "weight %val_7 f32[64,64]\nconstant %mask f32[2,64]\nconstant %scale f32[]\n"
        "%y f32[2,64] = pointwise(%x, %mask) {function=\"mul\"}\noutput %y\n");
    CHECK(onnx_warnings(graph, "pytorch-eager", true).empty());  // no ONNX file
    graph.format = "onnx";
    REQUIRE(onnx_warnings(graph, "pytorch-eager@2.4", true).size() == 1);
    CHECK(onnx_warnings(graph, "pytorch-eager", true)[0] ==
          "torch.onnx.export folded a tensor that eager PyTorch computes in each pass; a .pt2 file of the model "
          "includes their cost");
    CHECK(onnx_warnings(graph, "onnxruntime-cuda", true).empty());
    graph.module_calls.clear();  // another exporter, with meaningless names
    CHECK(onnx_warnings(graph, "pytorch-eager", true).empty());
}

TEST_CASE("--branch takes the branch that it names, --input the types of torch and of ONNX") {
    CHECK(parse_branch("a=b=then") == std::pair(std::string("a=b"), true));
    CHECK(parse_branch("If_3=else") == std::pair(std::string("If_3"), false));
    for (const char* text : {"=then", "a=Then", "a", "a="}) CHECK(code_of([&] { return parse_branch(text); }) == 2);
    const std::pair<const char*, int> torch[] = {{"float", 4}, {"double", 8}, {"half", 2},  {"bfloat16", 2},
                                                 {"long", 8},  {"int", 4},    {"short", 2}, {"char", 1},
                                                 {"byte", 1},  {"bool", 1}};
    for (const auto& [name, bytes] : torch) {
        const std::string text = std::string(name) + ":batchx3";
        const InputShape read = parse_input_type(text);
        REQUIRE(read.dtype);
        CHECK_MESSAGE(bits_of(*read.dtype) == 8 * bytes, text);
        CHECK(is_float(*read.dtype) == (std::string("float double half bfloat16").find(name) != std::string::npos));
        CHECK(read.dims == std::vector<std::string>{"batch", "3"});
    }
    CHECK(*parse_input_type("f16:2").dtype == DType::f16);
    CHECK(parse_input_type("long=5").value == "5");
    CHECK(code_of([] { return parse_input_type("quaternion:2"); }) == 2);
}

TEST_CASE("two rows are one measurement if nothing but their lines differs") {
    const Measurement row{.gpu = "t4", .model = "resnet18", .input = 224, .latency_s = 0.01, .line = 3};
    Measurement other = row;
    other.line = 9;
    CHECK(scenario::is_same_run(row, other));
    CHECK(scenario::is_same_run(other, row));
    const std::function<void(Measurement&)> changes[] = {[](Measurement& m) { m.gpu = "l4"; },
                                                         [](Measurement& m) { m.framework = "tensorrt"; },
                                                         [](Measurement& m) { m.precision = Precision::fp16; },
                                                         [](Measurement& m) { m.model = "resnet34"; },
                                                         [](Measurement& m) { m.batch = 2; },
                                                         [](Measurement& m) { m.input = 192; },
                                                         [](Measurement& m) { m.seq = 16; },
                                                         [](Measurement& m) { m.run = "b"; },
                                                         [](Measurement& m) { m.mode = "inf"; },
                                                         [](Measurement& m) { m.option = "fusion"; },
                                                         [](Measurement& m) { m.layout = "nhwc"; },
                                                         [](Measurement& m) { m.version = "8.6"; },
                                                         [](Measurement& m) { m.copies = true; },
                                                         [](Measurement& m) { m.era = "v1.5"; },
                                                         [](Measurement& m) { m.latency_s = 0.011; }};
    for (const auto& change : changes) {
        Measurement changed = other;
        change(changed);
        CHECK_FALSE(scenario::is_same_run(row, changed));
    }
}
