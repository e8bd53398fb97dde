#include "predictors/kernels/gemm.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "ftax/device.hpp"
#include "predictors/kernels/sustained.hpp"
#include "tests/start_values.hpp"

using namespace ftax;
using namespace ftax::kernels;

namespace {

GemmParameters<double> declared() {
    return test::start_values<GemmParameters<double>>();
}

DeviceRates<double> rates_of(std::string_view device, MathPath path = MathPath::fp32) {
    const DeviceSpec spec = device_spec(device);
    return device_rates(spec, path, test::start_values<SustainedParameters<double>>(spec));
}

const std::vector<const char*> devices = {"p4", "p100-pcie-16gb", "v100-pcie-32gb", "t4", "a100-pcie-40gb",
                                          "l4", "h100-sxm5-80gb", "rtx-3090"};

const std::vector<GemmShape> shapes = {
    {.m = 1, .n = 1000, .k = 2048, .linear = true},  {.m = 4096, .n = 3072, .k = 768, .linear = true},
    {.m = 333, .n = 77, .k = 40000, .linear = true}, {.batch = 384, .m = 128, .n = 128, .k = 64},
    {.batch = 3, .m = 17, .n = 5, .k = 9},           {.m = 8192, .n = 50257, .k = 1280, .linear = true},
    {.batch = 1, .m = 512, .n = 512, .k = 512},
};

}  // namespace

TEST_CASE("a batch on an A100 is tiled 128x128 and counted in waves of two blocks per SM") {
    // 2 × 2 blocks for each of 216 products, 108 SMs with two blocks each.
    const auto plan = plan_gemm({.batch = 216, .m = 130, .n = 256, .k = 64}, rates_of("a100-pcie-40gb"), declared());
    CHECK(plan.tile->name == "128x128");
    CHECK(plan.waves == doctest::Approx(4));
    CHECK(plan.split == 1);
}

TEST_CASE("a tile name gives its columns first") {
    CHECK(sgemm::t32x128.columns == 32);
    CHECK(sgemm::t32x128.rows == 128);
    CHECK(gemm::block_rows({.m = 129}, sgemm::t32x128) == 2);
    CHECK(gemm::block_rows({.m = 128}, sgemm::t32x128) == 1);
    CHECK(gemm::block_columns({.n = 65}, sgemm::t32x128) == 3);
    CHECK(sgemm::t32x32.inverse_work == 1.0 / (32 * 32 * 4));
}

TEST_CASE("the reduction decides between the kernels of large layers") {
    const auto tile = [](const char* device, std::int64_t k) {
        return plan_gemm({.m = 4096, .n = 4096, .k = k, .linear = true}, rates_of(device), declared()).tile;
    };
    CHECK(tile("v100-pcie-32gb", 14336)->name == "128x64");
    CHECK(tile("v100-pcie-32gb", 14337)->name == "128x128");
    CHECK(tile("a100-pcie-40gb", 32768)->loop == GemmLoop::wide);
    CHECK(tile("a100-pcie-40gb", 32769)->loop == GemmLoop::sliced);
}

TEST_CASE("products beyond any memory have a kernel and a time") {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    CHECK(gemm::block_rows({.m = most}, sgemm::t128x128) == std::ldexp(1.0, 56));
    for (const char* device : devices) {
        for (const MathPath path : {MathPath::fp32, MathPath::fp16_tensor}) {
            const auto plan =
                plan_gemm({.m = most, .n = most, .k = most, .linear = true}, rates_of(device, path), declared());
            CHECK(plan.tile != nullptr);
            CHECK(plan.seconds > 0);
        }
    }
}

TEST_CASE("the reduction is split only while the grid leaves SMs empty, into parts of 64 values or more") {
    const auto rates = rates_of("p100-pcie-16gb");
    const auto few = plan_gemm({.m = 64, .n = 256, .k = 8192, .linear = true}, rates, declared());
    CHECK(few.split > 1);
    const auto shallow = plan_gemm({.m = 64, .n = 256, .k = 100, .linear = true}, rates, declared());
    CHECK(shallow.split == 1);
    const auto many = plan_gemm({.m = 4096, .n = 4096, .k = 8192, .linear = true}, rates, declared());
    CHECK(many.split == 1);
}

