#include "predictors/lowering/autocast.hpp"

#include <doctest/doctest.h>

#include "ftax/device.hpp"
#include "ftax/text_graph.hpp"
#include "predictors/lowering/lowering.hpp"

using namespace ftax;

namespace {

/// A transformer's residual stream: the embedding of positions is an f32 parameter.
Graph stream() {
    return parse_text_graph(R"(graph stream
input %x f32[batch,16,8]
weight %position f32[16,8]
weight %w f32[8,8]
weight %g f32[8]
%p f32[batch,16,8] = linear(%x,%w)
%s f32[batch,16,8] = pointwise(%p,%position) {function="add"}
%n f32[batch,16,8] = layer_norm(%s,%g) {axis=2} @norm
%l f32[batch,16,8] = linear(%n,%w)
%a f32[batch,16,8] = pointwise(%l) {function="relu"}
%o f32[batch,16,8] = softmax(%a) {axis=2}
output %o
)");
}

DType type_of(const Graph& graph, const std::vector<DType>& storage, const std::string& name) {
    for (TensorId id = 0; id < graph.tensors.size(); ++id) {
        if (graph.tensors[id].name == name) return storage[id];
    }
    return DType::unknown;
}

std::vector<DType> storage_of(const Graph& graph) {
    std::vector<DType> storage(graph.tensors.size(), DType::f32);
    autocast::assign_storage(graph, autocast::policies(graph), storage);
    return storage;
}

}  // namespace

TEST_CASE("autocast lowers contractions, keeps norms and softmax in f32 and widens sums with parameters") {
    const Graph graph = stream();
    const auto storage = storage_of(graph);
    CHECK(type_of(graph, storage, "p") == DType::f16);
    CHECK(type_of(graph, storage, "s") == DType::f32);
    CHECK(type_of(graph, storage, "n") == DType::f32);
    CHECK(type_of(graph, storage, "l") == DType::f16);
    CHECK(type_of(graph, storage, "a") == DType::f16);
    CHECK(type_of(graph, storage, "o") == DType::f32);
}

TEST_CASE("timm's own norms stay in f16") {
    Graph graph = stream();
    graph.module_calls = {{"norm", "timm.layers.norm.LayerNorm"}};
    CHECK(type_of(graph, storage_of(graph), "n") == DType::f16);
    graph.module_calls = {{"norm", "torch.nn.modules.normalization.LayerNorm"}};
    CHECK(type_of(graph, storage_of(graph), "n") == DType::f32);
}

TEST_CASE("a context that stays open casts activations on every run, weights on the first alone") {
    const Graph graph = stream();
    const auto casts = [&](Precision precision) {
        std::size_t count = 0;
        for (const Kernel& kernel : lower(graph, device_spec("t4"), {.precision = precision}, {}).kernels) {
            count += kernel.written_type.has_value();
        }
        return count;
    };
    CHECK(casts(Precision::amp) == 4);         // %x, %n and %w twice
    CHECK(casts(Precision::amp_cached) == 2);  // %x and %n
}
