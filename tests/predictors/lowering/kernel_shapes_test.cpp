#include "predictors/lowering/kernel_shapes.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "ftax/device.hpp"
#include "ftax/error.hpp"
#include "ftax/framework.hpp"
#include "ftax/import.hpp"
#include "ftax/predict.hpp"
#include "ftax/text_graph.hpp"
#include "ftax/work.hpp"
#include "graphs/ir/strides.hpp"
#include "graphs/loading.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/kernels/kernel_models.hpp"
#include "predictors/lowering/lowering.hpp"
#include "tests/approx.hpp"
#include "tests/measured.hpp"

using namespace ftax;

TEST_CASE("elementwise kernels move vectors where their operands are whole and of one type") {
    const Graph graph = parse_text_graph(R"(graph sums
input %x f32[batch,16,8]
input %y f32[batch,16,8]
weight %row f32[8]
weight %one f32[1]
%s f32[batch,16,8] = pointwise(%x,%y) {function="add"}
output %s
)");
    const BoundShapes bound = bind(graph, {{"batch", 4}});
    Schedule schedule;
    schedule.storage.assign(graph.tensors.size(), DType::f16);
    const auto is_vectorized = [&](const char* second) {
        Kernel sum{.shape = kernels::MemoryShape{.vectorized = false}, .op = 0};
        for (TensorId id = 0; id < graph.tensors.size(); ++id) {
            if (graph.tensors[id].name == "x" || graph.tensors[id].name == second) sum.reads.push_back(id);
            if (graph.tensors[id].name == "s") sum.writes.push_back(id);
        }
        REQUIRE(sum.reads.size() == 2);
        return std::get<kernels::MemoryShape>(kernel_shape(graph, schedule, sum, bound)).vectorized;
    };
    CHECK(is_vectorized("y"));
    CHECK(is_vectorized("one"));
    CHECK_FALSE(is_vectorized("row"));
    for (TensorId id = 0; id < graph.tensors.size(); ++id) {
        if (graph.tensors[id].name == "y") schedule.storage[id] = DType::f32;
    }
    CHECK_FALSE(is_vectorized("y"));
}

TEST_CASE(
    "PyTorch gives layers with a bias to cublasLt, up to 65,534 rows until CUDA 12.1; ONNX Runtime gives it none") {
    const Graph graph = parse_text_graph(R"(graph layers
input %x f32[batch,64]
weight %w f32[32,64]
weight %b f32[32]
%with f32[batch,32] = linear(%x,%w,%b)
%without f32[batch,32] = linear(%x,%w)
output %with
output %without
)");
    const auto layer = [&](std::string_view framework, bool has_bias, std::int64_t rows, int cudnn = 8) {
        const Schedule schedule =
            lower(graph, device_spec("p4"), {.libraries = {.cudnn = cudnn}}, framework_model(framework).traits);
        const auto kernel = std::find_if(schedule.kernels.begin(), schedule.kernels.end(), [&](const Kernel& k) {
            return std::holds_alternative<kernels::GemmShape>(k.shape) &&
                   graph.tensors[k.writes[0]].name == (has_bias ? "with" : "without");
        });
        REQUIRE(kernel != schedule.kernels.end());
        return std::get<kernels::GemmShape>(kernel_shape(graph, schedule, *kernel, bind(graph, {{"batch", rows}})));
    };
    CHECK(layer("pytorch-eager", true, 65534).library == kernels::BlasLibrary::cublas_lt);
    CHECK_FALSE(layer("pytorch-eager", true, 65534).separate_bias);
    CHECK(layer("pytorch-eager", true, 65535).library == kernels::BlasLibrary::cublas);
    CHECK(layer("pytorch-eager", true, 65535).separate_bias);
    CHECK(layer("pytorch-eager", true, 65535, 9).library == kernels::BlasLibrary::cublas_lt);
    CHECK_THROWS_AS(layer("pytorch-eager", true, 1, 6), Error);
    CHECK(layer("torch-compile", true, 65535).library == kernels::BlasLibrary::cublas_lt);
    CHECK(layer("pytorch-eager", false, 8).library == kernels::BlasLibrary::cublas);
    CHECK_FALSE(layer("pytorch-eager", false, 65535).separate_bias);
    CHECK(layer("onnxruntime-cuda", true, 8, 9).library == kernels::BlasLibrary::cublas);
    CHECK_FALSE(layer("onnxruntime-cuda", true, 65535).separate_bias);
}