TEST_CASE("a P4 splits reductions until its SMs are full; a second kernel adds up what parts fit its workspace") {
    const auto rates = rates_of("p4");
    const GemmShape s{.m = 512, .n = 448, .k = 4096, .linear = true};
    const auto choice = [&](const GemmShape& shape) {
        return gemm::choose_on_cores(shape, rates.architecture, rates.sms);
    };
    const auto full = choice(s);  // 56 blocks, 2.8 of the 4 that an SM holds
    CHECK(full.tile->name == "32x128");
    CHECK(full.split == 2);
    CHECK_FALSE(full.summed_apart);
    CHECK(choice({.m = 512, .n = 448, .k = 255, .linear = true}).split == 1);  // parts of 128 values
    const auto few = choice({.m = 64, .n = 256, .k = 8192, .linear = true});
    CHECK(few.split == 16);  // 4 blocks on 20 SMs have room for 20
    CHECK(few.summed_apart);
    const auto last = choice({.m = 512, .n = 256, .k = 8192, .linear = true});  // 32 blocks have room for 3
    CHECK(last.split == 2);
    CHECK(last.summed_apart);
    const auto beyond = choice({.m = 512, .n = 257, .k = 8192, .linear = true});  // 40 blocks
    CHECK(beyond.tile->name == "64x64");                                          // an SM holds 8
    CHECK(beyond.split == 4);
    CHECK_FALSE(beyond.summed_apart);
    CHECK(gemm::plan_choice(s, {full.tile, 2, true}, rates, declared()).seconds >
          gemm::plan_choice(s, {full.tile, 2, false}, rates, declared()).seconds);
}

TEST_CASE("blocks drift apart before Ampere, but not in sliced kernels nor on tensor cores") {
    CHECK(gemm::has_cta_skew(Architecture::gp100, GemmLoop::narrow));
    CHECK(gemm::has_cta_skew(Architecture::turing, GemmLoop::wide));
    CHECK(gemm::has_cta_skew(Architecture::pascal, GemmLoop::vector));
    CHECK_FALSE(gemm::has_cta_skew(Architecture::volta, GemmLoop::sliced));
    CHECK_FALSE(gemm::has_cta_skew(Architecture::volta, GemmLoop::tensor));
    CHECK_FALSE(gemm::has_cta_skew(Architecture::ampere, GemmLoop::wide));
}

TEST_CASE("of kernels of equal work Pascal's cuBLAS takes the one whose last wave is fuller, of those the narrow one") {
    // Both kernels cut 128·a × 128·c outputs into 4·a·c blocks, of which 20 SMs hold 4 (32x128) or 8 (64x64) each.
    const auto tile = [](std::int64_t a, std::int64_t c) {
        return plan_gemm({.m = 128 * a, .n = 128 * c, .k = 768, .linear = true}, rates_of("p4"), declared()).tile->name;
    };
    CHECK(tile(18, 15) == "64x64");   // 54 blocks per SM: half of the last four, a quarter of the last eight are idle
    CHECK(tile(23, 11) == "32x128");  // 50.6: 1.4 of four, 5.4 of eight
    CHECK(tile(20, 14) == "32x128");  // 56: none
}

TEST_CASE("f32 layers that cublasLt does not get have other kernels before Volta") {
    GemmShape s{.m = 1024, .n = 768, .k = 768, .linear = true, .through_lt = false};  // 48 blocks of 128x128
    const auto choice = [&](const char* device) {
        const auto rates = rates_of(device);
        return gemm::choose_on_cores(s, rates.architecture, rates.sms);
    };
    CHECK(choice("p4").tile->name == "128x128x8");  // 20 SMs hold 40
    CHECK(choice("p4").split == 1);
    const auto few = choice("gtx-1080-ti");  // 28 SMs hold 56
    CHECK(few.tile->name == "128x64");
    CHECK(few.split == 2);                                   // parts of 512
    CHECK(choice("p100-pcie-16gb").tile->name == "32x128");  // less than 1.2 for each of 56 SMs
    CHECK(choice("v100-pcie-32gb").tile->name != "128x128x8");
    s.through_lt = true;
    CHECK(choice("p4").tile->name == "32x128");
    s.through_lt = false;
    s.element_bytes = 2;
    CHECK(choice("p4").tile->name == "32x128");
}

