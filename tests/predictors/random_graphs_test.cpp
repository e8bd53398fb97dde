#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "ftax/device.hpp"
#include "ftax/predict.hpp"
#include "ftax/text_graph.hpp"
#include "ftax/work.hpp"
#include "tests/approx.hpp"
#include "tests/graphs/onnx/model_files.hpp"

// Properties that hold for every network: checked on random ones.

using namespace ftax;
using namespace ftax::test;

namespace {

constexpr int networks = 40;

/// A chain with residual additions: convolutions and norms on images, or linear layers and softmax on sequences.
class RandomModel {
  public:
    explicit RandomModel(unsigned seed) : random_(seed) {
        images_ = below(2) == 0;
        channels_ = 8 * (1 + below(12));
        model_.input("x", images_ ? std::vector<std::string>{"batch", std::to_string(channels_), "28", "28"}
                                  : std::vector<std::string>{"batch", "32", std::to_string(channels_)});
        const int layers = 1 + below(12);
        for (int i = 0; i < layers; ++i) images_ ? add_image_layer() : add_sequence_layer();
        model_.output(last_);
    }
    [[nodiscard]] const OnnxModel& model() const { return model_; }

  private:
    int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }

    std::string node(const std::string& op, std::vector<std::string> inputs) {
        const std::string output = "t" + std::to_string(count_++);
        model_.node(op, inputs, {output});
        last_ = output;
        return output;
    }
    std::string weight(const std::vector<std::int64_t>& dims) {
        const std::string name = "w" + std::to_string(count_++);
        model_.weight(name, dims);
        return name;
    }
    void add_image_layer() {
        switch (below(4)) {
            case 0: {
                const std::int64_t out = 8 * (1 + below(12)), kernel = below(2) == 0 ? 1 : 3;
                node("Conv", {last_, weight({out, channels_, kernel, kernel})});
                auto& conv = *model_.graph().mutable_node()->rbegin();
                OnnxModel::attribute(conv, "pads", std::vector<std::int64_t>(4, kernel / 2));
                channels_ = out;
                break;
            }
            case 1: {
                const std::string residual = last_;
                node("Relu", {last_});
                node("Add", {last_, residual});
                break;
            }
            case 2:
                node("BatchNormalization",
                     {last_, weight({channels_}), weight({channels_}), weight({channels_}), weight({channels_})});
                break;
            default:
                node("Sigmoid", {last_});
        }
    }
    void add_sequence_layer() {
        switch (below(4)) {
            case 0: {
                const std::int64_t out = 8 * (1 + below(40));
                node("MatMul", {last_, weight({channels_, out})});
                channels_ = out;
                break;
            }
            case 1:
                node("LayerNormalization", {last_, weight({channels_}), weight({channels_})});
                break;
            case 2:
                node("Softmax", {last_});
                break;
            default: {
                const std::string residual = last_;
                node("Tanh", {last_});
                node("Add", {last_, residual});
            }
        }
    }

    std::mt19937 random_;
    OnnxModel model_;
    bool images_ = false;
    std::int64_t channels_ = 8;
    std::string last_ = "x";
    int count_ = 0;
};

Predictor predictor_of(const Graph& graph, unsigned seed) {
    const char* devices[]{"t4", "v100-sxm2-32gb", "a100", "gtx-1080-ti"};
    const char* frameworks[]{"pytorch-eager", "torchscript", "onnxruntime-cuda"};
    return {graph, device_profile(devices[seed % 4]), framework_profile(frameworks[seed % 3])};
}

template <class Field>
double sum(const std::vector<OpPrediction>& operators, Field field) {
    return std::accumulate(operators.begin(), operators.end(), 0.0,
                           [&](double total, const OpPrediction& op) { return total + op.*field; });
}

}  // namespace

