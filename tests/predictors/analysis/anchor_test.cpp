#include "ftax/anchor.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <random>

#include "ftax/error.hpp"
#include "ftax/import.hpp"
#include "predictors/host/host_costs.hpp"
#include "tests/approx.hpp"

using namespace ftax;

namespace {

constexpr double reference_host_s = 8e-3;

/// A host-bound row as a host with the given scalars would measure it.
AnchorRow row(const std::string& model, double scale, double blas_call_s, double blas_calls, double noise = 1) {
    const double host_s = reference_host_s;
    return {(scale * host_s + blas_calls * blas_call_s) * noise, host_s, blas_calls, host_s * 0.1, model, model};
}

/// The scalars of one host, with the device taken as predicted.
HostScalars fit_host(std::span<const AnchorRow> rows) {
    return condition(rows, {}).hosts.begin()->second;
}

}  // namespace

TEST_CASE("one host-bound row sets the scale") {
    for (const double scale : {0.5, 1.0, 2.0}) {
        const std::vector<AnchorRow> rows{row("resnet18", scale, 5e-6, 1)};
        const HostScalars host = fit_host(rows);
        CHECK(host.scale == approx(scale).epsilon(0.05));
        CHECK(host.call_s < 20e-6);
        CHECK(host.warnings.empty());
    }
}

TEST_CASE("rows with and without matrix products identify the second scalar") {
    std::mt19937 random(1);
    std::lognormal_distribution<> noise(0, 0.03);
    for (const double blas_call_s : {4e-6, 90e-6}) {
        std::vector<AnchorRow> rows;
        for (int i = 0; i < 6; ++i) {
            const std::string n = std::to_string(i);
            rows.push_back(row("cnn" + n, 0.8, blas_call_s, 1, noise(random)));
            rows.push_back(row("bert" + n, 0.8, blas_call_s, 73, noise(random)));
        }
        const HostScalars host = fit_host(rows);
        CHECK(host.scale == approx(0.8).epsilon(0.05));
        CHECK(std::abs(host.call_s - blas_call_s) < 10e-6);
        CHECK(host.scale_relative_stddev < 0.1);
    }
}

TEST_CASE("a call that the device waits for tells the host's scale, too") {
    for (const double scale : {0.5, 3.0}) {
        AnchorRow waiting = row("resnet18", 1, 0, 0);
        waiting.host_s = 1e-3;
        waiting.forward_s = 8e-3;
        waiting.device_s = 4e-3;
        waiting.measured_s = scale * waiting.forward_s + waiting.device_s;
        waiting.predicted_s = waiting.forward_s + waiting.device_s;
        CHECK(fit_host(std::vector{waiting}).scale == approx(scale).epsilon(0.15));
    }
}

TEST_CASE("rows that the device explains do not slow the host down") {
    std::vector<AnchorRow> rows{row("resnet18", 1, 5e-6, 1)};
    rows.push_back({80e-3, 8e-3, 1, 70e-3, "resnet50", "resnet50, batch 128"});
    CHECK(fit_host(rows).scale == approx(1).epsilon(0.05));
    CHECK(fit_host(rows).host_bound_rows == 1);

    const HostScalars unknown = fit_host(std::span(rows).subspan(1));
    CHECK(unknown.host_bound_rows == 0);
    CHECK(unknown.warnings.size() == 1);
    CHECK(unknown.scale_relative_stddev > 0.3);
}

TEST_CASE("where the device explains most of every row, they still tell the scale, with less certainty") {
    const std::vector<AnchorRow> rows{{2.4e-3, 4e-3, 1, 1.6e-3, "resnet18", "resnet18"}};
    const HostScalars host = fit_host(rows);
    CHECK(host.scale == approx(0.6).epsilon(0.2));
    CHECK(host.scale_relative_stddev > fit_host(std::vector{row("resnet18", 1, 5e-6, 1)}).scale_relative_stddev);
    CHECK(host.warnings.empty());
}