TEST_CASE("PyTorch has FlashAttention 2 from 2.2 on and prefers cuDNN's attention from 2.11 on") {
    const Graph graph = parse_text_graph(R"(graph blocks
input %q f32[batch,4,128,64]
input %m f32[batch,4,128,128]
%a f32[batch,4,128,64] = attention(%q,%q,%q)
%b f32[batch,4,128,64] = attention(%q,%q,%q,%m)
output %a
output %b
)");
    const auto shapes = [&](std::string_view device, int torch) {
        const Schedule schedule =
            lower(graph, device_spec(device), {.precision = Precision::fp16, .libraries = {.torch = torch}},
                  framework_model("pytorch-eager").traits);
        std::vector<KernelShape> found;
        for (const Kernel& kernel : schedule.kernels)
            found.push_back(kernel_shape(graph, schedule, kernel, bind(graph, {{"batch", 8}})));
        REQUIRE(found.size() == 2);
        return found;
    };
    const auto attention = [&](std::string_view device, int torch, std::size_t i) {
        return std::get<kernels::AttentionShape>(shapes(device, torch)[i]);
    };
    CHECK(attention("h100-sxm5-80gb", 201, 0).library == kernels::FlashLibrary::flash1);
    CHECK(attention("h100-sxm5-80gb", 210, 0).library == kernels::FlashLibrary::flash2);
    CHECK(attention("h100-sxm5-80gb", 211, 0).library == kernels::FlashLibrary::cudnn);
    CHECK(attention("l40s", 211, 0).library == kernels::FlashLibrary::flash2);
    CHECK(attention("h100-sxm5-80gb", 210, 1).path == kernels::AttentionPath::memory_efficient);
    CHECK(attention("h100-sxm5-80gb", 211, 1).path == kernels::AttentionPath::flash);
    CHECK(attention("b200", 211, 1).path == kernels::AttentionPath::flash);
    CHECK(attention("l40s", 211, 1).path == kernels::AttentionPath::memory_efficient);
}

TEST_CASE("only the interpolating kernel of contiguous maps walks over planes, and engines resize at memory speed") {
    const Graph graph = parse_text_graph(R"(graph pyramid
input %x f32[batch,64,20,20]
%y f32[batch,64,40,40] = resize(%x) {function="nearest"}
%z f32[batch,64,80,80] = resize(%y) {function="bilinear"}
output %z
)");
    const BoundShapes bound = bind(graph, {{"batch", 2}});
    const auto resized = [&](std::string_view framework, std::size_t index) {
        const Schedule schedule = lower(graph, device_spec("t4"), {}, framework_model(framework).traits);
        REQUIRE(schedule.kernels.size() == 2);
        return std::get<kernels::MemoryShape>(kernel_shape(graph, schedule, schedule.kernels[index], bound));
    };
    using enum kernels::MemoryClass;
    CHECK(resized("pytorch-eager", 0).cls == resize);
    CHECK(resized("pytorch-eager", 0).rows == 0);
    CHECK(resized("pytorch-eager", 1).rows == 2 * 64);
    CHECK(resized("pytorch-eager", 1).row_length == 80 * 80);
    CHECK(resized("tensorrt", 0).cls == pointwise);
    CHECK(resized("tensorrt", 1).cls == pointwise);
}

TEST_CASE("resizing walks over the planes of all images, sampling over a grid over the channels of one") {
    const auto shape = [](const std::string& function) {
        const Graph graph = parse_text_graph(
            "graph sampled\ninput %x f32[16,32,10,10]\n%y f32[16,32,30,4] = resize(%x) "
            "{function=\"" +
            function + "\"}\noutput %y\n");
        const Schedule schedule = lower(graph, device_spec("t4"), {}, framework_model("pytorch-eager").traits);
        return std::get<kernels::MemoryShape>(kernel_shape(graph, schedule, schedule.kernels.back(), bind(graph, {})));
    };
    CHECK(shape("bilinear").rows == 16 * 32);
    CHECK(shape("bilinear").row_length == 30 * 4);
    CHECK(shape("grid_sample").rows == 32);
    CHECK(shape("grid_sample").row_length == 16 * 30 * 4);
}

