#include <doctest/doctest.h>

#include <random>

#include "ftax/error.hpp"
#include "ftax/nas.hpp"
#include "ftax/work.hpp"

using namespace ftax;

namespace {

DeviceProfile test_device() {
    DeviceProfile profile;
    profile.device.slug = "test";
    profile.device.name = "Test GPU";
    profile.device.architecture = Architecture::turing;
    profile.device.sms = 68;
    profile.device.boost_clock_hz = 1.5e9;
    profile.device.base_clock_hz = 1.3e9;
    profile.device.memory_bytes = 11e9;
    profile.device.memory_bandwidth_bytes_per_s = 616e9;
    profile.device.l2_bytes = 5.5e6;
    profile.device.shared_memory_per_sm_bytes = 65536;
    profile.device.registers_per_sm = 65536;
    profile.device.max_threads_per_sm = 1024;
    profile.device.power_limit_w = 250;
    profile.device.peak_flops_per_s[static_cast<int>(MathPath::fp32)] = 13e12;
    profile.device.peak_flops_per_s[static_cast<int>(MathPath::fp16_tensor)] = 54e12;
    return profile;
}

FrameworkProfile test_framework() {
    FrameworkProfile profile;
    profile.framework = "pytorch-eager";
    return profile;
}

std::vector<int> random_choices(const nas::Space& space, std::mt19937& random) {
    std::vector<int> choices;
    for (const int options : space.options()) choices.push_back(std::uniform_int_distribution<>(0, options - 1)(random));
    return choices;
}

int error_code(const nas::Space& space, std::string_view text) {
    std::vector<int> choices;
    try {
        space.parse(text, choices);
    } catch (const Error& error) {
        return static_cast<int>(error.code());
    }
    return 0;
}

}  // namespace

TEST_CASE("the cost function equals the full predictor on random architectures of every space") {
    for (const std::string& name : nas::space_names()) {
        const nas::Space& space = nas::space(name);
        const std::vector<std::int64_t> batches{1, 32};
        const nas::CostFunction cost(space, test_device(), test_framework(), {}, batches);
        std::mt19937 random(1);
        for (int i = 0; i < 200; ++i) {
            const std::vector<int> choices = random_choices(space, random);
            std::vector<double> fast(batches.size());
            cost.cost(choices, fast);
            const Graph graph = nas::build_graph(space, choices);
            Predictor predictor(graph, test_device(), test_framework());
            for (std::size_t b = 0; b < batches.size(); ++b) {
                const double full = predictor.predict({{"batch", batches[b]}}).latency_s;
                CHECK(fast[b] == doctest::Approx(full).epsilon(1e-3));
            }
        }
    }
}

TEST_CASE("threads give the same costs, and a marginal cost is the cost of the changed architecture") {
    const nas::Space& space = nas::space("fbnet");
    const nas::CostFunction cost(space, test_device(), test_framework(), {}, {1, 64});
    std::mt19937 random(2);
    std::vector<int> choices;
    for (int i = 0; i < 50; ++i) {
        const auto one = random_choices(space, random);
        choices.insert(choices.end(), one.begin(), one.end());
    }
    std::vector<double> parallel(100), serial(100), marginal(18), single(2);
    cost.cost(choices, parallel, 2);
    cost.cost(choices, serial, 1);
    CHECK(parallel == serial);
    const std::span<const int> first(choices.data(), 22);
    cost.marginal_cost(first, 5, marginal);
    cost.cost(first, single);
    CHECK(marginal[2 * static_cast<std::size_t>(choices[5])] == single[0]);
    CHECK(marginal[2 * 8] < marginal[2 * 7]);  // a skipped layer costs less than the widest one
}

TEST_CASE("FLOPs of built networks are those of the papers") {
    std::vector<int> choices;
    const nas::Space& cells = nas::space("nasbench201");
    cells.parse("|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|nor_conv_3x3~0|nor_conv_3x3~1|nor_conv_3x3~2|", choices);
    const Graph graph = nas::build_graph(cells, choices);
    std::int64_t contraction_flops = 0;
    const BoundShapes bound = bind(graph, {{"batch", 1}});
    for (const Op& op : graph.ops) {
        if (op.kind == OpKind::conv || op.kind == OpKind::linear) contraction_flops += work_of(graph, op, bound).flops;
    }
    // NAS-Bench-201 states 220.12 MFLOPs (multiply-adds, batch norm counted) for the cell of six 3×3 convolutions.
    CHECK(contraction_flops / 2e6 == doctest::Approx(220.12).epsilon(0.01));

    const nas::Space& ofa = nas::space("ofa");
    // The once-for-all repository states 595 M multiply-adds for D=4, E=6, K=7 at 224 × 224, squeeze-excite and all.
    ofa.parse(R"({"ks":[7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7],"e":[6,6,6,6,6,6,6,6,6,6,6,6,6,6,6,6,6,6,6,6],"d":[4,4,4,4,4],"r":224})",
              choices);
    const Graph largest = nas::build_graph(ofa, choices);
    CHECK(total_work(largest, bind(largest, {{"batch", 1}})).flops / 2e6 == doctest::Approx(580).epsilon(0.1));
}

TEST_CASE("an architecture that does not parse is a usage error saying what was expected") {
    CHECK(error_code(nas::space("fbnet"), "7-8-1") == 2);
    CHECK(error_code(nas::space("fbnet"), "7-8-x") == 2);
    CHECK(error_code(nas::space("fbnet"), "9-8-1-8-4-8-8-8-7-4-1-4-7-3-2-7-3-2-4-2-4-5") == 2);
    CHECK(error_code(nas::space("fbnet"), "7-8-1-8-4-8-8-8-7-4-1-4-7-3-2-7-3-2-4-2-4-5") == 0);
    CHECK(error_code(nas::space("nasbench201"), "") == 2);
    CHECK(error_code(nas::space("nasbench201"), "|none~0|+|none~0|none~1|+|none~0|none~1|none~3|") == 2);
    CHECK(error_code(nas::space("nasbench201"), "|none~0|+|none~0|none~1|+|none~0|none~1|none~2|x") == 2);
    CHECK(error_code(nas::space("nasbench201"), "|none~0|+|none~0|none~1|+|none~0|none~1|none~2|") == 0);
    CHECK(error_code(nas::space("ofa"), R"({"ks":[7],"e":[6],"d":[2],"r":204})") == 2);
    CHECK(error_code(nas::space("ofa"), "{}") == 2);
    CHECK_THROWS_AS(static_cast<void>(nas::space("darts")), Error);
}