TEST_CASE("a device-bound row still bounds the host from above") {
    const std::vector<AnchorRow> rows{{4e-3, 16e-3, 0, 3.5e-3, "vgg16", "vgg16"}};
    CHECK(fit_host(rows).scale < 0.35);
}

TEST_CASE("contradicting rows are named and left out, not averaged") {
    std::vector<AnchorRow> rows{row("a", 1, 5e-6, 1), row("b", 1.05, 5e-6, 1), row("disturbed", 5, 5e-6, 1)};
    const HostScalars host = fit_host(rows);
    CHECK(host.scale == approx(1).epsilon(0.08));
    REQUIRE(host.warnings.size() == 1);
    CHECK(host.warnings[0].find("disturbed") != std::string::npos);
}

TEST_CASE("a row that the device explains leaves the profile's belief of the host") {
    std::mt19937 random(2);
    std::uniform_real_distribution<> log_scale(std::log(0.3), std::log(4)), share(0.05, 0.35), error(-0.1, 0.1);
    for (int i = 0; i < 200; ++i) {
        AnchorRow bound = row("big", 1, 5e-6, 1);
        bound.scale = std::exp(log_scale(random));
        bound.scale_log_stddev = 0.42;
        bound.device_s = bound.scale * bound.host_s / share(random);
        bound.measured_s = bound.device_s * std::exp(error(random));
        const HostScalars host = fit_host(std::vector{bound});
        CHECK(host.scale == approx(bound.scale).epsilon(0.05));
        CHECK(host.scale_relative_stddev <= 0.42);
        CHECK(host.scale_relative_stddev > 0.35);
        CHECK(host.call_s == approx(bound.call_s).epsilon(0.05));
    }
}

TEST_CASE("a row that host and device may explain leaves the mean of what both ways leave") {
    // By quadrature over the host's scale. Residuals have the noise of the model, in the soft L1 loss of the posterior.
    constexpr double stddev = 0.36, host_noise = 0.08, device_noise = 0.1;
    const auto density = [](double z, double s) { return std::exp(1 - std::sqrt(1 + z * z / (s * s))) / s; };
    const auto below = [](double z) { return std::erfc(-z / std::sqrt(2)) / 2; };
    for (const double device : {-0.3, -0.15, 0.0, 0.1}) {
        for (const double measured : {-0.2, 0.0, 0.15, 0.3}) {
            CAPTURE(device);
            CAPTURE(measured);
            double sum = 0, mean = 0, squares = 0;
            for (double x = -2; x < 2; x += 1e-3) {
                const double off = measured - x, late = measured - device;
                const double p =
                    std::exp(-x * x / (2 * stddev * stddev)) * (density(off, host_noise) * below(late / device_noise) +
                                                                density(late, device_noise) * below(off / host_noise));
                sum += p, mean += p * x, squares += p * x * x;
            }
            mean /= sum;
            AnchorRow one = row("either", 1, 0, 0);
            one.scale_log_stddev = stddev;
            one.device_s = reference_host_s * std::exp(device);
            one.measured_s = reference_host_s * std::exp(measured);
            const HostScalars host = fit_host(std::vector{one});
            CHECK(std::abs(std::log(host.scale) - mean) < 0.05);
            CHECK(host.scale_relative_stddev == approx(std::sqrt(squares / sum - mean * mean)).epsilon(0.25));
        }
    }
}

TEST_CASE("a row without host or device time is explained by the other") {
    AnchorRow one = row("only", 1.3, 0, 0);
    one.device_s = 0;
    CHECK(fit_host(std::vector{one}).scale == approx(1.3).epsilon(0.05));
    one.host_s = 0;
    one.device_s = one.measured_s;
    CHECK(fit_host(std::vector{one}).scale == approx(1).epsilon(0.05));
}

