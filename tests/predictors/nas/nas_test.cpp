#include "ftax/nas.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "ftax/error.hpp"
#include "ftax/work.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "tests/approx.hpp"
#include "tests/failure.hpp"
#include "tests/recorded/recorded.hpp"

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
    for (const int options : space.options())
        choices.push_back(std::uniform_int_distribution<>(0, options - 1)(random));
    return choices;
}

/// Random architectures at the first batch of a cost function, as a campaign without noise would measure them.
std::vector<nas::Sample> ten_samples(const nas::CostFunction& cost, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<nas::Sample> samples;
    for (int i = 0; i < 10; ++i) {
        const auto choices = random_choices(cost.space(), random);
        std::vector<double> latency_s(cost.batches().size());
        cost.cost(choices, latency_s);
        samples.push_back({choices, cost.batches()[0], latency_s[0]});
    }
    return samples;
}

/// The example of include/ftax/nas.hpp: three layers of 16, 32 or 64 channels.
class Plain : public nas::Space {
  public:
    std::string_view name() const override { return "plain"; }
    std::vector<int> options() const override { return {3, 3, 3}; }
    void parse(std::string_view text, std::vector<int>& choices) const override {
        for (std::size_t at = 0; at < text.size(); at += 3) {
            choices.push_back(text.substr(at, 2) == "16" ? 0 : text.substr(at, 2) == "32" ? 1 : 2);
        }
    }
    void blocks(std::span<const int> choices, std::vector<nas::Block>& chain) const override {
        std::int16_t in = 3;
        for (const int choice : choices) {
            const auto out = static_cast<std::int16_t>(16 << choice);
            chain.push_back({{in, out}});
            in = out;
        }
    }
    std::vector<TensorId> inputs(GraphBuilder& net, std::span<const int>) const override {
        return {net.input("x", {"batch", "3", "32", "32"})};
    }
    void build(GraphBuilder& net, const nas::Block& block, std::vector<TensorId>& live) const override {
        live[0] = net.relu(net.conv(live[0], block.fields[1], {.kernel = 3, .pad = 1}));
    }
};

/// A space whose blocks hold `operators` operators each.
class Repeating final : public Plain {
  public:
    explicit Repeating(int operators) : operators_(operators) {}
    void build(GraphBuilder& net, const nas::Block&, std::vector<TensorId>& live) const override {
        for (int i = 0; i < operators_; ++i) live[0] = net.relu(live[0]);
    }

  private:
    int operators_;
};

int error_code(const nas::Space& space, std::string_view text) {
    std::vector<int> choices;
    return static_cast<int>(test::failure_of([&] { space.parse(text, choices); }).code);
}

}  // namespace

TEST_CASE("the cost function equals the full predictor on random architectures of every space") {
    for (const std::string& name : nas::space_names()) {
        const nas::Space& space = nas::space(name);
        const std::vector<std::int64_t> batches{1, 32};
        const nas::CostFunction cost(space, test_device(), test_framework(), {}, batches,
                                     {.waits_after_blocks = false});
        std::mt19937 random(1);
        for (int i = 0; i < 200; ++i) {
            const std::vector<int> choices = random_choices(space, random);
            std::vector<double> fast(batches.size());
            cost.cost(choices, fast);
            const Graph graph = nas::build_graph(space, choices);
            Predictor predictor(graph, test_device(), test_framework());
            for (std::size_t b = 0; b < batches.size(); ++b) {
                ShapeBindings bindings = cost.dims();
                bindings["batch"] = batches[b];
                CHECK(fast[b] == approx(predictor.predict(bindings).latency_s).epsilon(1e-3));
            }
        }
    }
}

