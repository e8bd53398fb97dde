#include "src/report/breakdown.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string_view>

#include "ftax/import.hpp"
#include "tests/approx.hpp"

using namespace ftax;

TEST_CASE("a breakdown by kind or module adds up to the prediction, dearest first") {
    const Graph graph = load_graph("resnet18");
    for (const std::string_view framework : {"pytorch-eager", "torch-tensorrt"}) {
        Predictor predictor(graph, device_profile("t4"), framework_profile(framework));
        const Explanation explanation = predictor.explain({{"batch", 8}});
        for (const auto& group : {report::kind_of, report::stage_of}) {
            const auto shares = report::breakdown(predictor.graph(), explanation.launches, group);
            REQUIRE(shares.size() > 3);
            double host_s = 0, device_s = 0, last_s = 1e9;
            for (const report::Share& share : shares) {
                host_s += share.host_s;
                device_s += share.device_s;
                CHECK(std::max(share.host_s, share.device_s) <= last_s);
                last_s = std::max(share.host_s, share.device_s);
            }
            CHECK(host_s == approx(explanation.prediction.host_s));
            CHECK(device_s == approx(explanation.prediction.device_s));
        }
    }
}

TEST_CASE("modules are grouped by the stage two levels below the model") {
    CHECK(report::stage_of(Op{.module = "encoder.layer.3.attention"}) == "encoder.layer");
    CHECK(report::stage_of(Op{.module = "conv1"}) == "conv1");
    CHECK(report::stage_of(Op{}) == "(no module)");
}