TEST_CASE("a known row brings the other rows of its machine nearer, and hardly ever farther than its noise") {
    std::mt19937 random(3);
    std::normal_distribution<> machine(0, 0.4), noise(0, 0.05);
    std::uniform_real_distribution<> log_device(std::log(1e-3), std::log(100e-3));
    const auto error = [](const AnchorRow& row, double scale) {
        const double predicted_s = std::max(scale * row.host_s + row.calls * row.call_s, row.device_s);
        return std::abs(std::log(predicted_s / row.measured_s));
    };
    double all_before = 0, all_after = 0, farther = 0;
    for (int draw = 0; draw < 300; ++draw) {
        const double profile = draw % 2 == 0 ? 2.1 : 1, true_scale = profile * std::exp(machine(random));
        std::vector<AnchorRow> rows;
        for (int i = 0; i < 8; ++i) {
            AnchorRow& one = rows.emplace_back(row("model" + std::to_string(i), 1, 5e-6, 4));
            one.scale = profile;
            one.device_s = std::exp(log_device(random));
            one.measured_s = std::max(true_scale * one.host_s + one.calls * one.call_s, one.device_s);
            one.measured_s *= std::exp(noise(random));
        }
        const double scale = fit_host(std::span(rows).first(1)).scale;
        double before = 0, after = 0;
        for (const AnchorRow& one : std::span(rows).subspan(1)) {
            before += error(one, profile) / 7;
            after += error(one, scale) / 7;
        }
        farther += after < before + 0.12 ? 0 : 1;
        all_before += before;
        all_after += after;
    }
    CHECK(farther < 4);
    CHECK(all_after < 0.6 * all_before);
}

TEST_CASE("a row puts its machine into a group, and one between the groups leaves both") {
    const std::vector<HostGroup> groups{{0.6, 2.1, 0.08}, {0.4, 1, 0.15}};
    const auto host_of = [&](double true_scale, double device_s) {
        AnchorRow one = row("resnet18", true_scale, 5e-6, 1);
        one.scale = 2.1;
        one.scale_log_stddev = 0.42;
        one.groups = groups;
        one.device_s = device_s;
        one.measured_s = std::max(one.measured_s, device_s);
        return fit_host(std::vector{one});
    };
    for (const double fast : {0.85, 1.0, 1.2}) {
        const HostScalars host = host_of(fast, 1e-3);
        CHECK(host.scale == approx(fast).epsilon(0.1));
        CHECK(host.scale_relative_stddev < 0.2);
    }
    CHECK(host_of(2.2, 1e-3).scale == approx(2.15).epsilon(0.05));
    // A row that the device explains says nothing of the group.
    CHECK(host_of(1, 60e-3).scale == approx(2.1).epsilon(0.03));
    CHECK(host_of(1, 60e-3).scale_relative_stddev > 0.3);
    CHECK(host_of(1.45, 1e-3).scale_relative_stddev > host_of(1, 1e-3).scale_relative_stddev);
}

TEST_CASE("a machine's CPU multiplies the scale of each framework's profile") {
    AnchorRow known = row("resnet18", 1.5, 5e-6, 1);
    known.machine = "bench";
    known.measured_s = 1.5 * 2.1 * known.host_s;
    known.scale = 2.1;
    const CpuSpeed cpu = condition(std::vector{known}, {}).cpus.at("bench");
    CHECK(cpu.scale == approx(1.5).epsilon(0.1));
    FrameworkProfile other{.framework = "torchscript"};
    other.parameters = {{"host.scale", 1.8}};
    CHECK(host_parameter(anchored(other, cpu), "host.scale") == approx(1.8 * cpu.scale));
}