TEST_CASE("the dimensions that a space leaves open are the caller's, and calibrating takes them too") {
    const nas::Space& space = nas::space("transformer");
    std::vector<int> choices;
    space.parse("256-4-4-1024", choices);
    const auto costed = [&](const ShapeBindings& dims, nas::Campaign campaign = {}) {
        double latency_s = 0;
        nas::CostFunction(space, test_device(), test_framework(), {}, {64}, campaign, dims)
            .cost(choices, {&latency_s, 1});
        return latency_s;
    };
    CHECK(costed({}) == costed({{"seq", 128}}));
    CHECK(costed({{"seq", 512}}) > 4 * costed({{"seq", 128}}));  // attention grows with the square

    const Graph graph = nas::build_graph(space, choices);
    Predictor predictor(graph, test_device(), test_framework());
    CHECK(costed({{"seq", 512}}) == approx(predictor.predict({{"batch", 64}, {"seq", 512}}).latency_s).epsilon(1e-3));

    const std::vector<nas::Sample> samples(8, {choices, 64, 1.2 * costed({{"seq", 512}})});
    const nas::Calibration found =
        nas::calibrate(space, test_device(), test_framework(), {}, samples, {}, {{"seq", 512}});
    CHECK(costed({{"seq", 512}}, found.campaign) == approx(samples[0].latency_s).epsilon(0.02));

    CHECK(test::failure_of([&] {
              costed({{"sequence", 64}});
          }).message == "the space transformer leaves no dimension 'sequence' open (those are: seq)");
    CHECK(test::failure_of([&] {
              (void)nas::dims_of(nas::space("fbnet"), {{"batch", 2}});
          }).message == "the space fbnet leaves no dimension 'batch' open (those are: none)");
    CHECK(test::failure_of([&] { costed({{"seq", 0}}); }).message == "dimension 'seq' must be at least 1, not 0");
}

TEST_CASE("the cost function synchronises runs where the full predictor does") {
    const nas::Space& space = nas::space("nasbench201");
    std::mt19937 random(1);
    for (const auto& [slug, waits] :
         {std::pair("onnxruntime-cuda", false), {"pytorch-eager", true}, {"pytorch-eager", false}}) {
        const std::string name = slug;
        const bool synchronized = waits;
        CAPTURE(name);
        CAPTURE(synchronized);
        FrameworkProfile framework = test_framework();
        framework.framework = name;
        const PredictOptions options{.synchronized = synchronized};
        const nas::CostFunction cost(space, test_device(), framework, options, {256}, {.waits_after_blocks = false});
        const std::vector<int> choices = random_choices(space, random);
        std::vector<double> fast(1);
        cost.cost(choices, fast);
        const Graph graph = nas::build_graph(space, choices);
        Predictor predictor(graph, test_device(), framework, options);
        CHECK(fast[0] == approx(predictor.predict({{"batch", 256}}).latency_s).epsilon(1e-6));
    }
}