TEST_CASE("128x128x8 blocks are launched two by two along n, and along m where their rows are odd in number") {
    const auto band = [](const GemmTile& tile, double columns, double rows) {
        const gemm::Band b = gemm::band_of(tile, columns, rows, 40);
        return std::pair{b.across, b.down};
    };
    CHECK(band(sgemm::t128x128x8, 5, 8) == std::pair{5.0, 8.0});
    CHECK(band(sgemm::t128x128x8, 64, 8) == std::pair{20.0, 2.0});
    CHECK(band(sgemm::t128x128x8, 10, 8) == std::pair{10.0, 4.0});
    CHECK(band(sgemm::t128x128x8, 64, 5) == std::pair{8.0, 5.0});
    CHECK(band(sgemm::t128x128x8, 64, 101) == std::pair{1.0, 40.0});
    CHECK(band(sgemm::t128x128, 64, 8) == std::pair{40.0, 1.0});
}

TEST_CASE("a bias of its own is copied into the result, and read again where memory decides") {
    const auto rates = rates_of("a100-pcie-40gb");
    const auto extra = [&](std::int64_t k) {  // in times of one pass over the result
        GemmShape s{.m = 65536, .n = 768, .k = k, .linear = true, .through_lt = false};
        const double fused_s = plan_gemm(s, rates, declared()).seconds;
        s.separate_bias = true;
        const double pass_s = 4.0 * 65536 * 768 / rates.bandwidth_bytes_per_s;
        return (plan_gemm(s, rates, declared()).seconds - fused_s) / pass_s;
    };
    CHECK(extra(8192) == doctest::Approx(1).epsilon(0.05));
    CHECK(extra(8) > 1.5);
    CHECK(extra(8) < 2);
}

TEST_CASE("no product beats its arithmetic at the best efficiency, the floor, or its result's traffic") {
    for (const char* device : devices) {
        for (const GemmShape& s : shapes) {
            const auto rates = rates_of(device);
            const auto p = declared();
            CAPTURE(device);
            CAPTURE(s.m);
            const double flops = 2.0 * s.batch * s.m * s.n * s.k;
            const double result_bytes = 4.0 * s.batch * s.m * s.n;
            const double seconds = plan_gemm(s, rates, p).seconds;
            CHECK(seconds >= flops / rates.flops_per_s);
            CHECK(seconds >= result_bytes / rates.bandwidth_bytes_per_s);
            CHECK(seconds >= rates.floor_s);
        }
    }
}

TEST_CASE("one choice takes longer for more of anything") {
    const auto rates = rates_of("v100-pcie-32gb");
    const auto p = declared();
    const gemm::Choice choice{&sgemm::t128x64, 1};
    const auto seconds = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
        return gemm::plan_choice({.m = m, .n = n, .k = k, .linear = true}, choice, rates, p).seconds;
    };
    for (std::int64_t size = 64; size < 40000; size *= 2) {
        CAPTURE(size);
        CHECK(seconds(2 * size, 512, 512) >= seconds(size, 512, 512) * (1 - 1e-12));
        CHECK(seconds(512, 2 * size, 512) >= seconds(512, size, 512) * (1 - 1e-12));
        CHECK(seconds(512, 512, 2 * size) > seconds(512, 512, size));
    }
}

TEST_CASE("blocks that keep step read a shared operand once, alone each reads its own") {
    // 8 × 16 blocks of 128×64 fit on the SMs at once: one band, A and B are read once.
    const auto rates = rates_of("v100-pcie-32gb");
    auto p = declared();
    const GemmShape s{.m = 1024, .n = 1024, .k = 65536, .linear = true};
    p.skew = 1e-9;
    auto traffic = gemm::shared_traffic(s, {&sgemm::t128x64, 1}, 8, 16, 65536, rates, p);
    CHECK(traffic.rows == doctest::Approx(4.0 * 1024 * 65536));
    CHECK(traffic.columns == doctest::Approx(4.0 * 1024 * 65536));
    p.skew = 1e9;
    traffic = gemm::shared_traffic(s, {&sgemm::t128x64, 1}, 8, 16, 65536, rates, p);
    CHECK(traffic.rows == doctest::Approx(8 * 4.0 * 1024 * 65536));
    CHECK(traffic.columns == doctest::Approx(16 * 4.0 * 1024 * 65536));
}