TEST_CASE("the CPU of a machine counts from the reference machine, not from the slow group that a stack assumes") {
    AnchorRow known = row("resnet18", 1, 5e-6, 1);
    known.machine = "bench";
    known.scale = 2.1;
    known.groups = {{0.6, 2.1, 0.08}, {0.4, 1, 0.15}};
    const CpuSpeed fast = condition(std::vector{known}, {}).cpus.at("bench");
    CHECK(fast.scale == approx(1).epsilon(0.1));
    known.measured_s = 2.1 * known.host_s;
    const CpuSpeed slow = condition(std::vector{known}, {}).cpus.at("bench");
    CHECK(slow.scale == approx(2.1).epsilon(0.1));

    FrameworkProfile graphs{.framework = "cuda-graph"};  // fitted on fast machines; the driver has its part in them
    graphs.parameters = {{"host.scale", 1.2}};
    CHECK(host_parameter(anchored(graphs, fast), "host.scale") == approx(1.2 * std::sqrt(fast.scale)));
    CHECK(host_parameter(anchored(graphs, slow), "host.scale") == approx(1.2 * std::sqrt(slow.scale)));
    FrameworkProfile compiled{.framework = "torch-compile"};
    compiled.parameters = {{"host.scale", 1.8}};
    compiled.groups = {{0.6, 1.8, 0.08}, {0.4, 0.9, 0.15}};
    CHECK(host_parameter(anchored(compiled, fast), "host.scale") == approx(0.9 * fast.scale));
    CHECK(host_parameter(anchored(compiled, slow), "host.scale") == approx(0.9 * slow.scale));
}

TEST_CASE("no anchor row is an error") {
    CHECK_THROWS_AS(static_cast<void>(condition({}, {})), Error);
}

TEST_CASE("rows of several hosts share the card, not the scalars") {
    DeviceFactors prior;
    prior.covariance[0][0] = 0.04;
    std::vector<AnchorRow> rows;
    for (const double scale : {1.0, 2.0}) {
        const std::string host = std::to_string(scale);
        rows.push_back(row("resnet18", scale, 5e-6, 1));
        rows.back().host = rows.back().machine = host;
        // The device decides these, and takes 1.3 times as long as predicted.
        rows.push_back({.measured_s = 1.3 * 80e-3, .host_s = 8e-3, .calls = 1, .device_s = 80e-3, .model = host});
        rows.back().host = rows.back().machine = host;
    }
    const Conditioned found = condition(rows, prior);
    REQUIRE(found.hosts.size() == 2);
    CHECK(found.hosts.at(rows[2].host).scale / found.hosts.at(rows[0].host).scale == approx(2).epsilon(0.1));
    CHECK(found.device.scale(Factor::gemm) == approx(1.3).epsilon(0.08));
    CHECK(found.device.covariance[0][0] < 0.5 * prior.covariance[0][0]);
}

TEST_CASE("a row that the device explains does not slow the host down, though the host's calls would explain it, too") {
    DeviceFactors device;
    device.covariance[0][0] = 0.0064;
    // 60 calls of the slow mode and the host take as long as this device, which is predicted 30 % too fast.
    const auto known = [&](double log_stddev) {
        device.covariance[1][1] = log_stddev * log_stddev;
        AnchorRow one{10e-3, 3e-3, 60, 7.5e-3, "swin", "swin"};
        one.class_s[1] = 7e-3;
        one.scale_log_stddev = 0.36;
        return condition(std::vector{one}, device);
    };
    const Conditioned found = known(0.09);
    const HostScalars& host = found.hosts.begin()->second;
    CHECK(host.scale * 3e-3 + host.call_s * 60 < 6e-3);
    CHECK(found.device.scale(Factor::gemm) > 1.08);
    CHECK(known(0.4).device.scale(Factor::gemm) == approx(10 / 7.5).epsilon(0.1));
}

TEST_CASE("a row tells more of a card that is far from the measured ones") {
    DeviceFactors device;
    device.covariance[0][0] = 0.004;
    AnchorRow bound{15e-3, 1e-3, 0, 10e-3, "vgg16", "vgg16"};
    const double near = condition(std::vector{bound}, device).device.scale(Factor::card);
    bound.distance_log_stddev = 0.1;
    const Conditioned far = condition(std::vector{bound}, device);
    CHECK(near > 1.02);
    CHECK(std::log(far.device.scale(Factor::card)) > 2 * std::log(near));
    CHECK(far.hosts.begin()->second.scale == approx(1).epsilon(0.1));
    CHECK(condition(std::vector{bound}, {}).device.covariance[0][0] == 0);  // a card without errors keeps none
}