TEST_CASE("an embedding bag reads a row per index and writes one sum per bag") {
    const auto read = [](const std::string& rows, const std::string& bag) {
        const Graph graph = parse_text_graph("graph bags\nweight %w f32[" + rows + ",64]\ninput %i i64[10" + bag +
                                             "]\n%y f32[10,64] = embedding(%w,%i)\noutput %y\n");
        const BoundShapes bound = bind(graph, {});
        const Schedule schedule = lower(graph, device_spec("t4"), {}, framework_model("pytorch-eager").traits);
        const auto shape =
            std::get<kernels::MemoryShape>(kernel_shape(graph, schedule, schedule.kernels.back(), bound));
        CHECK(shape.write_bytes == 10 * 64 * 4);
        CHECK(work_of(graph, graph.ops[0], bound).read_bytes == shape.read_bytes);
        return shape.read_bytes;
    };
    CHECK(read("1000", "") == 10 * 64 * 4 + 10 * 8);
    CHECK(read("1000", ",20") == 200 * 64 * 4 + 200 * 8);
    CHECK(read("30", ",20") == 30 * 64 * 4 + 200 * 8);  // each row is fetched once
}

TEST_CASE("serving engines attend with kernels of their own, which depend on the chip and the keys") {
    const Graph graph = parse_text_graph(R"(graph layer
input %q f16[batch,32,new,128]
input %k f16[batch,8,keys,128]
input %n f8e4m3[batch,8,keys,128]
%y f16[batch,32,new,128] = attention(%q,%k,%k) {causal=1 paged=1}
%z f16[batch,32,new,128] = attention(%q,%n,%n) {causal=1 paged=1}
output %y
output %z
)");
    using enum kernels::FlashLibrary;
    const auto libraries = [&](const char* device, const char* framework) {
        const Schedule schedule =
            lower(graph, device_spec(device), {.precision = Precision::fp16}, framework_model(framework).traits);
        std::vector<kernels::FlashLibrary> found;
        for (const Kernel& kernel : schedule.kernels)
            if (const auto* shape = std::get_if<kernels::AttentionShape>(&kernel.shape))
                found.push_back(shape->library);
        return found;
    };
    using Found = std::vector<kernels::FlashLibrary>;
    for (const char* device : {"a100-sxm4-80gb", "l40s", "rtx-pro-6000-blackwell"}) {
        CAPTURE(device);
        CHECK(libraries(device, "vllm") == Found{generation, flashinfer});
        CHECK(libraries(device, "sglang") == Found{flashinfer, flashinfer});
        CHECK(libraries(device, "tensorrt-llm") == Found{tensorrt_llm, tensorrt_llm});
    }
    CHECK(libraries("h100-sxm5-80gb", "vllm") == Found{generation, generation});
    CHECK(libraries("h100-sxm5-80gb", "sglang") == Found{generation, generation});
    CHECK(libraries("h100-sxm5-80gb", "tensorrt-llm") == Found{tensorrt_llm, tensorrt_llm});
    CHECK(libraries("b200", "tensorrt-llm") == Found{generation, generation});
}

TEST_CASE("prompts over latent vectors multiply the mean width of keys and values, decoding that of the vectors") {
    const Graph graph = import_config(
        R"({"model_type":"deepseek_v3","hidden_size":256,"num_hidden_layers":1,"num_attention_heads":16,
            "q_lora_rank":128,"kv_lora_rank":512,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,
            "intermediate_size":512,"first_k_dense_replace":1,"n_routed_experts":4,"num_experts_per_tok":2,
            "moe_intermediate_size":64,"n_group":1,"topk_group":1,"vocab_size":1000,"torch_dtype":"bfloat16"})",
        "config.json", "tiny", {.cache = {CacheKind::paged, DType::unknown}});
    const DeviceProfile device = device_profile("h100-sxm5-80gb");
    const Predictor engine(graph, device, framework_profile("vllm"), {.precision = Precision::bf16});
    const Schedule schedule =
        lower(engine.graph(), device.device, {.precision = Precision::bf16}, framework_model("vllm").traits);
    const auto kernel = std::ranges::find_if(
        schedule.kernels, [](const Kernel& k) { return std::holds_alternative<kernels::AttentionShape>(k.shape); });
    REQUIRE(kernel != schedule.kernels.end());
    const auto shape = [&](std::int64_t seq) {
        const BoundShapes bound = bind(engine.graph(), {{"batch", 1}, {"seq", seq}, {"past", 100}});
        return std::get<kernels::AttentionShape>(kernel_shape(engine.graph(), schedule, *kernel, bound));
    };
    CHECK(shape(100).head_dim == (192 + 128) / 2);
    CHECK(shape(100).kv_heads == 16);
    CHECK(shape(1).head_dim == (576 + 512) / 2);
    CHECK(shape(1).latent_width == 576);
    CHECK(shape(1).kv_heads == 1);
}

