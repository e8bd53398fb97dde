#include <doctest/doctest.h>

#include "calibration/fit/machine_fit.hpp"
#include "predictors/frameworks/framework_model.hpp"

using namespace ftax;

TEST_CASE("rows of the CUDA runtime: a graph has its own gap, and what was measured stays within its bounds") {
    const FrameworkModel &eager = framework_model("pytorch-eager"), &graph = framework_model("cuda-graph");
    CHECK_FALSE(fit::kernel_gap_s({}, eager));
    const fit::RuntimeQuantities both{{"kernel_gap", 2e-6}, {"graph_gap", 0.9e-6}};
    CHECK(*fit::kernel_gap_s(both, eager) == 2e-6);
    CHECK(*fit::kernel_gap_s(both, graph) == 0.9e-6);
    CHECK(fit::runtime_parameters({}, eager).empty());
    const auto bounded = fit::runtime_parameters({{"launch_latency", 1.0}, {"kernel_gap", 1e-9}}, eager);
    REQUIRE(bounded.size() == 2);
    CHECK(bounded[0].value < 1e-3);
    CHECK(bounded[1].value >= 1e-7);
    const auto within = fit::runtime_parameters({{"launch_latency", 5e-6}, {"kernel_gap", 2e-6}}, eager);
    CHECK(within.at(0).value == 5e-6);
    CHECK(within.at(1).value == 2e-6);
}
