#include "predictors/kernels/tensor_gemm.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string_view>

#include "tests/approx.hpp"
#include "tests/card_models.hpp"
#include "tests/measured.hpp"

using namespace ftax;
using namespace ftax::kernels;
using namespace ftax::test;

namespace {

GemmShape layer(std::int64_t m, std::int64_t n, std::int64_t k) {
    return {.m = m, .n = n, .k = k, .element_bytes = 2, .linear = true};
}

constexpr const char* devices[] = {"v100-pcie-32gb", "t4",   "a100-sxm4-80gb",         "a40",     "l4",
                                   "h100-sxm5-80gb", "b200", "rtx-pro-6000-blackwell", "rtx-4090"};

}  // namespace

TEST_CASE("a kernel of its own for few rows takes what its loads in flight bring, and no less than the memory") {
    GemmShape few = layer(1, 4096, 14336);
    few.row_bytes_per_cycle = 8;
    const double bytes = 4096.0 * 14336 * 2;
    const auto share_of_bandwidth = [&](std::string_view device) {
        const double seconds = unfitted(device).plan(few, MathPath::fp16_tensor).seconds;
        return bytes / seconds / device_spec(device).memory_bandwidth_bytes_per_s;
    };
    CHECK(share_of_bandwidth("a100-sxm4-80gb") < 0.6);
    CHECK(share_of_bandwidth("rtx-4090") > 0.75);
    CHECK(share_of_bandwidth("rtx-4090") < 1);
    CHECK(bytes / unfitted("a100-sxm4-80gb").plan(few, MathPath::fp16_tensor).seconds < 8 * 108 * 1.41e9);
    // Loads that run ahead reach what the memory sustains or what is in flight, whichever is less.
    GemmShape ahead = few;
    ahead.operands = Precision::q4_0;
    ahead.dot_products = true;
    const double before_s = unfitted("rtx-4090").plan(ahead, MathPath::int8_tensor).seconds;
    ahead.loads_ahead = true;
    const double narrow = 4096.0 * 14336 * 4.5 / 8,
                 ahead_s = unfitted("rtx-4090").plan(ahead, MathPath::int8_tensor).seconds;
    CHECK(ahead_s < 0.95 * before_s);
    CHECK(narrow / ahead_s < device_spec("rtx-4090").memory_bandwidth_bytes_per_s);
    CHECK(narrow / unfitted("a100-sxm4-80gb").plan(ahead, MathPath::int8_tensor).seconds < 8 * 108 * 1.41e9);
    double before = 0;
    for (const std::int64_t m : {1, 8, 9, 64, 512, 4096}) {
        few.m = m;
        const double seconds = unfitted("a100-sxm4-80gb").plan(few, MathPath::fp16_tensor).seconds;
        CHECK(seconds >= before);
        before = seconds;
    }
    CHECK(before == unfitted("a100-sxm4-80gb").plan(layer(4096, 4096, 14336), MathPath::fp16_tensor).seconds);
}

TEST_CASE("int8 products in blocks of 32 take what converting their sums takes, whatever the tensor cores' rate") {
    GemmShape blocks = layer(512, 11008, 4096);
    blocks.operands = Precision::q4_0;
    blocks.dot_products = true;
    blocks.row_bytes_per_cycle = 8;
    const auto cycles = [&](std::string_view device) {  // of an SM
        const DeviceSpec spec = device_spec(device);
        return unfitted(device).plan(blocks, MathPath::int8_tensor).compute_s * spec.sms * spec.boost_clock_hz;
    };
    CHECK(cycles("l40") == approx(cycles("rtx-6000-ada")).epsilon(0.05));  // at half the rate
    CHECK(cycles("a100-sxm4-80gb") > 1.2 * cycles("rtx-a6000"));           // twice the rate, half the f32 lanes
}

