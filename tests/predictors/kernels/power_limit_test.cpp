#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "ftax/graph_builder.hpp"
#include "ftax/nas.hpp"
#include "ftax/predict.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/host/host_costs.hpp"
#include "predictors/kernels/kernel_models.hpp"
#include "predictors/nas/network.hpp"
#include "tests/approx.hpp"

using namespace ftax;

namespace {

/// A wide layer between activations: arithmetic and traffic in turn.
Graph layers(int count) {
    GraphBuilder net("layers");
    TensorId x = net.input("x", {"batch", "2048"});
    for (int i = 0; i < count; ++i) x = net.relu(net.linear(x, 2048));
    return net.finish({x});
}

double sum(const std::vector<LaunchCosts>& operators, double LaunchCosts::*member) {
    double total = 0;
    for (const LaunchCosts& op : operators) total += op.*member;
    return total;
}

/// Choices of the largest blocks: on a T4 they exceed its power limit.
std::vector<int> largest(const nas::Space& space) {
    std::vector<int> choices;
    for (const int options : space.options()) choices.push_back(options - 1);
    return choices;
}

doctest::Approx nearly(double seconds) {
    return approx(seconds).epsilon(1e-3);
}

}  // namespace

TEST_CASE("an operation in TF32 takes twice the energy of one in halves") {
    const DeviceProfile card = device_profile("a100-sxm4-80gb");
    const KernelModels models(card.device, kernel_parameters(card));
    const auto seconds = [&](MathPath path, int bytes) {
        const kernels::GemmShape shape{.m = 8192, .n = 8192, .k = 8192, .element_bytes = bytes, .linear = true};
        return kernels::within_power(models.plan(shape, path));
    };
    // Both are held back by the card's power limit.
    CHECK(seconds(MathPath::tf32, 4) == approx(2 * seconds(MathPath::fp16_tensor, 2)).epsilon(0.03));
}

TEST_CASE("an operation in int8 takes half the energy of one in halves, less on Ada") {
    const auto ratio = [](const char* card) {
        const DeviceSpec device = device_profile(card).device;
        return kernels::energy_per_flop_j(device, MathPath::int8_tensor) /
               kernels::energy_per_flop_j(device, MathPath::fp16_tensor);
    };
    CHECK(ratio("a100-sxm4-80gb") == approx(0.5));
    CHECK(ratio("l4") == approx(0.4));
    // Products of an engine, whose board lowers its clock: peak · (limit / power at boost)^⅔.
    const DeviceProfile card = device_profile("l4");
    const KernelModels models(card.device, kernel_parameters(card));
    const auto seconds = [&](MathPath path, Precision operands) {
        const kernels::GemmShape shape{
            .m = 8192, .n = 8192, .k = 8192, .element_bytes = 2, .linear = true, .engine = true, .operands = operands};
        return kernels::within_power(models.plan(shape, path));
    };
    CHECK(seconds(MathPath::fp16_tensor, Precision::fp32) / seconds(MathPath::int8_tensor, Precision::int8) ==
          approx(2 * std::pow(2 * 0.4, -2.0 / 3)).epsilon(0.03));
}

TEST_CASE("a pass slows down as far as its energy asks for") {
    PassPower pass;
    const auto add = [&](double seconds, double power_limited_s) {
        pass.add({seconds, power_limited_s, throttling_seconds(seconds, power_limited_s)});
    };
    add(1.0, 1.5);  // arithmetic that would take half as long again
    CHECK(pass.slowdown() == 1);
    add(0.5, 0.3);  // traffic
    CHECK(pass.slowdown() == approx(0.3 / 0.5));
    add(0.1, 0.0);  // a gap
    CHECK(pass.slowdown() == approx(0.2 / 0.5));
    CHECK(pass.seconds + pass.slowdown() * pass.throttling_s == approx(pass.power_limited_s));
    add(1.0, 0.6);
    CHECK(pass.slowdown() == 0);
}

TEST_CASE("a pass takes as long as its energy at the power limit, or as its kernels at boost clock") {
    const Graph graph = layers(8);
    for (const char* slug : {"t4", "v100-pcie-32gb"}) {
        const std::string device = slug;
        CAPTURE(device);
        Predictor predictor(graph, device_profile(device), framework_profile("pytorch-eager"));
        std::vector<LaunchCosts> operators;
        const Prediction prediction = predictor.predict({{"batch", 8192}}, operators);
        const Explanation explanation = predictor.explain({{"batch", 8192}});
        const double boost_s = sum(operators, &LaunchCosts::boost_s);
        const double power_limited_s = sum(operators, &LaunchCosts::power_limited_s);
        CHECK((power_limited_s > boost_s) == (device == "t4"));
        CHECK(prediction.device_s == nearly(std::max(boost_s, power_limited_s)));
        CHECK(prediction.sm_active > 0.95);
        CHECK(prediction.sm_active <= 1);
        // Arithmetic draws the limit; where the host decides, SMs are busy for a share of the time.
        const DeviceSpec board = device_spec(device);
        CHECK(prediction.power_w > 0.9 * board.power_limit_w);
        CHECK(prediction.power_w <= board.power_limit_w);
        const double waiting_w = predictor.predict({{"batch", 1}}).power_w;
        CHECK(waiting_w > board.idle_power_w());
        CHECK(waiting_w < 0.7 * board.power_limit_w);
        for (std::size_t i = 0; i < operators.size(); ++i) {
            const LaunchCosts& op = operators[i];
            CHECK(op.device_s >= op.boost_s);
            CHECK(op.device_s <= op.boost_s + op.throttling_s);
            double kernels_s = 0;
            for (const KernelDetail& kernel : explanation.kernels[i]) kernels_s += kernel.seconds;
            CHECK(std::abs(kernels_s - op.device_s) <= 1e-9 * op.device_s);
        }
    }
}