TEST_CASE("what one row leaves open is the split between scalars or classes, not their sum") {
    // Half the host's time in calls: either may be slow, both together are as measured.
    const std::vector<AnchorRow> half{row("bert", 1.3, 80e-6, 100)};
    const HostScalars host = fit_host(half);
    const double call = host.call_s * 100 / (host.call_s * 100 + host.scale * reference_host_s);
    const double a = (1 - call) * host.scale_relative_stddev, b = call * host.call_relative_stddev;
    CHECK(host.correlation < -0.3);
    CHECK(std::sqrt(a * a + b * b + 2 * host.correlation * a * b) < 0.1);
    CHECK(std::hypot(a, b) > 0.12);

    DeviceFactors device;
    for (std::size_t f = 0; f < 3; ++f) device.covariance[f][f] = 0.09;
    AnchorRow bound{1.1e-2, 1e-4, 0, 1e-2, "net", "net"};
    bound.class_s[1] = bound.class_s[2] = 5e-3;
    const DeviceFactors after = condition(std::vector{bound}, device).device;
    CHECK(after.covariance[1][2] < -0.01);
    CHECK(after.covariance[0][1] < -0.01);
    CHECK(after.log_stddev(bound.class_s) < 0.12);
    CHECK(std::sqrt(after.covariance[1][1]) > 0.2);
}

TEST_CASE("frameworks of one machine share its CPU; those of another machine do not") {
    // Each framework's own rows decide; without any the CPU's factor holds, less certainly the less it is shared.
    for (const double speed : {0.5, 0.8, 1.5, 2.5}) {
        CAPTURE(speed);
        AnchorRow eager = row("resnet18", speed, 5e-6, 0);
        eager.host = "eager";
        eager.machine = "a";
        AnchorRow script = row("resnet50", 1.1 * speed, 5e-6, 0);
        script.host = "script";
        script.machine = "a";
        AnchorRow far = row("resnet18", 1, 5e-6, 0);
        far.host = "eager, b";
        far.machine = "b";
        const std::vector<AnchorRow> one{eager}, two{eager, script}, three{eager, script, far};
        const Conditioned alone = condition(one, {}), both = condition(two, {}), all = condition(three, {});
        const CpuSpeed cpu = alone.cpus.at("a");
        const double own = alone.hosts.at("eager").scale;
        CHECK((cpu.scale - 1) * (speed - 1) > 0);  // same direction
        CHECK(std::abs(std::log(cpu.scale)) < std::abs(std::log(own)));
        CHECK(std::log(cpu.scale) == approx(std::log(own)).epsilon(0.2));
        CHECK(cpu.relative_stddev > alone.hosts.at("eager").scale_relative_stddev);
        CHECK(cpu.relative_stddev < 0.3);
        CHECK(both.cpus.at("a").relative_stddev < cpu.relative_stddev);
        CHECK(both.hosts.at("script").scale == approx(1.1 * speed).epsilon(0.12));
        CHECK(all.hosts.at("eager, b").scale ==
              approx(condition(std::vector{far}, {}).hosts.at("eager, b").scale).epsilon(0.01));
        CHECK(all.cpus.at("b").scale == approx(1).epsilon(0.1));
    }
}

TEST_CASE("rows of the predicted model itself also say what the predictor gets wrong about it") {
    std::vector<AnchorRow> rows;
    for (const char* model : {"a", "b", "c"}) rows.push_back(row(model, 1, 5e-6, 1));
    rows.push_back(row("odd", 1.4, 5e-6, 1));
    for (AnchorRow& one : rows) one.host_log_stddev = 0.2;
    const HostScalars others = condition(rows, {}).hosts.begin()->second;
    const HostScalars own = condition(rows, {}, "odd").hosts.begin()->second;
    CHECK(others.scale < 1.2);
    CHECK(others.host_noise == 0);
    CHECK(own.scale == approx(1.4).epsilon(0.05));
    // Half of the noise, as a variance, is left for its other batches.
    CHECK(own.host_noise == approx(0.2 * std::sqrt(0.5)));
}

