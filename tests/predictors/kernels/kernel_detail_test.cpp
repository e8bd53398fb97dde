#include "predictors/kernels/kernel_detail.hpp"

#include <doctest/doctest.h>

#include "tests/approx.hpp"

using namespace ftax;

namespace {

KernelModels models_of(const char* device) {
    const DeviceProfile profile = device_profile(device);
    return {profile.device, kernel_parameters(profile)};
}

}  // namespace

TEST_CASE("a kernel's explanation agrees with its plan and places it in the roofline") {
    const auto models = models_of("t4");
    const kernels::GemmShape shape{.m = 1024, .n = 768, .k = 512, .linear = true};
    const KernelDetail detail = kernel_detail(models, shape, MathPath::fp32);
    const auto planned = models.plan(shape, MathPath::fp32);
    CHECK(detail.seconds == planned.seconds);
    CHECK(detail.bound == planned.bound());
    CHECK(detail.path == "fp32");
    CHECK(detail.flops == 2.0 * 1024 * 768 * 512);
    CHECK(detail.bytes == 4.0 * (1024 * 512 + 768 * 512 + 1024 * 768));
    const auto& rates = models.at(MathPath::fp32);
    CHECK(detail.ridge == approx(rates.flops_per_s / rates.bandwidth_bytes_per_s));
    CHECK(detail.waves > 0);
    CHECK(detail.seconds > detail.compute_s * 0.99);
}

TEST_CASE("an explanation names the alternatives that were passed over") {
    const auto turing = models_of("t4");
    const kernels::ConvShape conv{.batch = 8,
                                  .in_channels = 64,
                                  .out_channels = 64,
                                  .in_height = 56,
                                  .in_width = 56,
                                  .out_height = 56,
                                  .out_width = 56,
                                  .kernel_h = 3,
                                  .kernel_w = 3};
    const KernelDetail detail = kernel_detail(turing, conv, MathPath::fp32);
    for (const char* algorithm : {"implicit-gemm", "winograd-fused", "winograd-nonfused"}) {
        CHECK((detail.name + detail.reason).find(algorithm) != std::string::npos);
    }
    const kernels::GemmShape batched{.batch = 16, .m = 128, .n = 128, .k = 64};
    CHECK(kernel_detail(models_of("a100-pcie-40gb"), batched, MathPath::fp32).name == "gemm 128x128");
    CHECK(kernel_detail(turing, batched, MathPath::fp32).reason.find("of 3 tiles") != std::string::npos);
}