TEST_CASE("tensor cores that a board slows down hide the rest of the main loop, and take more energy") {
    // Source: github.com/zzc0721/torch-performance-test-data, issues 107 and 77, bf16.
    const auto tflops = [](std::string_view device, std::int64_t size) {
        const KernelPlan plan = fitted(device).plan(layer(size, size, size), MathPath::bf16_tensor);
        const double work = 2 * std::pow(static_cast<double>(size), 3) * 1e-12;
        return std::pair(work / plan.seconds, work / std::max(plan.seconds, plan.power_limited_s));
    };
    CHECK(tflops("l20", 4096).first == approx(111.8).epsilon(0.03));
    CHECK(tflops("l20", 8192).first == approx(114.1).epsilon(0.03));
    CHECK(tflops("l20", 10240).second == approx(108).epsilon(0.03));
    CHECK(tflops("h20", 4096).first == approx(133.4).epsilon(0.06));
    CHECK(tflops("h20", 8192).first == approx(138.6).epsilon(0.04));
    CHECK(tflops("h20", 10240).second == approx(142.3).epsilon(0.03));
    // An L40 has more SMs at the same rate: more than its 300 W can feed.
    const auto [boost, limited] = tflops("l40", 8192);
    CHECK(boost > 160);
    CHECK(limited < 125);
}

TEST_CASE("a matrix-vector kernel takes in inverse proportion to its bytes per cycle, whatever their number") {
    GemmShape few = layer(1, 4096, 14336);
    const KernelModels models = unfitted("a100-sxm4-80gb");
    double before = 0;
    for (const double rate : {1.0 / 4, 1.0 / 2, 1.0, 2.0, 4.0}) {
        CAPTURE(rate);
        few.row_bytes_per_cycle = rate;
        const auto planned = models.plan(few, MathPath::fp16_tensor);
        CHECK(planned.algorithm == tensor_gemm::streamed);
        const double seconds = planned.seconds - planned.floor_s;
        if (before > 0) CHECK(seconds == approx(before / 2).epsilon(0.1));
        before = seconds;
    }
    few.linear = false;  // a product of two tensors has no such kernel
    CHECK(models.plan(few, MathPath::fp16_tensor).algorithm != tensor_gemm::streamed);
}

TEST_CASE("tensor cores want rows of 16 bytes, with asynchronous copies of 4") {
    const auto models = unfitted("a100-sxm4-40gb");
    const auto aligned = models.plan(layer(4096, 4096, 4096), MathPath::fp16_tensor);
    const auto odd = models.plan(layer(4096, 4096, 4095), MathPath::fp16_tensor);
    CHECK(odd.seconds > 1.5 * aligned.seconds);
    CHECK(models.plan(layer(4096, 4096, 4094), MathPath::fp16_tensor).seconds < 1.05 * aligned.seconds);
    CHECK(aligned.bound() == Bound::compute);
    // Hopper's own instructions load 16 bytes, too; the others' are slower.
    const auto hopper = unfitted("h100-sxm5-80gb");
    const double own_s = hopper.plan(layer(4096, 4096, 4096), MathPath::fp16_tensor).seconds;
    for (const std::int64_t k : {4094, 4092, 4095})
        CHECK(hopper.plan(layer(4096, 4096, k), MathPath::fp16_tensor).seconds > 1.5 * own_s);
    CHECK(hopper.plan(layer(4096, 4096, 4088), MathPath::fp16_tensor).seconds < 1.05 * own_s);
    // Older libraries do without the tensor cores of earlier chips then.
    const auto turing = unfitted("rtx-2080-ti");
    auto even = layer(4096, 4096, 4094);
    CHECK(turing.plan(even, MathPath::fp16_tensor).seconds < turing.plan(even, MathPath::fp32).seconds);
    even.older_library = true;
    CHECK(turing.plan(even, MathPath::fp16_tensor).seconds == turing.plan(even, MathPath::fp32).seconds);
}