TEST_CASE("attention carries its lengths, mask and heads to the kernel, and a single new token gets decode's") {
    const Graph graph = parse_text_graph(R"(graph layer
input %q f16[batch,32,new,128]
input %k f16[batch,8,keys,128]
input %v f16[batch,8,keys,128]
%y f16[batch,32,new,128] = attention(%q,%k,%v) {causal=1}
output %y
)");
    const DeviceProfile device = device_profile("h100-sxm5-80gb");
    const KernelModels models(device.device, kernel_parameters(device));
    const Schedule schedule =
        lower(graph, device.device, {.precision = Precision::fp16}, framework_model("pytorch-eager").traits);
    const auto kernel = std::find_if(schedule.kernels.begin(), schedule.kernels.end(), [](const Kernel& k) {
        return std::holds_alternative<kernels::AttentionShape>(k.shape);
    });
    REQUIRE(kernel != schedule.kernels.end());
    const auto shape = [&](std::int64_t fresh, std::int64_t keys) {
        const BoundShapes bound = bind(graph, {{"batch", 4}, {"new", fresh}, {"keys", keys}});
        return std::get<kernels::AttentionShape>(kernel_shape(graph, schedule, *kernel, bound));
    };
    const auto chunk = shape(512, 4096);
    CHECK(chunk == kernels::AttentionShape{.batch = 4,
                                           .heads = 32,
                                           .q_length = 512,
                                           .kv_length = 4096,
                                           .head_dim = 128,
                                           .causal = true,
                                           .kv_heads = 8,
                                           .library = kernels::FlashLibrary::flash2});
    CHECK(models.plan(chunk, MathPath::fp16_tensor).algorithm == "attention, flash");
    const auto token = shape(1, 4096);
    CHECK_FALSE(token.causal);  // it sees every key
    const auto decode = models.plan(token, MathPath::fp16_tensor);
    CHECK(decode.algorithm == "attention, decode");
    CHECK(decode.split_k > 1);
    CHECK(decode.seconds < 0.5 * models.plan(chunk, MathPath::fp16_tensor).seconds);
}

TEST_CASE("a write into a larger tensor costs what it writes, unless somebody needs the tensor as it was") {
    const auto written_bytes = [](const std::string& source, const std::string& after) {
        const Graph graph = parse_text_graph(R"(graph cache
input %cache f16[batch,8,1024,64]
input %fresh f16[batch,8,1,64]
input %place i64[1]
%y f16[batch,8,1024,64] = scatter(%cache,%place,%fresh) ")" +
                                             source + R"("
%z f16[batch,8,1024,64] = pointwise()" + after +
                                             R"() {function="relu"}
output %z
)");
        const DeviceProfile device = device_profile("t4");
        const Schedule schedule =
            lower(graph, device.device, {.precision = Precision::fp16}, framework_model("pytorch-eager").traits);
        const BoundShapes bound = bind(graph, {{"batch", 2}});
        for (const Kernel& kernel : schedule.kernels) {
            if (graph.ops[kernel.op].kind != OpKind::scatter) continue;
            return std::get<kernels::MemoryShape>(kernel_shape(graph, schedule, kernel, bound)).write_bytes;
        }
        return std::int64_t{0};
    };
    constexpr std::int64_t fresh = 2 * 8 * 64 * 2, whole = 1024 * fresh;
    CHECK(written_bytes("aten::index_copy_", "%y") == fresh);
    CHECK(written_bytes("aten::index_copy", "%y") == fresh);
    CHECK(written_bytes("aten::index_copy", "%cache") == whole);
    CHECK(written_bytes("aten::index_copy_", "%cache") == fresh);
}