TEST_CASE("the error of a model's device time is a factor on its kernels, as certain as its rows make it") {
    std::vector<AnchorRow> rows;
    for (const char* model : {"a", "b", "odd"}) {
        const double measured_s = std::string_view(model) == "odd" ? 65e-3 : 50e-3;
        rows.push_back({.measured_s = measured_s, .host_s = 1e-3, .device_s = 50e-3, .model = model, .label = model});
    }
    for (AnchorRow& one : rows) one.device_log_stddev = 0.2;
    DeviceFactors prior{};
    prior.covariance[0][0] = 0.01;
    const DeviceFactors others = condition(rows, prior).device, own = condition(rows, prior, "odd").device;
    CHECK(std::abs(others.log_mean[0]) < 0.1);
    CHECK(own.log_mean[0] == approx(std::log(1.3)).epsilon(0.15));
    CHECK(own.covariance[0][0] > 0);
    CHECK(own.covariance[0][0] < 0.01 + 0.2 * 0.2);
    // Without rows of its own the model may still be as wrong as any.
    const DeviceFactors unseen = condition(std::span(rows).first(2), prior, "odd").device;
    CHECK(unseen.covariance[0][0] < own.covariance[0][0] + 0.2 * 0.2);
}

TEST_CASE("an anchored profile costs what the scalars say") {
    FrameworkProfile profile{.framework = "pytorch-eager"};
    const HostCosts before = host_costs(profile, Precision::fp32);
    const HostCosts after = host_costs(anchored(profile, {.scale = 2, .call_s = 70e-6}), Precision::fp32);
    CHECK(after[HostKind::conv] == approx(2 * before[HostKind::conv]));
    CHECK(after.blas_call_s == approx(70e-6));
}

TEST_CASE("the spread of a host's time is that of its correlated scalars and of what differs between models") {
    HostCosts costs;
    costs.model_relative_stddev = 0.1;
    costs.scale_relative_stddev = 0.3;
    costs.call_relative_stddev = 0.4;
    for (const double correlation : {-0.9, 0.0, 0.5}) {
        costs.correlation = correlation;
        CHECK(costs.host_relative_stddev(0) == approx(std::hypot(0.1, 0.3)));
        CHECK(costs.host_relative_stddev(1) == approx(std::hypot(0.1, 0.4)));
        const double scale = 0.75 * 0.3, call = 0.25 * 0.4;
        CHECK(costs.host_relative_stddev(0.25) ==
              approx(std::sqrt(0.01 + scale * scale + call * call + 2 * correlation * scale * call)));
    }
}

TEST_CASE("engine calls are distinguished from the layers inside, even if they are slow") {
    for (const double call_s : {0.35e-3, 2.4e-3}) {
        std::vector<AnchorRow> rows;
        for (int i = 0; i < 4; ++i) {
            const double layers_s = 0.1e-3 * (1 + 3 * i);
            rows.push_back({.measured_s = 1.5 * layers_s + call_s,
                            .host_s = layers_s,
                            .calls = 1,
                            .device_s = 0.1 * layers_s,
                            .model = std::to_string(i),
                            .label = std::to_string(i),
                            .call = "host.engine_call",
                            .call_s = 0.4e-3});
        }
        const HostScalars host = fit_host(rows);
        CHECK(host.scale == approx(1.5).epsilon(0.15));
        CHECK(host.call_s == approx(call_s).epsilon(0.15));
        CHECK(host.warnings.empty());
        const FrameworkProfile profile = anchored({.framework = "torch-tensorrt"}, host);
        CHECK(host_costs(profile, Precision::fp32)[HostKind::engine_call] == host.call_s);
    }
}