TEST_CASE("blocks lose step over the waves, the sooner the more SMs a GPU has") {
    // Grids of 40 columns: of a wave two rows on a P4 (80 blocks of 32x128), a part of each more.
    const auto reads_per_column = [](const char* device, double waves) {
        const auto rates = rates_of(device);
        const double rows = std::round(waves * rates.sms * sgemm::t32x128.resident / 40);
        const GemmShape s{.m = static_cast<std::int64_t>(128 * rows), .n = 32 * 40, .k = 4096, .linear = true};
        const auto traffic = gemm::shared_traffic(s, {&sgemm::t32x128, 1}, 40, rows, 4096, rates, declared());
        const double down = rates.sms * sgemm::t32x128.resident / 40;
        return (traffic.columns / (4.0 * s.n * s.k) - rows / down) / (rows - rows / down);  // 0: shared, 1: not at all
    };
    CHECK(reads_per_column("p4", 2) < 0.1);
    CHECK(reads_per_column("p4", 32) > 2 * reads_per_column("p4", 2));
    CHECK(reads_per_column("p100-pcie-16gb", 2) > 2 * reads_per_column("p4", 2));
    CHECK(reads_per_column("p100-pcie-16gb", 1e6) < 1);
}

TEST_CASE("rows along the reduction cost more the longer they are, up to a bound") {
    const auto p = declared();
    const auto cost = [&](std::int64_t k, int bytes) {
        const GemmShape s{.m = 512, .n = 512, .k = k, .element_bytes = bytes, .linear = true};
        return gemm::strided_cost(s, GemmLoop::wide, p);
    };
    CHECK(cost(8, 4) == doctest::Approx(1 + p.misaligned_read).epsilon(0.01));  // a sector: nothing is strided
    double before = 1;
    for (std::int64_t k = 64; k <= 1 << 20; k *= 2) {
        CAPTURE(k);
        CHECK(cost(k, 4) > before);
        CHECK(cost(k, 2) == cost(k / 2, 4));
        before = cost(k, 4);
    }
    CHECK(before < 1 / p.linear_strided_bandwidth + p.page_loss);
    // Pieces that fall into two sectors, rows that fall into one more line.
    CHECK(cost(4097, 4) == doctest::Approx(cost(4096, 4) * (1 + 2 * p.misaligned_read)).epsilon(1e-3));
    CHECK(cost(4104, 4) == doctest::Approx(cost(4096, 4) * (1 + p.misaligned_read)).epsilon(1e-3));
    CHECK(cost(4104, 2) == doctest::Approx(cost(4096, 2) * (1 + 2 * p.misaligned_read)).epsilon(1e-3));
    const GemmShape half{.k = 4096, .linear = true};
    CHECK(gemm::strided_cost(half, GemmLoop::vector, p) ==
          doctest::Approx(1 + p.vector_strided_loss * (cost(4096, 4) - 1)));
    CHECK(gemm::strided_cost(half, GemmLoop::tensor, p) == 1);
}

TEST_CASE("half storage at the f32 rate halves the traffic and leaves the arithmetic") {
    const auto rates = rates_of("p100-pcie-16gb");
    GemmShape s{.batch = 64, .m = 512, .n = 512, .k = 16};
    const auto single = plan_gemm(s, rates, declared());
    s.element_bytes = 2;
    const auto half = plan_gemm(s, rates, declared());
    CHECK(half.compute_s == single.compute_s);
    CHECK(half.memory_s == doctest::Approx(single.memory_s / 2).epsilon(0.05));
}

TEST_CASE("tensor cores want rows of 16 bytes") {
    const auto rates = rates_of("a100-sxm4-40gb", MathPath::fp16_tensor);
    const auto aligned =
        plan_gemm({.m = 4096, .n = 4096, .k = 4096, .element_bytes = 2, .linear = true}, rates, declared());
    const auto odd =
        plan_gemm({.m = 4096, .n = 4096, .k = 4095, .element_bytes = 2, .linear = true}, rates, declared());
    CHECK(odd.seconds > 1.5 * aligned.seconds);
    CHECK(aligned.bound == Bound::compute);
    const double peak = 2.0 * 4096 * 4096 * 4096 / rates.flops_per_s;
    CHECK(aligned.seconds < 1.75 * peak);
}

