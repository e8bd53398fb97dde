#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "calibration/fit/operator_fit.hpp"
#include "ftax/error.hpp"
#include "predictors/kernels/sustained.hpp"
#include "tests/approx.hpp"
#include "tests/start_values.hpp"

using namespace ftax;
using namespace ftax::fit;
using kernels::ConvAlgorithm;

namespace {

constexpr double true_fill = 3.0, true_winograd2 = 0.7;

/// The embedded datasheet: rows point to their device.
const DeviceSpec& datasheet(std::string_view slug) {
    return *std::find_if(device_specs().begin(), device_specs().end(), [&](const auto& d) { return d.slug == slug; });
}

/// Rows as the model itself predicts them, on devices whose clocks and hosts differ, with 2 % noise.
std::vector<OperatorRow> synthetic_rows(const std::map<std::string, double>& clocks, std::size_t per_device) {
    auto p = test::start_values<kernels::ConvParameters>();
    p.fill_steps = true_fill;
    p.winograd2_efficiency = true_winograd2;
    std::mt19937 random(7);
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<>(low, high)(random); };
    std::vector<OperatorRow> rows;
    for (const auto& [name, clock] : clocks) {
        const DeviceSpec& device = datasheet(name);
        auto sustained = test::start_values<kernels::SustainedParameters>(device);
        sustained.clock_fp32 = clock;
        const auto rates = kernels::device_rates(device, MathPath::fp32, sustained);
        for (std::size_t i = 0; i < per_device; ++i) {
            OperatorRow row{.device = &device, .of = RowClass::conv, .order = static_cast<double>(i)};
            const int side = pick(5, 60);
            const kernels::ConvShape shape{.batch = pick(1, 64),
                                           .in_channels = pick(3, 600),
                                           .out_channels = pick(3, 600),
                                           .in_height = side,
                                           .in_width = side,
                                           .out_height = side,
                                           .out_width = side,
                                           .kernel_h = 3,
                                           .kernel_w = 3};
            row.shape = shape;
            const auto planned = kernels::plan(shape, rates, p);
            for (const auto algorithm :
                 {ConvAlgorithm::implicit_gemm, ConvAlgorithm::winograd_fused, ConvAlgorithm::winograd_nonfused}) {
                if (name_of(algorithm) == planned.algorithm) row.algorithm = algorithm;
            }
            const double noise = std::exp(std::normal_distribution<>(0, 0.02)(random));
            const double kernel_s = kernels::within_power(planned);
            row.latency_s = (kernel_s + 5e-5 + 3e-8 * static_cast<double>(i)) * noise;
            rows.push_back(row);
        }
    }
    return rows;
}

double value_of(const FitReport& report, std::string_view name, std::string_view key = "") {
    const auto found = std::find_if(report.parameters.begin(), report.parameters.end(),
                                    [&](const auto& p) { return p.parameter.name == name && p.key == key; });
    REQUIRE(found != report.parameters.end());
    return found->parameter.value;
}

}  // namespace

TEST_CASE("a convolution fit recovers the ratios and clocks that made the rows") {
    const std::map<std::string, double> clocks = {
        {"rtx-2080-ti", 0.7}, {"v100-pcie-32gb", 0.95}, {"p100-pcie-16gb", 0.85}};
    const auto rows = synthetic_rows(clocks, 150);
    const auto report = fit_conv(rows, {}, {.fit = FitOptions{.starts = 1}, .rows_per_stratum = 150});
    CHECK(report.converged);
    CHECK(value_of(report, "conv.fill_steps") == approx(true_fill).epsilon(0.15));
    CHECK(value_of(report, "conv.winograd2_efficiency") == approx(true_winograd2).epsilon(0.06));
    for (const auto& [slug, clock] : clocks) {
        // Convolutions tell the product only.
        const std::string architecture(name_of(datasheet(slug).architecture));
        const double rate =
            value_of(report, "clock.fp32", slug) * value_of(report, "conv.core_efficiency", architecture);
        CHECK(rate == approx(clock).epsilon(0.06));
    }
    REQUIRE(report.folds.size() == 4);
    CHECK(report.folds[0].mean < 0.025);
    // With the clock known a device that was left out is predicted almost as well; by its datasheet it is not.
    CHECK(report.folds[3].mean < 0.04);
    CHECK(report.folds[2].mean > report.folds[3].mean);
}