TEST_CASE("a row of a layer norm is all that it normalises") {
    const Graph graph = parse_text_graph(
        "graph norm\ninput %x f32[batch,64,256,256]\n"
        "%y f32[batch,64,256,256] = layer_norm(%x) {axis=1}\noutput %y\n");
    const DeviceProfile device = device_profile("l40s");
    const Schedule schedule = lower(graph, device.device, {}, framework_model("pytorch-eager").traits);
    const BoundShapes bound = bind(graph, {{"batch", 16}});
    const auto shape = std::get<kernels::MemoryShape>(kernel_shape(graph, schedule, schedule.kernels.at(0), bound));
    CHECK(shape.rows == 16);
    CHECK(shape.row_length == 64 * 256 * 256);
    // Source: kernelbench.csv, 6.15 ms on an L40S: a block does a row, and 16 of them leave most SMs idle.
    Predictor predictor(graph, device, framework_profile("pytorch-eager"));
    CHECK(predictor.predict({{"batch", 16}}).device_s == test::Measured("layer norm of 16 long rows, l40s"));
}

TEST_CASE("norms over channels have a row for what shares its statistics, in training that of a whole batch") {
    const auto shape_of = [](const std::string& norm) {
        const Graph graph = parse_text_graph(
            "graph norm\ninput %x f32[batch,64,256,256]\n%y f32[batch,64,256,256] = " + norm + "\noutput %y\n");
        const Schedule schedule =
            lower(graph, device_profile("l40s").device, {}, framework_model("pytorch-eager").traits);
        const BoundShapes bound = bind(graph, {{"batch", 16}});
        return std::get<kernels::MemoryShape>(kernel_shape(graph, schedule, schedule.kernels.at(0), bound));
    };
    CHECK(shape_of("group_norm(%x) {groups=8}").rows == 16 * 8);
    CHECK(shape_of("instance_norm(%x)").rows == 16 * 64);
    const auto training = shape_of("batch_norm(%x) {training=1}");
    CHECK(training.rows == 64);
    CHECK(training.row_length == 16 * 256 * 256);
    CHECK(training.elements_per_wait > 0);
    CHECK(shape_of("batch_norm(%x)").cls == kernels::MemoryClass::batch_norm);
}

TEST_CASE("a window of three dimensions counts all of them, and only maxima come with their places") {
    const auto shape_of = [](const char* function) {
        const Graph graph = parse_text_graph(
            std::string("graph pool\ninput %x f32[batch,8,16,16,16]\n%y f32[batch,8,5,5,5] = pool(%x) ") +
            "{kernel=[3,3,3] stride=[3,3,3] function=\"" + function + "\"}\noutput %y\n");
        const Schedule schedule =
            lower(graph, device_profile("l40s").device, {}, framework_model("pytorch-eager").traits);
        const BoundShapes bound = bind(graph, {{"batch", 2}});
        return std::get<kernels::MemoryShape>(kernel_shape(graph, schedule, schedule.kernels.at(0), bound));
    };
    CHECK(shape_of("max").row_length == 27);
    CHECK(shape_of("max").indexed);
    CHECK_FALSE(shape_of("average").indexed);
}

TEST_CASE("a matrix times a vector streams the matrix") {
    const Graph graph = parse_text_graph(
        "graph mv\ninput %a f32[batch,131072]\ninput %b f32[131072,1]\n"
        "%y f32[batch,1] = matmul(%a,%b)\noutput %y\n");
    Predictor predictor(graph, device_profile("l40s"), framework_profile("pytorch-eager"));
    // Source: kernelbench.csv, 0.188 ms on an L40S.
    CHECK(predictor.predict({{"batch", 256}}).device_s == test::Measured("matrix times vector, l40s"));
}