TEST_CASE("an architecture costs the same after others as alone, under every framework") {
    for (const std::string& name : framework_names()) {
        if (framework_model(name).traits.serves_sequences) continue;
        for (const char* searched : {"nasbench201", "fbnet", "transformer"}) {
            CAPTURE(name);
            CAPTURE(std::string(searched));
            const nas::Space& space = nas::space(searched);
            FrameworkProfile framework = test_framework();
            framework.framework = name;
            const nas::CostFunction cost(space, test_device(), framework, {}, {16}, {.waits_after_blocks = false});
            std::mt19937 random(4);
            for (int i = 0; i < 4; ++i) {
                const std::vector<int> choices = random_choices(space, random);
                std::vector<double> fast(1);
                cost.cost(choices, fast);
                const Graph graph = nas::build_graph(space, choices);
                Predictor predictor(graph, test_device(), framework, {});
                ShapeBindings bindings = space.usual_dims();
                bindings["batch"] = 16;
                CHECK(fast[0] == approx(predictor.predict(bindings).latency_s).epsilon(0.003));
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
    cells.parse("|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|nor_conv_3x3~0|nor_conv_3x3~1|nor_conv_3x3~2|",
                choices);
    const Graph graph = nas::build_graph(cells, choices);
    std::int64_t contraction_flops = 0;
    const BoundShapes bound = bind(graph, {{"batch", 1}});
    for (const Op& op : graph.ops) {
        if (op.kind == OpKind::conv || op.kind == OpKind::linear) contraction_flops += work_of(graph, op, bound).flops;
    }
    // NAS-Bench-201 states 220.12 MFLOPs (multiply-adds, batch norm counted) for the cell of six 3×3 convolutions.
    CHECK(contraction_flops / 2e6 == approx(220.12).epsilon(0.01));

    const nas::Space& ofa = nas::space("ofa");
    // The once-for-all repository states 595 M multiply-adds for D=4, E=6, K=7 at 224 × 224, squeeze-excite and all.
    ofa.parse(
        R"({"ks":[7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7],"e":[6,6,6,6,6,6,6,6,6,6,6,6,6,6,6,6,6,6,6,6],"d":[4,4,4,4,4],"r":224})",
        choices);
    const Graph largest = nas::build_graph(ofa, choices);
    CHECK(total_work(largest, bind(largest, {{"batch", 1}})).flops / 2e6 == approx(580).epsilon(0.1));

    // A deep stem, 3, 4, 6 and 3 blocks, expansion 0.25 and full widths make ResNet-50-D: 4.3 G multiply-adds
    // (arXiv 1812.01187, table 5).
    nas::space("ofa-resnet")
        .parse(R"({"d":[2,1,2,2,1],"e":[0.25,0.25,0.25,0.25,0.25,0.25,0.25,0.25,0.25,0.25,0.25,0.25,)"
               R"(0.25,0.25,0.25,0.25,0.25,0.25],"w":[2, 2, 2, 2, 2, 2],"r": 224})",
               choices);
    const Graph resnet50d = nas::build_graph(nas::space("ofa-resnet"), choices);
    CHECK(total_work(resnet50d, bind(resnet50d, {{"batch", 1}})).flops / 2e9 == approx(4.35).epsilon(0.02));
}

TEST_CASE("FBNet shuffles channels where its blocks have groups, OFA squeezes in its second, fourth and fifth stage") {
    const auto count = [](const Graph& graph, const auto& matches) {
        return std::count_if(graph.ops.begin(), graph.ops.end(), matches);
    };
    const nas::Space& fbnet = nas::space("fbnet");
    std::mt19937 random(1);
    for (int i = 0; i < 10; ++i) {
        const std::vector<int> choices = random_choices(fbnet, random);
        const Graph graph = nas::build_graph(fbnet, choices);
        const auto grouped =
            std::count(choices.begin(), choices.end(), 1) + std::count(choices.begin(), choices.end(), 5);
        CHECK(count(graph, [](const Op& op) { return op.kind == OpKind::transpose; }) == grouped);
        CHECK(count(graph, [](const Op& op) { return op.kind == OpKind::copy; }) == grouped);
    }
    const nas::Space& ofa = nas::space("ofa");
    const auto convolutions_of_vectors = [&](const std::vector<int>& choices) {
        const Graph graph = nas::build_graph(ofa, choices);
        const BoundShapes bound = bind(graph, {{"batch", 1}});
        return count(graph, [&](const Op& op) {
            if (op.kind != OpKind::conv) return false;
            const auto& shape = graph.tensors[op.outputs[0]].shape;
            return bound[shape[2]] == 1 && bound[shape[3]] == 1;
        });
    };
    std::vector<int> choices(ofa.options().size(), 0);
    choices.back() = ofa.options().back() - 1;  // the largest image
    const auto shallow = convolutions_of_vectors(choices);
    for (std::size_t stage = 0; stage < 5; ++stage) {
        std::vector<int> deeper = choices;
        deeper[40 + stage] = 2;  // two blocks more, after kernels and expansions of 20 blocks
        const bool squeezes = stage == 1 || stage == 3 || stage == 4;
        CHECK(convolutions_of_vectors(deeper) - shallow == (squeezes ? 4 : 0));
    }
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
    for (const int side : {31, 32, 1024, 1025}) {
        const int code = side < 32 || side > 1024 ? 2 : 0;
        const std::string bottlenecks =
            R"({"d":[0,0,0,0,0],"e":[0.2,0.2,0.2,0.2,0.2,0.2,0.2,0.2,0.2,0.2,0.2,0.2,0.2,0.2,0.2,0.2,0.2,0.2],)"
            R"("w":[0,0,0,0,0,0],"r":)";
        CHECK(error_code(nas::space("ofa-resnet"), bottlenecks + std::to_string(side) + "}") == code);
    }
    CHECK(error_code(nas::space("ofa-resnet"), R"({"d":[0,0,0,0,3],"e":[],"w":[],"r":224})") == 2);
    CHECK_THROWS_AS(static_cast<void>(nas::space("darts")), Error);
}

TEST_CASE("a choice that its site does not have is refused, as is a space without choices") {
    const nas::CostFunction cost(nas::space("nasbench201"), test_device(), test_framework(), {}, {1});
    std::vector<double> latency_s(1);
    CHECK_THROWS_WITH_AS(cost.cost(std::vector<int>{0, 1, 5, 0, 0, 0}, latency_s),
                         "nasbench201: architecture 0: choice 2 must be from 0 to 4, not 5", Error);
    CHECK_THROWS_AS(cost.cost(std::vector<int>{0, 1, -1, 0, 0, 0}, latency_s, 2), Error);
    class Choiceless final : public Plain {
        std::vector<int> options() const override { return {}; }
    };
    const Choiceless choiceless;
    CHECK_THROWS_AS(nas::CostFunction(choiceless, test_device(), test_framework(), {}, {1}), Error);
}

TEST_CASE("ten samples recover the scalars of a campaign, two of them disturbed") {
    const nas::Space& space = nas::space("fbnet");
    const nas::Campaign truth{.host_scale = 1.7, .device_scale = 0.9};
    const nas::CostFunction cost(space, test_device(), test_framework(), {}, {1, 256}, truth);
    std::mt19937 random(3);
    std::vector<nas::Sample> samples;
    for (int i = 0; i < 10; ++i) {
        const auto choices = random_choices(space, random);
        std::vector<double> latency_s(2);
        cost.cost(choices, latency_s);
        samples.push_back(
            {choices, i % 2 == 0 ? 1 : 256, latency_s[static_cast<std::size_t>(i % 2)] * (i < 2 ? 1.25 : 1)});
    }
    const nas::Calibration found = nas::calibrate(space, test_device(), test_framework(), {}, samples);
    CHECK(found.campaign.host_scale == approx(1.7).epsilon(0.03));
    CHECK(found.campaign.device_scale == approx(0.9).epsilon(0.06));
    CHECK(found.host_relative_stddev < 0.05);
    CHECK_THROWS_AS(static_cast<void>(nas::calibrate(space, test_device(), test_framework(), {}, {})), Error);
}

TEST_CASE("ten samples tell classes of kernels apart where the device decides") {
    const nas::Space& space = nas::space("nasbench201");
    nas::Campaign truth{.device_scale = 1.05};
    const auto class_scale = [](nas::Campaign& c, Factor f) -> double& {
        return c.class_scale[static_cast<std::size_t>(f)];
    };
    class_scale(truth, Factor::normalization) = class_scale(truth, Factor::elementwise) = 0.9;
    class_scale(truth, Factor::pool) = 1.2;
    class_scale(truth, Factor::conv_spatial) = 2.2;
    const nas::CostFunction cost(space, test_device(), test_framework(), {}, {4096}, truth);
    const std::vector<nas::Sample> samples = ten_samples(cost, 5);
    const nas::Calibration found = nas::calibrate(space, test_device(), test_framework(), {}, samples);
    const auto scale = [](const nas::Campaign& c, Factor f) {
        return c.device_scale * c.class_scale[static_cast<std::size_t>(f)];
    };
    for (const Factor factor : {Factor::pool, Factor::conv_spatial}) {
        CHECK(scale(found.campaign, factor) == approx(scale(truth, factor)).epsilon(0.03));
    }
}

TEST_CASE("samples that the device decides leave the host where its prior is") {
    const nas::Space& space = nas::space("nasbench201");
    const nas::CostFunction cost(space, test_device(), test_framework(), {}, {4096}, {.device_scale = 1.1});
    const std::vector<nas::Sample> samples = ten_samples(cost, 4);
    const nas::Calibration found = nas::calibrate(space, test_device(), test_framework(), {}, samples);
    CHECK(found.campaign.device_scale == approx(1.1).epsilon(0.04));
    CHECK(found.campaign.host_scale < 1.3);
}

TEST_CASE("waiting after each block makes costs add up block by block") {
    const nas::Space& space = nas::space("fbnet");
    const nas::CostFunction waiting(space, test_device(), test_framework(), {}, {1, 64});
    const nas::CostFunction running(space, test_device(), test_framework(), {}, {1, 64}, {.waits_after_blocks = false});
    std::vector<int> base(22, 0), first(22, 0), last(22, 0), both(22, 0);
    first[2] = both[2] = 7;
    last[20] = both[20] = 7;
    const auto at_64 = [](const nas::CostFunction& cost, const std::vector<int>& choices) {
        std::vector<double> latency_s(2);
        cost.cost(choices, latency_s);
        return latency_s[1];
    };
    const double apart = at_64(waiting, first) + at_64(waiting, last) - at_64(waiting, base);
    CHECK(at_64(waiting, both) == approx(apart));
    CHECK(at_64(waiting, both) > at_64(running, both));
}

TEST_CASE("a space of one's own costs what the full predictor says") {
    const Plain space;
    std::vector<int> choices;
    space.parse("16-64-32", choices);
    REQUIRE(choices == std::vector<int>{0, 2, 1});
    std::vector<double> latency_s(1);
    const nas::CostFunction cost(space, test_device(), test_framework(), {}, {8});
    cost.cost(choices, latency_s);
    const Graph graph = nas::build_graph(space, choices);
    Predictor predictor(graph, test_device(), test_framework());
    CHECK(latency_s[0] == approx(predictor.predict({{"batch", 8}}).latency_s));
}

TEST_CASE("a space without operators or with more than a million is refused") {
    const std::vector<int> choices{0, 0, 0};
    const auto code = [&](int operators) {
        const Repeating space(operators);
        return test::failure_of([&] { return nas::build_graph(space, choices); }).code;
    };
    CHECK(code(0) == ErrorCode::model);
    CHECK(code(340'000) == ErrorCode::limit);
}

TEST_CASE("calibrations on one to ten noisy samples are those that are recorded") {
    test::check_recorded(
        "nas_calibrations.tsv", 3,
        [](std::span<const std::string> row) {
            const nas::Space& space = nas::space(row[0]);
            std::mt19937 random(static_cast<unsigned>(std::stoi(row[2])));
            const nas::Campaign truth{.host_scale = 1.4, .device_scale = 0.85};
            const nas::CostFunction cost(space, test_device(), test_framework(), {}, {1, 64}, truth);
            std::vector<nas::Sample> samples;
            for (int i = 0; i < std::stoi(row[1]); ++i) {
                const auto choices = random_choices(space, random);
                std::vector<double> latency_s(2);
                cost.cost(choices, latency_s);
                const double noise = 0.9 + 0.2 * static_cast<double>(random() % 1024) / 1024;
                samples.push_back({choices, i % 2 == 0 ? 64 : 1, latency_s[i % 2 == 0 ? 1 : 0] * noise});
            }
            const nas::Calibration found = nas::calibrate(space, test_device(), test_framework(), {}, samples);
            return std::vector{test::figure(found.campaign.host_scale), test::figure(found.campaign.device_scale),
                               test::figure(found.host_relative_stddev), test::figure(found.device_relative_stddev)};
        },
        1e-4);
}