TEST_CASE("a device with convolutions alone has the clock and bandwidth of its architecture's others") {
    const OperatorRow alone{.device = &datasheet("a100-pcie-80gb"), .of = RowClass::conv};
    const OperatorRow measured{.device = &datasheet("a100-pcie-40gb"), .of = RowClass::conv};
    const OperatorRow unrelated{.device = &datasheet("t4"), .of = RowClass::conv};
    FitReport earlier;
    for (const char* name : {"clock.fp32", "bandwidth"}) {
        earlier.parameters.push_back({{name, 0.9, 0, "fitted"}, ParameterScope::device, "a100-pcie-40gb"});
        earlier.parameters.push_back({{name, 0.5, 0, "fitted"}, ParameterScope::device, "v100-pcie-32gb"});
    }
    const std::vector<OperatorRow> rows{alone, measured, unrelated};
    const auto report = siblings_report(rows, {&earlier, 1});
    REQUIRE(report.parameters.size() == 2);
    CHECK(value_of(report, "clock.fp32", "a100-pcie-80gb") == approx(0.9));
    CHECK(value_of(report, "bandwidth", "a100-pcie-80gb") == approx(0.9));
}

TEST_CASE("algorithms are read from the names of the kernels that ran") {
    CHECK(conv_algorithm_from_kernel("winogradforwarddata4x4+winogradforwardfilter4x4+volta_sgemm_64x64_nn") ==
          ConvAlgorithm::winograd_nonfused);
    CHECK(conv_algorithm_from_kernel("generatewinogradtileskernel+cudnn_infer_volta_scudnn_winograd_128x128_ldg1") ==
          ConvAlgorithm::winograd_fused);
    CHECK(conv_algorithm_from_kernel("computeoffsetskernel+cudnn_infer_volta_scudnn_128x64_relu_small_nn_v1") ==
          ConvAlgorithm::implicit_gemm);
    CHECK(conv_algorithm_from_kernel("implicit_convolve_sgemm") == ConvAlgorithm::implicit_gemm);
    CHECK_FALSE(conv_algorithm_from_kernel("fft2d_r2c_32x32+volta_gcgemm_64x64_nt+fft2d_c2r_32x32"));
}

TEST_CASE("conv rows are read with their output size, and refused when a dimension is missing") {
    OperatorMeasurement measured;
    measured.line = 12;
    measured.op = "conv";
    measured.latency_s = 1e-3;
    measured.shape = {{"b", 8}, {"cin", 3}, {"cout", 64}, {"kernel", 7}, {"hw", 224}, {"stride", 2}, {"pad", 3}};
    measured.order = 40;
    const auto row = operator_row(measured, datasheet("t4"));
    REQUIRE(row);
    CHECK(row->of == RowClass::conv);
    CHECK(std::get<kernels::ConvShape>(row->shape).out_height == 112);
    CHECK(std::get<kernels::ConvShape>(row->shape).kernel_w == 7);
    CHECK(row->order == 40);
    CHECK_FALSE(row->algorithm);
    measured.kernel = "volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1";
    CHECK(operator_row(measured, datasheet("t4"))->algorithm == ConvAlgorithm::winograd_fused);
    measured.shape.erase("stride");
    CHECK_THROWS_AS((void)operator_row(measured, datasheet("t4")), Error);
    measured.shape["stride"] = 1;
    measured.shape["hw"] = 0;
    CHECK_THROWS_AS((void)operator_row(measured, datasheet("t4")), Error);
    measured.shape["hw"] = 4;
    measured.shape["pad"] = 0;
    CHECK_THROWS_AS((void)operator_row(measured, datasheet("t4")), Error);
}

TEST_CASE("no rows give an empty report") {
    const auto report = fit_conv({});
    CHECK(report.parameters.empty());
    CHECK_FALSE(report.converged);
}