TEST_CASE("cuBLAS 11 multiplies two tensors of unaligned rows on CUDA cores, halves of an odd number one by one") {
    const auto models = unfitted("a100-sxm4-40gb");
    const auto seconds = [&](std::int64_t tokens, int element_bytes, MathPath path, bool oldest) {
        return models
            .plan(GemmShape{.batch = 384,
                            .m = tokens,
                            .n = tokens,
                            .k = 64,
                            .element_bytes = element_bytes,
                            .oldest_library = oldest},
                  path)
            .seconds;
    };
    CHECK(seconds(577, 4, MathPath::tf32, true) == seconds(577, 4, MathPath::fp32, true));
    CHECK(seconds(576, 4, MathPath::tf32, true) < 0.7 * seconds(577, 4, MathPath::tf32, true));
    CHECK(seconds(577, 4, MathPath::tf32, false) < 0.7 * seconds(577, 4, MathPath::tf32, true));
    const double cores_s = seconds(577, 2, MathPath::fp32, true);
    CHECK(seconds(577, 2, MathPath::fp16_tensor, true) > 1.5 * cores_s);
    CHECK(seconds(578, 2, MathPath::fp16_tensor, true) < 0.7 * cores_s);
    CHECK(seconds(577, 2, MathPath::fp16_tensor, false) < 0.7 * cores_s);
    for (GemmShape vector : {GemmShape{.m = 1, .n = 1001, .k = 128}, GemmShape{.m = 63, .n = 1, .k = 127}}) {
        vector.batch = 2048, vector.element_bytes = 2, vector.oldest_library = true;
        CHECK(models.path_of(vector, MathPath::fp16_tensor) == MathPath::fp16_tensor);
    }
}

TEST_CASE("layers of a few values cost the traffic of their rows, not that of whole tiles") {
    // The projection of positions in ConViT: 39 million rows of 3 values to 4.
    const KernelModels models = unfitted("rtx-3090");
    const double rows = 1024.0 * 196 * 196;
    const auto planned = models.plan(layer(1024 * 196 * 196, 4, 3), MathPath::fp16_tensor);
    CHECK(planned.seconds < 10 * rows * (3 + 4) * 2 / 936e9);
    CHECK(planned.seconds > rows * (3 + 4) * 2 / 936e9);
}

TEST_CASE("products on tensor cores under a power limit sustain what was published") {
    // Sources: T4 forums.developer.nvidia.com/t/264462, A100 PCIe github.com/NVIDIA/cutlass/issues/956, H100 XLA's
    // matmul_interpolator_data.h, A10 and L4 as in power.hpp.
    const auto sustained = [](std::string_view device) {
        const GemmShape s = layer(8192, 8192, 8192);
        return flops(s) / within_power(unfitted(device).plan(s, MathPath::fp16_tensor));
    };
    CHECK(sustained("t4") == Measured("products on tensor cores, t4"));
    CHECK(sustained("a100-pcie-40gb") == Measured("products on tensor cores, a100-pcie-40gb"));
    CHECK(sustained("a10") == Measured("products on tensor cores, a10"));
    CHECK(sustained("h100-sxm5-80gb") == Measured("products on tensor cores, h100-sxm5-80gb"));
    CHECK(sustained("l4") == Measured("products on tensor cores, l4"));
}

TEST_CASE("no product on tensor cores beats peak, bandwidth or the floor") {
    for (const char* device : devices) {
        const auto models = unfitted(device);
        const auto& rates = models.at(MathPath::fp16_tensor);
        for (const std::int64_t m : {1, 16, 100, 512, 4096, 20000}) {
            for (const std::int64_t n : {64, 768, 11008}) {
                for (const std::int64_t k : {64, 1024, 14336}) {
                    CAPTURE(device);
                    CAPTURE(m);
                    CAPTURE(n);
                    CAPTURE(k);
                    const GemmShape s = layer(m, n, k);
                    const auto planned = models.plan(s, MathPath::fp16_tensor);
                    const double clock = models.parameters.tensor_gemm.clock;
                    CHECK(planned.seconds >= flops(s) / (rates.peak_flops_per_s * clock));
                    CHECK(planned.seconds >= 2.0 * n * k / rates.dram_bytes_per_s);  // cold weights
                    CHECK(planned.seconds > planned.floor_s);
                    CHECK(planned.power_limited_s >= rates.traffic_power_share * planned.seconds);
                }
            }
        }
    }
}

TEST_CASE("more rows never take less time") {
    for (const char* device : devices) {
        const auto models = unfitted(device);
        double before = 0;
        for (std::int64_t m = 1; m < 70000; m = m * 5 / 4 + 1) {
            CAPTURE(device);
            CAPTURE(m);
            const auto planned = models.plan(layer(m, 4096, 4096), MathPath::bf16_tensor);
            const double now = within_power(planned);
            CHECK(now >= before * (1 - 1e-9));
            before = now;
        }
    }
}

