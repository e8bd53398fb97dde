#include "predictors/lowering/kernel_shapes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <variant>

#include "ftax/device.hpp"
#include "ftax/error.hpp"
#include "ftax/text_graph.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/lowering/lowering.hpp"

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
        Kernel sum;
        sum.op = 0;
        for (TensorId id = 0; id < graph.tensors.size(); ++id) {
            if (graph.tensors[id].name == "x" || graph.tensors[id].name == second) sum.reads.push_back(id);
            if (graph.tensors[id].name == "s") sum.writes.push_back(id);
        }
        REQUIRE(sum.reads.size() == 2);
        return std::get<kernels::MemoryShape>(kernel_shape(graph, schedule, sum, bound, false)).vectorized;
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
            return k.cls == KernelClass::gemm && graph.tensors[k.writes[0]].name == (has_bias ? "with" : "without");
        });
        REQUIRE(kernel != schedule.kernels.end());
        return std::get<kernels::GemmShape>(
            kernel_shape(graph, schedule, *kernel, bind(graph, {{"batch", rows}}), false));
    };
    CHECK(layer("pytorch-eager", true, 65534).library == kernels::BlasLibrary::cublas_lt);
    CHECK_FALSE(layer("pytorch-eager", true, 65534).separate_bias);
    CHECK(layer("pytorch-eager", true, 65535).library == kernels::BlasLibrary::cublas);
    CHECK(layer("pytorch-eager", true, 65535).separate_bias);
    CHECK(layer("pytorch-eager", true, 65535, 9).library == kernels::BlasLibrary::cublas_lt);
    CHECK_THROWS_AS(layer("pytorch-eager", true, 1, 7), Error);
    CHECK(layer("torch-compile", true, 65535).library == kernels::BlasLibrary::cublas_lt);
    CHECK(layer("pytorch-eager", false, 8).library == kernels::BlasLibrary::cublas);
    CHECK_FALSE(layer("pytorch-eager", false, 65535).separate_bias);
    CHECK(layer("onnxruntime-cuda", true, 8, 9).library == kernels::BlasLibrary::cublas);
    CHECK_FALSE(layer("onnxruntime-cuda", true, 65535).separate_bias);
}
