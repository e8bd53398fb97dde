#include <doctest/doctest.h>

#include <string>

#include "ftax/predict.hpp"
#include "ftax/text_graph.hpp"
#include "tests/approx.hpp"

using namespace ftax;

namespace {

MemoryUse memory(const std::string& outputs, std::int64_t batch) {
    const Graph graph = parse_text_graph(
        "graph chain\n"
        "input %x f32[batch,1000]\n"
        "weight %wa f32[4000,1000]\nweight %wb f32[2000,4000]\nweight %wc f32[8000,2000]\nweight %wy f32[10,8000]\n"
        "%a f32[batch,4000] = linear(%x, %wa)\n"
        "%b f32[batch,2000] = linear(%a, %wb)\n"
        "%c f32[batch,8000] = linear(%b, %wc)\n"
        "%y f32[batch,10] = linear(%c, %wy)\n" +
            outputs,
        "chain.txt");
    Predictor predictor(graph, device_profile("t4"), framework_profile("pytorch-eager"));
    return predictor.memory({{"batch", batch}});
}

}  // namespace

TEST_CASE(
    "activations live from the operator that writes them to the last that reads them, inputs and outputs always") {
    for (const std::int64_t batch : {1, 64}) {
        const double row_bytes = 4.0 * static_cast<double>(batch);
        CHECK(memory("output %y\n", batch).activations_bytes == approx((1000 + 2000 + 8000) * row_bytes));
        CHECK(memory("output %y\noutput %a\n", batch).activations_bytes ==
              approx((1000 + 4000 + 2000 + 8000) * row_bytes));
        CHECK(memory("output %y\n", batch).weights_bytes ==
              approx(4.0 * (4000 * 1000 + 2000 * 4000 + 8000 * 2000 + 10 * 8000)));
    }
}
