#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "ftax/error.hpp"
#include "src/scenario/alternatives.hpp"

using namespace ftax;
using namespace ftax::scenario;

namespace {

constexpr double noise = 0.05;

/// Where the planted cause stands among the hypotheses, 0: first. Causes whose latencies differ by less than two
/// standard deviations of the noise in every row count as one: no measurement of these rows tells them apart.
std::size_t place_of(const std::string& planted, const std::vector<report::Hypothesis>& ranked) {
    const auto own = std::ranges::find(ranked, planted, &report::Hypothesis::name);
    REQUIRE(own != ranked.end());
    const auto is_same = [&](const report::Hypothesis& other) {
        for (std::size_t i = 0; i < other.latency_s.size(); ++i)
            if (std::abs(std::log(other.latency_s[i] / own->latency_s[i])) > 2 * noise) return false;
        return true;
    };
    return static_cast<std::size_t>(std::ranges::find_if(ranked, is_same) - ranked.begin());
}

struct Planted {
    std::string cause;
    std::vector<report::Hypothesis> ranked;
};

/// Draws a network, card, framework, precision and cause, and diagnoses latencies of the changed run with noise.
/// Returns nullopt for a cause that does not apply to the run or changes none of its latencies.
std::optional<Planted> draw(std::mt19937& random, const std::vector<std::int64_t>& batches) {
    const auto one_of = [&](const auto& list) {
        return *(std::begin(list) + static_cast<long>(random() % std::size(list)));
    };
    constexpr const char* models[] = {"resnet50", "mobilenet_v2", "bert", "vit32", "densenet", "vgg16", "distilbert"};
    constexpr const char* cards[] = {"t4", "v100-sxm2-32gb", "a100-sxm4-80gb", "rtx-3090", "l4", "h100-sxm5-80gb"};
    constexpr const char* frameworks[] = {"pytorch-eager", "torchscript", "torch-compile", "onnxruntime-cuda",
                                          "tensorrt"};
    constexpr const char* precisions[] = {"fp32", "tf32", "fp16"};
    ModelArguments model;
    model.model = one_of(models);
    if (model.model.ends_with("bert")) model.dims = {"seq=128"};
    RunArguments run;
    run.device = one_of(cards);
    run.framework = one_of(frameworks);
    run.precision = one_of(precisions);
    const std::vector<Change> causes = changes_of(run.framework);
    const Change cause = one_of(causes);
    std::normal_distribution<double> error(0, noise);

    const Graph graph = load_graph(model);
    const ShapeBindings dims = dimension_bindings(graph, model);
    std::optional<Alternative> own, changed;
    own = alternative(graph, model, run, {});
    if (own) changed = alternative(graph, model, run, cause);
    if (!changed || cause.name == "unknown" || cause.prior == 0) return std::nullopt;
    report::PredictionReport report = report_on(own->predictor, model);
    for (const std::int64_t batch : batches) {
        const ShapeBindings bindings = with_batch(dims, batch);
        const double latency_s = changed->predictor.predict(bindings).latency_s;
        const double read_s = latency_s * cause.effect("reading", 1) /
                              (cause.effects.contains("per-item") ? static_cast<double>(batch) : 1);
        report.rows.push_back({batch, own->predictor.predict(bindings), {}, {}});
        report.rows.back().measured = {.latency_s = read_s * std::exp(error(random)), .device_s = {}};
    }
    diagnose(graph, model, run, report);
    if (std::ranges::count(report.diagnosis, cause.name, &report::Hypothesis::name) == 0) return std::nullopt;
    return Planted{cause.name, report.diagnosis};
}

struct Shares {
    double first = 0, in_three = 0;
};

Shares places_of(std::uint32_t seed, const std::vector<std::int64_t>& batches) {
    constexpr int draws = 200;
    std::mt19937 random(seed);
    Shares shares;
    for (int drawn = 0; drawn < draws;) {
        const std::optional<Planted> planted = draw(random, batches);
        if (!planted) continue;
        ++drawn;
        const std::size_t place = place_of(planted->cause, planted->ranked);
        shares.first += place == 0 ? 1.0 / draws : 0;
        shares.in_three += place < 3 ? 1.0 / draws : 0;
    }
    return shares;
}

}  // namespace

TEST_CASE("a planted cause is found from latencies at three batches") {
    limit_notices(Notices::none);
    const Shares found = places_of(66, {1, 8, 64});
    MESSAGE("first: ", found.first, ", in the first three: ", found.in_three);
    CHECK(found.first >= 0.8);
    CHECK(found.in_three >= 0.95);
}

TEST_CASE("a planted cause is found from one latency, up to those that predict the same") {
    limit_notices(Notices::none);
    const Shares found = places_of(67, {8});
    MESSAGE("first: ", found.first, ", in the first three: ", found.in_three);
    CHECK(found.first >= 0.8);
    CHECK(found.in_three >= 0.95);
}
