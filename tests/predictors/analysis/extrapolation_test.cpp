#include <doctest/doctest.h>

#include <cmath>

#include "ftax/graph_builder.hpp"
#include "ftax/predict.hpp"

using namespace ftax;

TEST_CASE("BAD_INPUTS 44: a prediction beyond the measured range has a warning and a wider interval") {
    GraphBuilder net("wide");
    const TensorId x = net.input("x", {"batch", "4096"});
    const Graph graph = net.finish({net.linear(net.linear(x, 16384), 4096)});
    Predictor predictor(graph, device_profile("t4"), framework_profile("pytorch-eager"));
    const auto width = [](const Prediction& p) { return std::log(p.high_s / p.low_s); };
    const Prediction inside = predictor.predict({{"batch", 1 << 14}});
    const Prediction outside = predictor.predict({{"batch", 1 << 24}});
    const Prediction further = predictor.predict({{"batch", 1 << 27}});
    CHECK(inside.warnings.empty());
    REQUIRE(outside.warnings.size() == 1);
    CHECK(outside.warnings[0].find("extrapolated") != std::string::npos);
    CHECK(width(outside) > 1.05 * width(inside));
    CHECK(width(further) > width(outside));
    CHECK(outside.low_s < outside.latency_s);
    CHECK(outside.latency_s < outside.high_s);
}