TEST_CASE("threads of a strided reduction and of a scan wait for one step after the other") {
    const auto waits = [](const std::string& operation, const std::string& shape = "16,256,256") {
        const Graph graph =
            parse_text_graph("graph reduce\ninput %x f32[" + shape + "]\n" + operation + "\noutput %y\n");
        const Schedule schedule =
            lower(graph, device_profile("h200-sxm-141gb").device, {}, framework_model("pytorch-eager").traits);
        return std::get<kernels::MemoryShape>(kernel_shape(graph, schedule, schedule.kernels.at(0), bind(graph, {})))
            .waits;
    };
    const auto reduce = [](const char* function, const char* result = "16,256") {
        return fmt::format("%y f32[{}] = reduce(%x) {{function=\"{}\" axes=[1]}}", result, function);
    };
    CHECK(waits(reduce("sum")) == 12);
    CHECK(waits(reduce("argmin")) == 28);
    CHECK(waits("%y f32[16,256], %i i64[16,256] = reduce(%x) {function=\"max\" axes=[1]}") == 28);
    CHECK(waits(reduce("sum"), "16,65536,256") == 48);         // blocks share what is longer
    CHECK(waits(reduce("sum", "16,100"), "16,256,100") == 3);  // without vectors: 16 rows of threads
    CHECK(waits("%y f32[16,256] = reduce(%x) {function=\"sum\" axes=[2]}") == 0);
    CHECK(waits("%y f32[16,256,256] = cumulative(%x) {axis=2}") == 3);
    CHECK(waits("%y f32[16,256,256] = cumulative(%x) {axis=-1}") == 3);
    CHECK(waits("%y f32[16,256,256] = cumulative(%x) {axis=1}") == 0);
    // Source: data/measurements/h200-sxm-141gb, KernelBench 49: 16.1 µs.
    const Graph graph = parse_text_graph(
        "graph reduce\ninput %x f32[batch,256,256]\n%y f32[batch,256], %i i64[batch,256] = reduce(%x) "
        "{function=\"max\" "
        "axes=[1]}\noutput %y\n");
    Predictor predictor(graph, device_profile("h200-sxm-141gb"), framework_profile("pytorch-eager"));
    CHECK(predictor.predict({{"batch", 16}}).device_s == doctest::Approx(16.1e-6).epsilon(0.2));
}

TEST_CASE("a batch norm whose weights are narrow, too, follows a kernel that inverts deviations") {
    const Graph graph = parse_text_graph(R"(graph norms
input %x f32[batch,8,7,7]
weight %w f32[8]
weight %b f32[8]
weight %m f32[8]
weight %v f32[8]
%n f32[batch,8,7,7] = batch_norm(%x,%w,%b,%m,%v)
output %n
)");
    const auto kernels_of = [&](std::string_view framework, Precision precision) {
        const Schedule schedule =
            lower(graph, device_spec("h100-sxm5-80gb"), {.precision = precision}, framework_model(framework).traits);
        CHECK(schedule.launches.size() == 1);
        const auto last = kernel_shape(graph, schedule, schedule.kernels.back(), bind(graph, {{"batch", 3}}));
        CHECK(std::get<kernels::MemoryShape>(last).rows == 3 * 8);
        CHECK(std::get<kernels::MemoryShape>(last).row_length == 49);
        return schedule.kernels.size();
    };
    CHECK(kernels_of("pytorch-eager", Precision::fp16) == 2);
    CHECK(kernels_of("pytorch-eager", Precision::bf16) == 2);
    CHECK(kernels_of("pytorch-eager", Precision::fp32) == 1);
    CHECK(kernels_of("pytorch-eager", Precision::amp) == 1);
}

TEST_CASE("each attribute of a window goes to its own axis") {
    const Graph graph = parse_text_graph(R"(graph conv
input %x f32[batch,8,40,52]
weight %w f32[16,4,2,3]
%y f32[batch,16,13,25] = conv(%x,%w) {stride=[3,2] pad_begin=[1,2] pad_end=[1,2] dilation=[5,3] groups=2}
output %y
)");
    const Schedule schedule = lower(graph, device_spec("t4"), {}, framework_model("pytorch-eager").traits);
    const auto s = std::get<kernels::ConvShape>(
        kernel_shape(graph, schedule, schedule.kernels.at(0), bind(graph, {{"batch", 2}})));
    CHECK(std::array{s.kernel_h, s.kernel_w, s.stride_h, s.stride_w, s.dilation_h, s.dilation_w} ==
          std::array<std::int64_t, 6>{2, 3, 3, 2, 5, 3});
    CHECK(std::array{s.in_height, s.in_width, s.out_height, s.out_width} ==
          std::array<std::int64_t, 4>{40, 52, 13, 25});
    CHECK(std::array{s.batch, s.in_channels, s.out_channels, s.groups} == std::array<std::int64_t, 4>{2, 8, 16, 2});
}

