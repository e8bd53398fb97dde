#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ftax/device.hpp"
#include "ftax/import.hpp"
#include "ftax/text_graph.hpp"
#include "predictors/lowering/kernel_shapes.hpp"
#include "predictors/lowering/lowering.hpp"

using namespace ftax;

namespace {

Schedule lowered(const Graph& graph, Precision precision = Precision::fp32) {
    return lower(graph, device_spec("rtx-2080-ti"), {.precision = precision}, {});
}

std::vector<std::uint32_t> first_equal(const std::string& text) {
    const Graph graph = parse_text_graph(text);
    return first_equal_kernels(graph, lowered(graph));
}

}  // namespace

TEST_CASE("kernels that are called equal have one shape at every binding, and a network has many") {
    for (const char* model : {"resnet50", "bert", "efficientnet"}) {
        const Graph graph = load_graph(model);
        for (const Precision precision : {Precision::fp32, Precision::amp, Precision::amp_cached}) {
            const Schedule schedule = lowered(graph, precision);
            const auto first = first_equal_kernels(graph, schedule);
            REQUIRE(first.size() == schedule.kernels.size());
            std::size_t repeated = 0;
            for (const std::int64_t batch : {1, 3, 32}) {
                ShapeBindings bindings{{"batch", batch}};
                for (const std::string& symbol : graph.expressions.symbols()) bindings.emplace(symbol, 16 * batch);
                const BoundShapes bound = ftax::bind(graph, bindings);
                for (std::uint32_t i = 0; i < first.size(); ++i) {
                    CAPTURE(model);
                    CAPTURE(i);
                    REQUIRE(first[i] <= i);
                    const Kernel& kernel = schedule.kernels[i];
                    const Kernel& other = schedule.kernels[first[i]];
                    const auto shape = [&](const Kernel& k) { return kernel_shape(graph, schedule, k, bound); };
                    REQUIRE(is_launched(graph, kernel, bound) == is_launched(graph, other, bound));
                    REQUIRE(kernel.path == other.path);
                    REQUIRE(shape(kernel) == shape(other));
                    repeated += first[i] < i ? 1 : 0;
                }
            }
            CHECK(repeated > first.size());  // over three bindings: more than a third of the kernels
        }
    }
}

TEST_CASE("kernels of equal tensors differ where their attributes or element types do") {
    const std::string head = "input %x f32[batch,8,16,16]\nweight %w f32[8,8,3,3]\n";
    const std::string conv = " = conv(%x, %w) {pad_begin=[1,1] pad_end=[1,1]}\n";
    CHECK(first_equal(head + "%a f32[batch,8,16,16]" + conv + "%b f32[batch,8,16,16]" + conv +
                      "output %a\noutput %b\n") == std::vector<std::uint32_t>{0, 0});
    const std::string dilated = " = conv(%x, %w) {pad_begin=[2,2] pad_end=[2,2] dilation=[2,2]}\n";
    CHECK(first_equal(head + "%a f32[batch,8,16,16]" + conv + "%b f32[batch,8,16,16]" + dilated +
                      "output %a\noutput %b\n") == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("experts are apart where the reshapes that sort their rows read different tensors") {
    const std::string head =
        "input %a f32[batch,64]\ninput %b f32[more,64]\nweight %w f32[8,64,128]\n"
        "%x f32[16,64] = reshape(%a)\n%y f32[16,64] = reshape(%b)\n";
    const auto product = [](const std::string& of) { return "f32[16,128] = matmul(" + of + ",%w) {experts=8}\n"; };
    const std::string outputs = "output %p\noutput %q\n";
    CHECK(first_equal(head + "%p " + product("%x") + "%q " + product("%x") + outputs) ==
          std::vector<std::uint32_t>{0, 0});
    CHECK(first_equal(head + "%p " + product("%x") + "%q " + product("%y") + outputs) ==
          std::vector<std::uint32_t>{0, 1});
}
