#include <doctest/doctest.h>

#include <algorithm>
#include <string_view>

#include "ftax/import.hpp"
#include "src/report/launch_report.hpp"
#include "tests/approx.hpp"

using namespace ftax;

TEST_CASE("a breakdown by kind adds up to the prediction, dearest first") {
    const Graph graph = load_graph("resnet18");
    for (const std::string_view framework : {"pytorch-eager", "torch-tensorrt"}) {
        Predictor predictor(graph, device_profile("t4"), framework_profile(framework));
        const Explanation explanation = predictor.explain({{"batch", 8}});
        const auto shares = report::breakdown(predictor.graph(), explanation.launches);
        REQUIRE(shares.size() > 3);
        double host_s = 0, device_s = 0, last_s = 1e9;
        for (const report::Share& share : shares) {
            host_s += share.host_s;
            device_s += share.device_s;
            CHECK(std::max(share.host_s, share.device_s) <= last_s);
            last_s = std::max(share.host_s, share.device_s);
        }
        const auto bars = report::share_columns("kind", shares).select(shares, "bars").json();
        for (std::size_t i = 0; i < shares.size(); ++i)
            for (const auto& bar : bars[i]["bars"].items())
                CHECK_MESSAGE(bar.value().get<double>() <= 1, shares[i].name);
        CHECK(host_s == approx(explanation.prediction.host_s));
        CHECK(device_s == approx(explanation.prediction.device_s));
    }
}
