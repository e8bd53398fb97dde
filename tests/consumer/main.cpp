#include <cstdio>

#include "ftax/graph_builder.hpp"
#include "ftax/predict.hpp"

int main() {
    ftax::GraphBuilder net("tiny");
    const ftax::TensorId x = net.input("x", {"batch", "3", "224", "224"});
    const ftax::TensorId y = net.global_average_pool(net.relu(net.conv(x, 64, {.kernel = 7, .stride = 2, .pad = 3})));
    const ftax::Graph graph = net.finish({net.linear(net.flatten(y, 1), 1000)});

    ftax::Predictor predictor(graph, ftax::device_profile("t4"), ftax::framework_profile("pytorch-eager"));
    const ftax::Prediction prediction = predictor.predict({{"batch", 8}});
    std::printf("%.3f ms\n", prediction.latency_s * 1e3);
    return prediction.latency_s > 0 && prediction.device_s > 0 ? 0 : 1;
}