TEST_CASE("traffic beside arithmetic leaves it power") {
    GraphBuilder net("activations");
    TensorId x = net.relu(net.linear(net.input("x", {"batch", "2048"}), 2048));
    for (int i = 0; i < 100; ++i) x = net.relu(x);
    const Graph diluted = net.finish({x});
    const Graph one = layers(1);
    Predictor alone(one, device_profile("a10"), framework_profile("pytorch-eager"));
    Predictor beside(diluted, device_profile("a10"), framework_profile("pytorch-eager"));
    std::vector<LaunchCosts> launches;
    static_cast<void>(alone.predict({{"batch", 8192}}, launches));
    const LaunchCosts limited = launches[1];
    static_cast<void>(beside.predict({{"batch", 8192}}, launches));
    const LaunchCosts free = launches[1];
    CHECK(limited.device_s > 1.1 * limited.boost_s);
    CHECK(free.boost_s == limited.boost_s);
    CHECK(free.device_s == free.boost_s);
}

TEST_CASE("the cost function slows networks under the power limit as the full predictor does") {
    const nas::Space& space = nas::space("transformer");
    const auto device = device_profile("t4");
    const auto framework = framework_profile("pytorch-eager");
    const std::vector<std::int64_t> batches{1, 8, 64};
    const std::vector<int> choices = largest(space);
    const Graph graph = nas::build_graph(space, choices);
    for (const bool synchronized : {false, true}) {
        CAPTURE(synchronized);
        const PredictOptions options{.synchronized = synchronized};
        const nas::CostFunction cost(space, device, framework, options, batches, {.waits_after_blocks = false});
        std::vector<double> fast(batches.size());
        cost.cost(choices, fast);
        Predictor predictor(graph, device, framework, options);
        double slowed = 1;
        for (std::size_t b = 0; b < batches.size(); ++b) {
            std::vector<LaunchCosts> launches;
            const Prediction full = predictor.predict({{"batch", batches[b]}, {"seq", 128}}, launches);
            CHECK(fast[b] == nearly(full.latency_s));
            slowed = std::max(slowed, full.device_s / sum(launches, &LaunchCosts::boost_s));
        }
        CHECK(slowed > 1.05);
    }
}

TEST_CASE("blocks that the host waits for are slowed as their own timelines would be, or a little more") {
    const nas::Space& space = nas::space("transformer");
    const auto device = device_profile("t4");
    const auto framework = framework_profile("pytorch-eager");
    const PredictOptions options;
    const nas::Campaign waiting{.waits_after_blocks = true};
    const std::vector<int> choices = largest(space);
    std::vector<nas::Block> chain;
    space.blocks(choices, chain);
    const nas::BuiltNetwork built = nas::build_network(space, choices, chain);
    const nas::SegmentMaker maker(host_costs(framework, options.precision), waiting, space,
                                  synchronizes_runs(framework_model(framework.framework), options));
    Predictor predictor(built.graph, device, framework, options);
    for (const std::int64_t batch : {2, 64}) {
        CAPTURE(batch);
        const nas::TimedNetwork network = nas::timed_network(built, predictor, {{"seq", 128}}, batch);
        PassPower power;
        for (const auto& block : network.blocks) power.add(maker.power(block));
        Segment exact = maker.run(network.beginning, 0);
        for (const auto& block : network.blocks) exact = exact.then(maker.block(block, power.slowdown()));
        const nas::CostFunction cost(space, device, framework, options, {batch}, waiting);
        std::vector<double> fast(1);
        cost.cost(choices, fast);
        CHECK(fast[0] >= maker.latency_s(exact) * (1 - 1e-9));
        CHECK(fast[0] <= maker.latency_s(exact) * 1.01);
        if (batch == 64) CHECK(power.slowdown() > 0);
    }
}