TEST_CASE("strides and filters of a volume go to their own axes, in each order") {
    std::array<std::int64_t, 3> stride{1, 2, 3};
    do {
        const std::array<std::int64_t, 3> filter{stride[0] + 1, stride[1] + 1, stride[2] + 1};
        std::array<std::int64_t, 3> out{};
        for (std::size_t i = 0; i < 3; ++i) out[i] = (24 - filter[i]) / stride[i] + 1;
        const Graph graph =
            parse_text_graph(fmt::format("graph volume\ninput %x f32[batch,8,24,24,24]\nweight %w f32[16,8,{}]\n"
                                         "%y f32[batch,16,{}] = conv(%x,%w) {{stride=[{}]}}\noutput %y\n",
                                         fmt::join(filter, ","), fmt::join(out, ","), fmt::join(stride, ",")));
        const Schedule schedule = lower(graph, device_spec("t4"), {}, framework_model("pytorch-eager").traits);
        const auto s = std::get<kernels::ConvShape>(
            kernel_shape(graph, schedule, schedule.kernels.at(0), bind(graph, {{"batch", 2}})));
        CHECK(std::array{s.stride_d, s.stride_h, s.stride_w} == stride);
        CHECK(std::array{s.kernel_d, s.kernel_h, s.kernel_w} == filter);
        CHECK(std::array{s.out_depth, s.out_height, s.out_width} == out);
    } while (std::ranges::next_permutation(stride).found);
}

TEST_CASE("a row of a table that is looked up is read in whole bytes, whatever its width and type") {
    for (const DType type : {DType::i4, DType::i8, DType::f16, DType::f32}) {
        for (int width = 1; width < 20; ++width) {
            const Graph graph = parse_text_graph(
                fmt::format("graph table\nweight %t f32[1000,{0}]\ninput %i i64[1]\n%y f32[1,{0}] = embedding(%t, %i)\n"
                            "output %y\n",
                            width));
            Schedule schedule = lower(graph, device_spec("t4"), {}, framework_model("pytorch-eager").traits);
            const Kernel& kernel = schedule.kernels.at(0);
            schedule.storage.at(graph.ops[0].inputs[0]) = type;
            const auto shape = std::get<kernels::MemoryShape>(kernel_shape(graph, schedule, kernel, bind(graph, {})));
            CAPTURE(width);
            CHECK(shape.read_bytes == (width * bits_of(type) + 7) / 8 + 8);  // and an index
        }
    }
}

TEST_CASE("a product does its multiply-adds whatever the ranks of its operands, and shares a right one") {
    const auto shape_of = [](const std::string& a, const std::string& b, const std::string& y, const char* kind,
                             const char* op) {
        const Graph graph = parse_text_graph("graph g\ninput %a f32[" + a + "]\n" + kind + " %b f32[" + b +
                                             "]\n%y f32[" + y + "] = " + op + "(%a,%b)\noutput %y\n");
        const Schedule schedule = lower(graph, device_spec("t4"), {}, framework_model("pytorch-eager").traits);
        return std::get<kernels::GemmShape>(
            kernel_shape(graph, schedule, schedule.kernels.at(0), bind(graph, {{"batch", 6}})));
    };
    const auto is = [](const kernels::GemmShape& s, std::int64_t batch, std::int64_t m, std::int64_t n,
                       std::int64_t k) { return s.batch == batch && s.m == m && s.n == n && s.k == k; };
    CHECK(is(shape_of("batch,5,8", "8,7", "batch,5,7", "input", "matmul"), 1, 30, 7, 8));
    CHECK(is(shape_of("batch,5,8", "8,7", "batch,5,7", "weight", "matmul"), 1, 30, 7, 8));
    CHECK(is(shape_of("2,batch,5,8", "8,7", "2,batch,5,7", "input", "matmul"), 1, 60, 7, 8));
    CHECK(is(shape_of("batch,5,8", "7,8", "batch,5,7", "weight", "linear"), 1, 30, 7, 8));
    CHECK(is(shape_of("batch,5,8", "batch,8,7", "batch,5,7", "input", "matmul"), 6, 5, 7, 8));
    CHECK(is(shape_of("2,batch,5,8", "2,batch,8,7", "2,batch,5,7", "input", "matmul"), 12, 5, 7, 8));
}