TEST_CASE("weights that fit the L2 with all that is touched between two uses do not come from memory") {
    const auto models = unfitted("h100-sxm5-80gb");  // 50 MB of L2
    GemmShape s = layer(16, 4096, 2048);             // 16 MB of weights
    s.weight_reuse_bytes = 0;
    const double hot = models.plan(s, MathPath::bf16_tensor).memory_s;
    s.weight_reuse_bytes = 1e12;
    const double cold = models.plan(s, MathPath::bf16_tensor).memory_s;
    CHECK(cold > 1.3 * hot);
}

TEST_CASE("small weights from memory cost a wait before the first tile, large ones no more than their traffic") {
    const auto models = unfitted("h100-sxm5-80gb");
    const auto floor_s = [&](std::int64_t columns, double reuse_bytes) {
        GemmShape s = layer(128, columns, 768);
        s.weight_reuse_bytes = reuse_bytes;
        return models.plan(s, MathPath::fp16_tensor).floor_s;
    };
    CHECK(floor_s(768, 1e12) - floor_s(768, 0) == approx(0.8e-6).epsilon(0.05));
    CHECK(floor_s(1 << 17, 1e12) == approx(floor_s(1 << 17, 0)).epsilon(0.01));
}

TEST_CASE("odd rows run at the rate of older instructions") {
    const auto models = unfitted("h100-sxm5-80gb");
    const double even_s = models.plan(layer(8192, 50256, 768), MathPath::fp16_tensor).compute_s;
    const double odd_s = models.plan(layer(8192, 50257, 768), MathPath::fp16_tensor).compute_s;
    CHECK(odd_s / even_s > 4);
    CHECK(odd_s / even_s < 8);
}

TEST_CASE("narrow products split the reduction until the SMs are busy") {
    const auto models = unfitted("h100-sxm5-80gb");
    CHECK(models.plan(layer(16, 1024, 16384), MathPath::bf16_tensor).split_k > 1);
    CHECK(models.plan(layer(8192, 8192, 8192), MathPath::bf16_tensor).split_k == 1);
    CHECK(models.plan(layer(16, 1024, 128), MathPath::bf16_tensor).split_k == 1);  // parts of 128 values
}

TEST_CASE("chips whose tensor cores take 128 rows of the weight have no narrow tile") {
    for (const GemmCandidate& candidate : device_spec("b200").chip().tensor.candidates) {
        CHECK((candidate.tile.rows >= 64 || candidate.tile.columns >= 128));
    }
    CHECK(unfitted("h100-sxm5-80gb").plan(layer(8, 1024, 4096), MathPath::bf16_tensor).tile.rows == 16);
}

TEST_CASE("products beyond any memory have a kernel and a time on tensor cores") {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    for (const char* device : devices) {
        const auto planned = unfitted(device).plan(layer(most, most, most), MathPath::fp16_tensor);
        CHECK_FALSE(planned.tile.name.empty());
        CHECK(planned.seconds > 0);
    }
}

TEST_CASE("parts of a split reduction write and read their sums in the L2: 8 bytes each of every result") {
    const GemmShape s = layer(256, 512, 65536);
    GemmTile tile;
    tile.rows = tile.columns = 128;
    tile.area = 128 * 128;
    tensor_gemm::Rates rates;
    rates.cycle_scale = 1;
    rates.sm_flops_per_s = rates.sm_boost_flops_per_s = 1e12;
    rates.sm_operand_bytes_per_s = 1e11;
    rates.sms = 1000;
    const TensorGemmParameters p{};
    for (const double split : {1.0, 2.0, 8.0}) {
        const auto seconds = [&](double l2_bytes_per_s) {
            rates.l2_bytes_per_s = l2_bytes_per_s;
            return tensor_gemm::tile_time(s, tile, 8, split, rates, 1e12, p);
        };
        const double sums_s = split > 1 ? 8 * split * 256 * 512 / 1e12 : 0;
        CHECK(seconds(1e12) - seconds(1e30) == doctest::Approx(sums_s).epsilon(1e-6).scale(1e-12));
    }
}