TEST_CASE("an unmeasured host is best calibrated by a small batch, a card by a large one") {
    const Graph graph = load_graph("resnet50");
    Predictor predictor(graph, device_profile("a30"), framework_profile("pytorch-eager"));
    const std::vector<std::int64_t> candidates{1, 8, 64, 512};
    const AnchorPlan small = suggest_anchors(predictor, {}, std::vector<std::int64_t>{1}, candidates);
    REQUIRE(!small.runs.empty());
    CHECK(small.runs[0].batch < 64);
    CHECK(small.runs[0].half_width < 0.5 * small.half_width);
    const AnchorPlan large = suggest_anchors(predictor, {}, std::vector<std::int64_t>{256}, candidates);
    REQUIRE(!large.runs.empty());
    CHECK(large.runs[0].batch >= 64);
    CHECK(large.runs[0].half_width < large.half_width);
}

TEST_CASE("each run that is suggested narrows what the ones before it left open") {
    const Graph graph = load_graph("resnet50");
    Predictor predictor(graph, device_profile("a30"), framework_profile("pytorch-eager"));
    const std::vector<std::int64_t> batches{1, 512};
    const AnchorPlan plan = suggest_anchors(predictor, {}, batches, batches);
    REQUIRE(plan.runs.size() == 2);  // the small one determines the host, the large one the card
    CHECK(plan.runs[0].batch + plan.runs[1].batch == 513);
    CHECK(plan.runs[0].half_width < 0.9 * plan.half_width);
    CHECK(plan.runs[1].half_width < 0.9 * plan.runs[0].half_width);
}

TEST_CASE("of the rows of a file, those are suggested that say most of the others") {
    const Graph resnet = load_graph("resnet50"), bert = load_graph("bert");
    const DeviceProfile device = device_profile("a30");
    std::vector<AnchorRow> rows;
    const auto add = [&](const Graph& graph, std::int64_t batch, const char* host) {
        Predictor predictor(graph, device, framework_profile(host));
        ShapeBindings bindings{{"batch", batch}};
        if (&graph == &bert) bindings["seq"] = 128;
        rows.push_back(
            anchor_row({.framework = host, .model = graph.name, .batch = batch, .latency_s = 1}, predictor, bindings));
        rows.back().host = host;
    };
    for (const std::int64_t batch : {1, 2, 4}) add(resnet, batch, "pytorch-eager");
    for (const std::int64_t batch : {1, 2, 4}) add(bert, batch, "pytorch-eager");
    const AnchorPlan of_host = suggest_anchors(rows, device.factors);
    REQUIRE(!of_host.runs.empty());
    CHECK(of_host.runs[0].half_width < 0.6 * of_host.half_width);  // one row measures the host of all
    rows.clear();
    add(bert, 1, "pytorch-eager");
    for (const std::int64_t batch : {256, 512, 1024}) add(resnet, batch, "pytorch-eager");
    const AnchorPlan plan = suggest_anchors(rows, device.factors);
    REQUIRE(plan.runs.size() == 2);
    CHECK(plan.runs[0].label.find("bert, batch 1") != std::string::npos);  // the host is the least known
    CHECK(plan.runs[1].label.find("resnet50, batch") != std::string::npos);
    CHECK(plan.runs[1].half_width < 0.9 * plan.runs[0].half_width);
    CHECK(plan.half_width > plan.runs[0].half_width);
    CHECK(suggest_anchors(std::span(rows).first(1), device.factors, 0).runs.empty());
}

TEST_CASE("an anchor's device time is that of its classes of kernels and of the rest, which is the card's") {
    const Graph graph = load_graph("bert");
    Predictor predictor(graph, device_profile("t4"), framework_profile("pytorch-eager"));
    const ShapeBindings bindings{{"batch", 4}, {"seq", 64}};
    const AnchorRow row =
        anchor_row(Measurement{.gpu = "t4", .model = "bert", .batch = 4, .latency_s = 0.02}, predictor, bindings);
    double sum = 0;
    for (const double part : row.class_s) {
        CHECK(part >= 0);
        sum += part;
    }
    CHECK(sum == approx(predictor.predict(bindings).device_s));
}