TEST_CASE("products under a power limit sustain what was published") {
    // Sources: power.hpp.
    const auto sustained = [](std::string_view device, MathPath path) {
        const GemmShape s{
            .m = 8192, .n = 8192, .k = 8192, .element_bytes = path == MathPath::fp32 ? 4 : 2, .linear = true};
        const auto plan = plan_gemm(s, rates_of(device, path), declared());
        return 2.0 * 8192 * 8192 * 8192 / within_power<double>(plan);
    };
    CHECK(sustained("t4", MathPath::fp16_tensor) == doctest::Approx(24e12).epsilon(0.2));
    CHECK(sustained("a100-pcie-40gb", MathPath::fp16_tensor) == doctest::Approx(158e12).epsilon(0.2));
    CHECK(sustained("a10", MathPath::fp16_tensor) == doctest::Approx(55e12).epsilon(0.2));
    CHECK(sustained("h100-sxm5-80gb", MathPath::fp16_tensor) == doctest::Approx(780e12).epsilon(0.2));
    CHECK(sustained("l4", MathPath::fp16_tensor) == doctest::Approx(53e12).epsilon(0.2));
    CHECK(sustained("l4", MathPath::fp16_tensor) > sustained("t4", MathPath::fp16_tensor));
    CHECK(sustained("l4", MathPath::fp16_tensor) < sustained("a10", MathPath::fp16_tensor));
    CHECK(sustained("l4", MathPath::fp32) == doctest::Approx(11e12).epsilon(0.2));
    CHECK(sustained("a10", MathPath::fp32) == doctest::Approx(14e12).epsilon(0.2));
}

TEST_CASE("a 70 W card slows down under long arithmetic, a 250 W card of the same rate class does not") {
    const auto p = declared();
    CHECK(power_ratio(rates_of("v100-pcie-32gb"), p.energy_scale) < 1);
    CHECK(power_ratio(rates_of("v100-sxm2-16gb"), p.energy_scale) < 1);
    CHECK(power_ratio(rates_of("a100-sxm4-40gb"), p.energy_scale) < 1);
    const double t4 = power_ratio(rates_of("t4"), p.energy_scale);
    const double left_w = 70 - (20 + 0.08 * 70);  // of its limit, once the idle board has its share
    CHECK(t4 == doctest::Approx(12e-12 * 8.1408e12 / left_w));
    CHECK(within_power<double>({1.0, t4}) == t4);
    CHECK(within_power<double>({1.0, 0.6}) == 1.0);  // traffic alone does not slow the clock
    // A kernel a tenth as long as the governor takes feels an eleventh of the limit, one as long half of it.
    CHECK(within_power({1.0, t4}, 0.0) == doctest::Approx(t4));
    CHECK(within_power({1.0, t4}, 10.0) == doctest::Approx(1 + (t4 - 1) / 11));
    CHECK(within_power({1.0, t4}, 1.0) == doctest::Approx(1 + (t4 - 1) / 2));
    CHECK(within_power({1.0, 0.6}, 1.0) == 1.0);
}

TEST_CASE("a product that waits for its weights draws the power of traffic") {
    const auto rates = rates_of("t4");
    const auto decode = plan_gemm({.m = 1, .n = 8192, .k = 8192, .linear = true}, rates, declared());
    CHECK(decode.power_limited_s == doctest::Approx(traffic_power_share * decode.seconds).scale(0));
    const auto prefill = plan_gemm({.m = 8192, .n = 8192, .k = 8192, .linear = true}, rates, declared());
    CHECK(prefill.power_limited_s > prefill.seconds);
}

TEST_CASE("a multiprocessor that waits draws part of its power") {
    const auto rates = rates_of("t4");
    const GemmShape s{.m = 128 * 40, .n = 128 * 3, .k = 8192, .linear = true};  // three blocks on each SM, room for two
    const gemm::Choice choice{&sgemm::all.front(), 1};
    GemmParameters<double> frugal = declared(), idle = declared();
    frugal.idle_energy = 0.1;
    idle.idle_energy = 0.9;
    const auto of_frugal = gemm::plan_choice(s, choice, rates, frugal);
    const auto of_idle = gemm::plan_choice(s, choice, rates, idle);
    CHECK(of_idle.power_limited_s > of_frugal.power_limited_s);
    CHECK(of_idle.seconds == of_frugal.seconds);
}