namespace {

/// Returns the shapes of the memory-bound kernels of a bf16 graph's last operator under eager PyTorch.
std::vector<kernels::MemoryShape> last_shapes(const std::string& lines, const std::string& framework = "pytorch-eager",
                                              int torch = 211) {
    const Graph graph = parse_text_graph("graph g\ninput %i bf16[2,64]\nweight %w bf16[64,64]\n" + lines);
    const BoundShapes bound = bind(graph, {});
    const Schedule schedule =
        lower(graph, device_spec("h100-sxm5-80gb"), {.precision = Precision::bf16, .libraries = {.torch = torch}},
              framework_model(framework).traits);
    const Launch& last = schedule.launches.back();
    std::vector<kernels::MemoryShape> shapes;
    for (std::uint32_t i = 0; i < last.kernel_count; ++i)
        shapes.push_back(std::get<kernels::MemoryShape>(
            kernel_shape(graph, schedule, schedule.kernels[last.first_kernel + i], bound)));
    return shapes;
}

}  // namespace

TEST_CASE("a half-precision file keeps the float32 tensors that it names, engines choose their types") {
    const std::string lines = "input %x f32[4,1000]\n%y f32[4,1000] = pointwise(%x) {function=\"relu\"}\noutput %y\n";
    CHECK(last_shapes(lines)[0].write_bytes == 4 * 4000);
    CHECK(last_shapes(lines)[0].element_bytes == 4);
    CHECK(last_shapes(lines, "tensorrt")[0].write_bytes == 2 * 4000);
}

TEST_CASE("a cast reads what it converts, copy_ what it writes elsewhere") {
    const std::string inputs = "input %x f32[4,1000]\ninput %like bf16[4,1000]\n";
    CHECK(last_shapes(inputs + "%y bf16[4,1000] = cast(%x,%like) \"aten::type_as\"\noutput %y\n")[0].read_bytes ==
          4 * 4000);
    CHECK(last_shapes(inputs + "%y bf16[4,1000] = copy(%like,%x) \"aten::copy_\"\noutput %y\n")[0].read_bytes ==
          4 * 4000);
}

TEST_CASE("casts to half precision move vectors from PyTorch 2.6 on, casts from it do not") {
    const std::string narrow = "input %x f32[4,1000]\n%y bf16[4,1000] = cast(%x) \"aten::to\"\noutput %y\n";
    const std::string widen = "input %x bf16[4,1000]\n%y f32[4,1000] = cast(%x) \"aten::to\"\noutput %y\n";
    CHECK(last_shapes(narrow, "pytorch-eager", 206)[0].vectorized);
    CHECK_FALSE(last_shapes(narrow, "pytorch-eager", 205)[0].vectorized);
    CHECK_FALSE(last_shapes(widen)[0].vectorized);
    CHECK(last_shapes(widen)[0].accesses == 2 * 4000);
}

TEST_CASE("every second element costs the sectors between, distant ones a transposition") {
    const auto negated = [](int stride, const char* type = "bf16") {
        return last_shapes(
            fmt::format("input %x {0}[4,1000]{{{1},{2}}}\n%y {0}[4,1000] = pointwise(%x) "
                        "{{function=\"neg\"}}\noutput %y\n",
                        type, 1000 * stride, stride))[0];
    };
    using enum kernels::MemoryClass;
    CHECK(negated(2).cls == pointwise);
    CHECK(negated(2).read_bytes == 2 * 2 * 4000);
    CHECK(negated(2).accesses == 2 * 4000);
    CHECK_FALSE(negated(2).vectorized);
    CHECK(negated(15).cls == pointwise);
    CHECK(negated(16).cls == transpose);
    CHECK(negated(7, "f32").cls == pointwise);
    CHECK(negated(8, "f32").cls == transpose);
    // Results are written into every second element.
    const auto written = last_shapes(
        "input %x bf16[4,1000]\ninput %into bf16[4,1000]{2000,2}\n"
        "%y bf16[4,1000]{2000,2} = copy(%into,%x) \"aten::copy_\"\noutput %y\n");
    CHECK(written[0].cls == copy);
    CHECK(written[0].read_bytes + written[0].write_bytes == (2 + 4) * 4000);
}

TEST_CASE("concatenations of five dimensions copy one part after the other") {
    const auto joined = [](const std::string& leading) {
        return last_shapes("input %a bf16[" + leading + "64,128]\ninput %b bf16[" + leading + "64,128]\n%y bf16[" +
                           leading + "128,128] = concat(%a,%b) {axis=" + (leading.size() > 2 ? "3" : "1") +
                           "} \"aten::cat\"\noutput %y\n");
    };
    REQUIRE(joined("2,").size() == 1);
    REQUIRE(joined("2,3,5,").size() == 2);
    CHECK(joined("2,3,5,")[1].read_bytes == 2 * 30 * 64 * 128);
}