TEST_CASE("errors of served runs carry over to runs that are alike") {
    const ServedRun run{.model = "a",
                        .precision = Precision::fp8,
                        .prompt_share = 0.2,
                        .sequence_share = 0.3,
                        .sequences = 16,
                        .cards = 4,
                        .prompt = 1000};
    const auto changed = [&](const std::function<void(ServedRun&)>& change) {
        ServedRun other = run;
        change(other);
        return other;
    };
    const auto measured = [&](double log_error, std::size_t times) {
        return std::vector<ServedRun>(times, changed([&](ServedRun& anchor) { anchor.log_error = log_error; }));
    };
    // One unknown of variance v, n equal rows: the shrinkage is n v / (n v + noise), with weights 1 for small errors.
    const double v = 0.03 * 0.03 + 2 * 0.08 * 0.08 + 0.2 * 0.2 * (0.2 * 0.2 + 0.3 * 0.3), noise = 0.05 * 0.05;
    for (const std::size_t n : {1, 5}) {
        const ServedError error = served_error(measured(0.001, n), run);
        const double rows = static_cast<double>(n);
        CHECK(std::log(error.factor) == approx(0.001 * rows * v / (rows * v + noise)).epsilon(1e-3));
        CHECK(error.log_stddev == approx(std::sqrt(v - rows * v * v / (rows * v + noise) + noise)).epsilon(1e-3));
    }
    const double same = served_error(measured(0.1, 5), run).factor;
    CHECK(same == approx(std::exp(0.1)).epsilon(0.01));
    // The less a run has in common with the anchors, the less it is corrected and the wider its interval.
    const auto factor = [&](const std::function<void(ServedRun&)>& change) {
        const ServedError error = served_error(measured(0.1, 5), changed(change));
        CHECK(error.log_stddev > served_error(measured(0.1, 5), run).log_stddev);
        return error.factor;
    };
    const double few = factor([](ServedRun& r) { r.sequences = 1; });
    CHECK(few == approx(factor([](ServedRun& r) { r.sequences = 256; })));
    CHECK(few == approx(factor([](ServedRun& r) { r.cards = 64; })));
    CHECK(few == approx(factor([](ServedRun& r) { r.prompt = 16000; })));
    CHECK(factor([](ServedRun& r) { r.sequences = 32; }) > few);
    CHECK(few < same);
    CHECK(factor([](ServedRun& r) { r.precision = Precision::bf16; }) < same);
    CHECK(factor([](ServedRun& r) { r.prompt_share = 0; }) < same);
    CHECK(factor([](ServedRun& r) { r.sequence_share = 0; }) < same);
    const double other_model = factor([](ServedRun& r) { r.model = "b"; });
    CHECK(other_model > 1);
    CHECK(other_model < 1.02);
    // A disturbed row moves the others' mean by less than half a row.
    std::vector<ServedRun> rows = measured(0, 4);
    rows.push_back(measured(1, 1).front());
    CHECK(std::log(served_error(rows, run).factor) < 0.1);
    CHECK(served_error({}, run).factor == 1);
}

TEST_CASE("a row is bound by the host while the predicted device time is below the share, at which it is not") {
    // With a row that is clearly host-bound in between: 0.6; without one: 0.85.
    for (const double share : {0.6, 0.85}) {
        for (const double measured_s : {1e-3, 3e-3, 7.3e-3, 0.11}) {
            const double bound_s = share * measured_s;
            for (const double device_s : {std::nextafter(bound_s, 0), bound_s, std::nextafter(bound_s, 1)}) {
                CAPTURE(share);
                CAPTURE(measured_s);
                const AnchorRow near{measured_s, measured_s, 0, device_s, "near", "near"};
                std::vector<AnchorRow> rows{near};
                if (share == 0.6) rows.push_back({measured_s, measured_s, 0, 0.1 * measured_s, "clear", "clear"});
                const std::size_t clear = rows.size() - 1;
                CHECK(fit_host(rows).host_bound_rows == clear + (device_s < bound_s ? 1 : 0));
            }
        }
    }
}