TEST_CASE("random networks: everything is modelled, and a forward pass costs what its operators cost") {
    for (unsigned seed = 0; seed < networks; ++seed) {
        CAPTURE(seed);
        const Graph graph = RandomModel(seed).model().import();
        Predictor predictor = predictor_of(graph, seed);
        const auto [prediction, launches, timeline, kernels, interval, evidence] = predictor.explain({{"batch", 4}});
        CHECK(predictor.predict({{"batch", 4}}).latency_s == prediction.latency_s);
        CHECK(timeline.size() == launches.size());
        CHECK(kernels.size() == launches.size());
        CHECK(interval.front().log_stddev == prediction.widest_component_stddev);
        CHECK_FALSE(evidence.empty());
        CHECK(prediction.coverage.nodes == 1);
        CHECK(prediction.coverage.flops == 1);
        CHECK(prediction.coverage.time == 1);
        CHECK(sum(launches, &OpPrediction::host_s) == approx(prediction.host_s));
        CHECK(sum(launches, &OpPrediction::device_s) == approx(prediction.device_s));
        CHECK(prediction.latency_s >= prediction.closed_form_s);
        CHECK(prediction.closed_form_s == std::max(prediction.host_s, prediction.device_s));
        CHECK(prediction.low_s <= prediction.latency_s);
        CHECK(prediction.latency_s <= prediction.high_s);
    }
}

TEST_CASE("random networks: an unknown operator lowers the coverage by its share") {
    for (unsigned seed = 0; seed < networks; ++seed) {
        CAPTURE(seed);
        OnnxModel model = RandomModel(seed).model();
        const std::string last = model.graph().output(0).name();
        model.node("Unheard", {last}, {"unheard"}).set_domain("custom");
        model.graph().mutable_output(0)->set_name("unheard");
        const Graph graph = model.import();
        Predictor predictor = predictor_of(graph, 3 * seed);  // eager: one operation per operator
        const Coverage coverage = predictor.predict({{"batch", 4}}).coverage;
        CHECK(coverage.nodes < 1);
        CHECK(coverage.nodes == approx(1 - 1.0 / static_cast<double>(graph.ops.size())));
        CHECK(coverage.time <= 1);
    }
}

TEST_CASE("random networks: more samples are more work and take longer, and a sweep equals single predictions") {
    for (unsigned seed = 0; seed < networks; ++seed) {
        CAPTURE(seed);
        const Graph graph = RandomModel(seed).model().import();
        Predictor sweep = predictor_of(graph, seed);
        double device_s = 0, latency_s = 0;
        Work before;
        // Far apart: between neighbours a library may change to a faster algorithm, and a single sample is a plain
        // matrix product whose dispatch costs the host more.
        for (const std::int64_t batch : {1, 32, 1024}) {
            CAPTURE(batch);
            const Prediction prediction = sweep.predict({{"batch", batch}});
            CHECK(prediction.device_s > device_s);
            CHECK(prediction.latency_s > 0.9 * latency_s);
            device_s = prediction.device_s;
            latency_s = prediction.latency_s;
            const Work work = total_work(graph, bind(graph, {{"batch", batch}}));
            CHECK(work.flops > before.flops);
            CHECK(work.read_bytes > before.read_bytes);
            CHECK(work.write_bytes > before.write_bytes);
            before = work;
            Predictor alone = predictor_of(graph, seed);
            CHECK(alone.predict({{"batch", batch}}).latency_s == prediction.latency_s);
        }
    }
}

TEST_CASE("random networks: ONNX to text to graph is the identity, and both predict the same") {
    for (unsigned seed = 0; seed < networks; ++seed) {
        CAPTURE(seed);
        const Graph graph = RandomModel(seed).model().import();
        const std::string text = to_text(graph);
        const Graph again = parse_text_graph(text);
        CHECK(to_text(again) == text);
        CHECK(predictor_of(again, seed).predict({{"batch", 8}}).latency_s ==
              predictor_of(graph, seed).predict({{"batch", 8}}).latency_s);
    }
}
