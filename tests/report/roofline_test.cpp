#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "ftax/import.hpp"
#include "src/report/charts.hpp"
#include "tests/approx.hpp"

using namespace ftax;
using namespace ftax::report;

TEST_CASE("a roofline holds the kernels of a prediction, each under the roof of its units") {
    const Graph graph = load_graph("resnet18");
    PredictOptions options;
    options.precision = Precision::fp16;
    Predictor predictor(graph, device_profile("t4"), framework_profile("pytorch-eager"), options);
    const Explanation explanation = predictor.explain({{"batch", 64}});
    const auto kernels = roofline_kernels(predictor.device().device, predictor.graph(), explanation);
    REQUIRE(kernels.size() > 5);
    const DeviceSpec& t4 = predictor.device().device;
    double total_s = 0, last_s = 1e9;
    for (const RooflineKernel& kernel : kernels) {
        CHECK(kernel.launches * kernel.seconds <= last_s);
        last_s = kernel.launches * kernel.seconds;
        total_s += last_s;
        const double peak = *t4.peak(kernel.path == "fp32" ? MathPath::fp32 : MathPath::fp16_tensor);
        CHECK(kernel.roof_flops_per_s == approx(std::min(peak, kernel.intensity() * t4.memory_bandwidth_bytes_per_s)));
        CHECK(kernel.flops_per_s() <= peak);
        if (kernel.bound == Bound::compute) CHECK(kernel.of_roof() <= 1);
    }
    CHECK(total_s == approx(explanation.prediction.device_s).epsilon(0.02));  // besides: the gaps between kernels

    const Chart chart = roofline_chart(kernels, t4, "resnet18");
    const auto roof = std::find_if(chart.series.begin(), chart.series.end(),
                                   [](const Series& series) { return series.label == "fp16_tensor 65.1 TFLOP/s"; });
    REQUIRE(roof != chart.series.end());
    REQUIRE(roof->points.size() == 3);
    CHECK(roof->points[0].y == approx(320e9 * roof->points[0].x));
    CHECK(roof->points[1].x == approx(65.1264e12 / 320e9));
    CHECK(roof->points[2].y == 65.1264e12);
    const std::size_t dots = std::accumulate(
        chart.series.begin(), chart.series.end(), std::size_t{0}, [](std::size_t sum, const Series& series) {
            return sum + (series.look == SeriesLook::scatter ? series.points.size() : 0);
        });
    CHECK(dots == kernels.size());
}