TEST_CASE("samples of a card at its power limit recover the scalars of their campaign") {
    const nas::Space& space = nas::space("transformer");
    const auto device = device_profile("t4");
    const auto framework = framework_profile("pytorch-eager");
    const nas::Campaign truth{.host_scale = 1.3, .device_scale = 0.9};
    std::vector<nas::Sample> samples;
    for (const std::int64_t batch : {1, 16, 64, 128}) {
        const nas::CostFunction cost(space, device, framework, {}, {batch}, truth);
        for (int option = 0; option < 2; ++option) {
            std::vector<int> choices = largest(space);
            choices[0] = std::max(0, choices[0] - option);
            std::vector<double> latency(1);
            cost.cost(choices, latency);
            samples.push_back({choices, batch, latency[0]});
        }
    }
    const nas::Calibration found = nas::calibrate(space, device, framework, {}, samples);
    const nas::CostFunction cost(space, device, framework, {}, {32}, found.campaign);
    const nas::CostFunction wanted(space, device, framework, {}, {32}, truth);
    std::vector<double> fitted(1), true_latency(1);
    cost.cost(largest(space), fitted);
    wanted.cost(largest(space), true_latency);
    CHECK(fitted[0] == approx(true_latency[0]).epsilon(0.02));
}

TEST_CASE("half-precision convolutions and attention run at the rate that the board's power limit sustains") {
    const auto seconds = [](const char* device, const auto& shape, MathPath path) {
        return KernelModels(device_spec(device), kernel_parameters(device_profile(device))).plan(shape, path).seconds;
    };
    kernels::ConvShape conv{.batch = 64, .in_channels = 512, .out_channels = 512};
    conv.in_height = conv.in_width = conv.out_height = conv.out_width = 32;
    conv.kernel_h = conv.kernel_w = 3;
    conv.element_bytes = 2;
    conv.channels_last = true;
    const kernels::AttentionShape attention{8, 16, 4096, 4096, 64, 2, false, kernels::AttentionPath::memory_efficient};
    constexpr MathPath half = MathPath::fp16_tensor;
    // 400 and 250 W, the same chip.
    CHECK(seconds("a100-pcie-40gb", attention, half) > 1.1 * seconds("a100-sxm4-40gb", attention, half));
    for (const MathPath path : {half, MathPath::tf32})
        CHECK(seconds("a100-pcie-40gb", conv, path) > 1.3 * seconds("a100-sxm4-40gb", conv, path));
    const double flops = 2.0 * 64 * 32 * 32 * 512 * 512 * 9;
    CHECK(seconds("t4", conv, half) > flops * 3e-12 / 70);
}

TEST_CASE("kernels that take more cycles for an operation than products take more energy for it") {
    CHECK(kernels::energy_of_cycles(1) == 1);
    CHECK(kernels::energy_of_cycles(0.5) == 1);
    CHECK(kernels::energy_of_cycles(2) == approx(1.77));
    KernelModels t4(device_spec("t4"), kernel_parameters(device_profile("t4")));
    const kernels::AttentionShape attention{8, 16, 4096, 4096, 64, 2, false, kernels::AttentionPath::memory_efficient};
    // A third of the rate of products; exponentials come on top.
    const double flops = 4.0 * 8 * 16 * 4096 * 4096 * 64;
    CHECK(t4.plan(attention, MathPath::fp16_tensor).seconds > 2 * flops * 3e-12 / 70);
    kernels::ConvShape conv{.batch = 64, .in_channels = 512, .out_channels = 512};
    conv.in_height = conv.in_width = conv.out_height = conv.out_width = 32;
    conv.kernel_h = conv.kernel_w = 3;
    conv.element_bytes = 2;
    conv.channels_last = true;
    // Slowed tensor cores have more cycles as well.
    const KernelModels l40(device_spec("l40"), kernel_parameters(device_profile("l40")));
    const auto& rates = l40.at(MathPath::fp16_tensor);
    CHECK(rates.tensor_rate_left < 0.6);
    const double flop_j = rates.chip->tensor_energy_per_flop_j * kernels::energy_of_cycles(1 / rates.tensor_rate_left);
    const double conv_flops = 2.0 * 64 * 32 * 32 * 512 * 512 * 9;
    CHECK(l40.plan(conv, MathPath::fp16_tensor).seconds > conv_flops * flop_j / rates.power_limit_w);
    const double before_s = t4.plan(conv, MathPath::fp16_tensor).seconds;
    t4.parameters.conv.product_efficiency *= 2;
    CHECK(t4.plan(conv, MathPath::fp16_tensor).seconds > 1.5 * before_s);
}

TEST_CASE("f32 convolutions of an engine take less energy than those of benchmarks by themselves") {
    const KernelModels models(device_spec("t4"), kernel_parameters(device_profile("t4")));
    kernels::ConvShape conv{.batch = 64, .in_channels = 512, .out_channels = 512};
    conv.in_height = conv.in_width = conv.out_height = conv.out_width = 32;
    const auto lone = models.plan(conv, MathPath::fp32);
    conv.library = kernels::ConvLibrary::tensorrt;
    const auto engine = models.plan(conv, MathPath::fp32);
    CHECK(lone.power_limited_s > lone.seconds);
    CHECK(engine.power_limited_s / engine.compute_s == approx(0.75 * lone.power_limited_s / lone.compute_s));
}
