#include "predictors/kernels/gemm.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "ftax/device.hpp"
#include "predictors/kernels/sustained.hpp"
#include "tests/approx.hpp"
#include "tests/measured.hpp"
#include "tests/start_values.hpp"

using namespace ftax;
using namespace ftax::kernels;

namespace {

GemmParameters declared() {
    return test::start_values<GemmParameters>();
}

DeviceRates rates_of(std::string_view device, MathPath path = MathPath::fp32) {
    const DeviceSpec spec = device_spec(device);
    return device_rates(spec, path, test::start_values<SustainedParameters>(spec));
}

const std::vector<const char*> devices = {"p4", "p100-pcie-16gb", "v100-pcie-32gb", "t4", "a100-pcie-40gb",
                                          "l4", "h100-sxm5-80gb", "rtx-3090"};

const std::vector<GemmShape> shapes = {
    {.m = 1, .n = 1000, .k = 2048, .linear = true},  {.m = 4096, .n = 3072, .k = 768, .linear = true},
    {.m = 333, .n = 77, .k = 40000, .linear = true}, {.batch = 384, .m = 128, .n = 128, .k = 64},
    {.batch = 3, .m = 17, .n = 5, .k = 9},           {.m = 8192, .n = 50257, .k = 1280, .linear = true},
    {.batch = 1, .m = 512, .n = 512, .k = 512},
};

GemmTile tile(std::string_view name, Architecture architecture = Architecture::volta) {
    const ArchitectureSpec& chip = architecture_spec(architecture, 0, 0);
    for (const GemmCatalogue* catalogue : {&chip.layers, &chip.layers_without_lt, &chip.batched}) {
        for (const GemmCandidate& candidate : catalogue->candidates) {
            if (candidate.tile.name == name) return candidate.tile;
        }
    }
    FAIL("no tile is called so");
    return {};
}

/// The choice of the library of a device.
gemm::Choice choose(const GemmShape& s, std::string_view device) {
    const auto rates = rates_of(device);
    return gemm::choose_kernel(s, *rates.chip, rates.sms);
}

}  // namespace

TEST_CASE("a batch on an A100 is tiled 128x128 and counted in waves of two blocks per SM") {
    // 2 × 2 blocks for each of 216 products, 108 SMs with two blocks each.
    const auto planned = plan({.batch = 216, .m = 130, .n = 256, .k = 64}, rates_of("a100-pcie-40gb"), declared());
    CHECK(planned.tile.name == "128x128");
    CHECK(planned.waves == approx(4));
    CHECK(planned.split_k == 1);
}

TEST_CASE("the reduction is split only while the grid leaves SMs empty, into parts of 64 values or more") {
    const auto rates = rates_of("p100-pcie-16gb");
    const auto few = plan({.m = 64, .n = 256, .k = 8192, .linear = true}, rates, declared());
    CHECK(few.split_k > 1);
    const auto shallow = plan({.m = 64, .n = 256, .k = 100, .linear = true}, rates, declared());
    CHECK(shallow.split_k == 1);
    const auto many = plan({.m = 4096, .n = 4096, .k = 8192, .linear = true}, rates, declared());
    CHECK(many.split_k == 1);
}

TEST_CASE("128x128x8 blocks are launched two by two along n, and along m where their rows are odd in number") {
    const auto band = [](const GemmTile& block, double columns, double rows) {
        const gemm::Band b = gemm::band_of(block, columns, rows, 40);
        return std::pair{b.across, b.down};
    };
    CHECK(band(tile("128x128x8", Architecture::pascal), 5, 8) == std::pair{5.0, 8.0});
    CHECK(band(tile("128x128x8", Architecture::pascal), 64, 8) == std::pair{20.0, 2.0});
    CHECK(band(tile("128x128x8", Architecture::pascal), 10, 8) == std::pair{10.0, 4.0});
    CHECK(band(tile("128x128x8", Architecture::pascal), 64, 5) == std::pair{8.0, 5.0});
    CHECK(band(tile("128x128x8", Architecture::pascal), 64, 101) == std::pair{1.0, 40.0});
    CHECK(band(tile("128x128"), 64, 8) == std::pair{40.0, 1.0});
}

TEST_CASE("a bias of its own is copied into the result, and read again where memory decides") {
    const auto rates = rates_of("a100-pcie-40gb");
    const auto extra = [&](std::int64_t k) {  // in times of one pass over the result
        GemmShape s{.m = 65536, .n = 768, .k = k, .linear = true, .library = BlasLibrary::cublas};
        const double fused_s = plan(s, rates, declared()).seconds;
        s.separate_bias = true;
        const double pass_s = 4.0 * 65536 * 768 / rates.bandwidth_bytes_per_s;
        return (plan(s, rates, declared()).seconds - fused_s) / pass_s;
    };
    CHECK(extra(8192) == approx(1).epsilon(0.05));
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
            const double seconds = plan(s, rates, p).seconds;
            CHECK(seconds >= flops / rates.flops_per_s);
            CHECK(seconds >= result_bytes / rates.bandwidth_bytes_per_s);
            CHECK(seconds >= rates.floor_s);
        }
    }
}

TEST_CASE("one choice takes longer for more of anything") {
    const auto rates = rates_of("v100-pcie-32gb");
    const auto p = declared();
    const GemmTile wide = tile("128x64");
    const gemm::Choice choice{&wide, 1};
    const auto seconds = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
        return gemm::plan_choice({.m = m, .n = n, .k = k, .linear = true}, choice, rates, p,
                                 gemm::block_rates(rates, p))
            .seconds;
    };
    for (std::int64_t size = 64; size < 40000; size *= 2) {
        CAPTURE(size);
        CHECK(seconds(2 * size, 512, 512) >= seconds(size, 512, 512) * (1 - 1e-12));
        CHECK(seconds(512, 2 * size, 512) >= seconds(512, size, 512) * (1 - 1e-12));
        CHECK(seconds(512, 512, 2 * size) > seconds(512, 512, size));
    }
}

TEST_CASE("blocks that run in step read a shared operand once, alone each reads its own") {
    // 8 × 16 blocks of 128×64 fit on the SMs at once: one band, A and B are read once.
    const auto rates = rates_of("v100-pcie-32gb");
    auto p = declared();
    const GemmShape s{.m = 1024, .n = 1024, .k = 65536, .linear = true};
    p.skew = 1e-9;
    const GemmTile wide = tile("128x64");
    auto traffic = gemm::shared_traffic(s, {&wide, 1}, 8, 16, 65536, rates, p);
    CHECK(traffic.rows == approx(4.0 * 1024 * 65536));
    CHECK(traffic.columns == approx(4.0 * 1024 * 65536));
    p.skew = 1e9;
    traffic = gemm::shared_traffic(s, {&wide, 1}, 8, 16, 65536, rates, p);
    CHECK(traffic.rows == approx(8 * 4.0 * 1024 * 65536));
    CHECK(traffic.columns == approx(16 * 4.0 * 1024 * 65536));
}

TEST_CASE("the skew between blocks grows over the waves, the sooner the more SMs a GPU has") {
    // Grids of 40 columns: of a wave two rows on a P4 (80 blocks of 32x128), a part of each more.
    const auto reads_per_column = [](const char* device, double waves) {
        const auto rates = rates_of(device);
        const GemmTile narrow = tile("32x128", Architecture::pascal);
        const double rows = std::round(waves * rates.sms * narrow.resident / 40);
        const GemmShape s{.m = static_cast<std::int64_t>(128 * rows), .n = 32 * 40, .k = 4096, .linear = true};
        const auto traffic = gemm::shared_traffic(s, {&narrow, 1}, 40, rows, 4096, rates, declared());
        const double down = rates.sms * narrow.resident / 40;
        return (traffic.columns / (4.0 * s.n * s.k) - rows / down) / (rows - rows / down);  // 0: shared, 1: not at all
    };
    CHECK(reads_per_column("p4", 2) < 0.1);
    CHECK(reads_per_column("p4", 32) > 2 * reads_per_column("p4", 2));
    CHECK(reads_per_column("p100-pcie-16gb", 2) > 2 * reads_per_column("p4", 2));
    CHECK(reads_per_column("p100-pcie-16gb", 1e6) < 1);
}

TEST_CASE("half storage at the f32 rate halves the traffic and leaves the arithmetic") {
    const auto rates = rates_of("p100-pcie-16gb");
    GemmShape s{.batch = 64, .m = 512, .n = 512, .k = 16};
    const auto single = plan(s, rates, declared());
    s.element_bytes = 2;
    const auto half = plan(s, rates, declared());
    CHECK(half.compute_s == single.compute_s);
    CHECK(half.memory_s == approx(single.memory_s / 2).epsilon(0.05));
}

TEST_CASE("a 70 W card slows down under long arithmetic, a 250 W card of the same rate class does not") {
    const auto p = declared();
    CHECK(power_ratio(rates_of("v100-pcie-32gb"), p.energy_scale) < 1);
    CHECK(power_ratio(rates_of("v100-sxm2-16gb"), p.energy_scale) < 1);
    CHECK(power_ratio(rates_of("a100-sxm4-40gb"), p.energy_scale) < 1);
    const double t4 = power_ratio(rates_of("t4"), p.energy_scale);
    const double left_w = 70 - (20 + 0.08 * 70);  // power limit less idle power
    CHECK(t4 == approx(1.07e-11 * 8.1408e12 / left_w));
    CHECK(within_power({1.0, t4}) == t4);
    CHECK(within_power({1.0, 0.6}) == 1.0);  // traffic alone does not slow the clock
    // A kernel a tenth as long as power control takes feels an eleventh of the limit, one as long half of it.
    CHECK(within_power({1.0, t4}, 0.0) == approx(t4));
    CHECK(within_power({1.0, t4}, 10.0) == approx(1 + (t4 - 1) / 11));
    CHECK(within_power({1.0, t4}, 1.0) == approx(1 + (t4 - 1) / 2));
    CHECK(within_power({1.0, 0.6}, 1.0) == 1.0);
}

TEST_CASE("a product that waits for its weights draws the power of traffic") {
    const auto rates = rates_of("v100-sxm2-32gb");
    const auto decode = plan({.m = 1, .n = 8192, .k = 8192, .linear = true}, rates, declared());
    CHECK(decode.power_limited_s / decode.seconds > 0.53);  // 180 of 300 W, 44 of them idle
    CHECK(decode.power_limited_s / decode.seconds < 0.61);  // 200 W
    CHECK(rates_of("t4").traffic_power_share > 0.9);        // of the 44 W that are left
    const auto prefill = plan({.m = 8192, .n = 8192, .k = 8192, .linear = true}, rates_of("t4"), declared());
    CHECK(prefill.power_limited_s > prefill.seconds);
}

TEST_CASE("a tile name gives its columns first") {
    CHECK(tile("32x128").columns == 32);
    CHECK(tile("32x128").rows == 128);
    CHECK(gemm::block_rows({.m = 129}, tile("32x128")) == 2);
    CHECK(gemm::block_rows({.m = 128}, tile("32x128")) == 1);
    CHECK(gemm::block_columns({.n = 65}, tile("32x128")) == 3);
    CHECK(tile("32x32 sliced").inverse_work == 1.0 / (32 * 32 * 4));
}

TEST_CASE("split-K fills the GPU where whole reductions do not, in parts of 64 values or more") {
    const GemmTile narrow = tile("32x128", Architecture::pascal);  // an SM holds four
    CHECK(gemm::split_candidate({.k = 8192}, narrow, 4) == 1);
    CHECK(gemm::split_candidate({.k = 8192}, narrow, 2.7) == 2);  // 1.35 waves of 4
    CHECK(gemm::split_candidate({.k = 8192}, narrow, 0.1) == 32);
    CHECK(gemm::split_candidate({.k = 255}, narrow, 0.1) == 3);
    CHECK(gemm::split_candidate({.k = 63}, narrow, 0.1) == 1);
    CHECK(gemm::split_candidate({.batch = 4, .k = 8192}, narrow, 0.1) == 1);
}

TEST_CASE("the candidate of least padded work over its weight is chosen, of equals the one with the fuller last wave") {
    // One block of 128x128 or two of 128x64 for each of 80 SMs: the same work, the weight decides.
    const GemmShape even{.m = 128 * 10, .n = 128 * 8, .k = 512, .linear = true};
    const GemmCandidate wide{tile("128x128"), 1, 0}, half{tile("128x64"), 1, 0};
    const gemm::PaddedWork work{&even, 1.0 / 80};
    const auto chosen = [&](double weight_of_half) {
        GemmCatalogue catalogue{{wide, half}};
        catalogue.candidates[1].weight = weight_of_half;
        return gemm::choose(even, catalogue, work).tile->name;
    };
    CHECK(chosen(1.1) == "128x64");
    CHECK(chosen(0.9) == "128x128");
    // A column more: the narrow tile pads less.
    const GemmShape odd{.m = 128 * 40, .n = 32 * 33, .k = 512, .linear = true};
    const GemmCatalogue padded{{wide, {tile("32x128"), 1, 0}}};
    CHECK(gemm::choose(odd, padded, gemm::PaddedWork{&odd, 1.0 / 80}).tile->name == "32x128");
}

TEST_CASE("idle slots of the last wave count as work, as far as the candidate says") {
    const GemmCandidate careless{tile("64x64", Architecture::pascal), 1, 0};
    GemmCandidate careful = careless;
    careful.wave_quantization_penalty = 1;
    const GemmShape s{.k = 512};
    const gemm::PaddedWork work{&s, 1.0 / 20};
    CHECK(work(careful, 160, 1) == work(careless, 160, 1));  // a full wave of eight blocks on each of 20 SMs
    CHECK(work(careful, 180, 1) > 1.05 * work(careless, 180, 1));
    CHECK(work(careful, 980, 1) == approx(work(careless, 980, 1)));  // 49 per SM: they count no more
}

TEST_CASE("f32 layers that cublasLt does not get have other kernels where their chip has some") {
    GemmShape s{.m = 1024, .n = 768, .k = 768, .linear = true, .library = BlasLibrary::cublas};
    CHECK(choose(s, "p4").tile->name == "128x128x8");
    CHECK(choose(s, "v100-pcie-32gb").tile->name != "128x128x8");
    s.element_bytes = 2;
    CHECK(choose(s, "p4").tile->name != "128x128x8");
    s.element_bytes = 4;
    s.library = BlasLibrary::cublas_lt;
    CHECK(choose(s, "p4").tile->name != "128x128x8");
}

TEST_CASE("skew between CTAs grows before Ampere, but not in sliced kernels") {
    const auto skew = [](Architecture architecture, MainLoop loop) {
        return gemm::has_cta_skew(architecture_spec(architecture, 0, 0), loop);
    };
    CHECK(skew(Architecture::pascal, MainLoop::narrow));
    CHECK(skew(Architecture::turing, MainLoop::wide));
    CHECK(skew(Architecture::pascal, MainLoop::vector));
    CHECK_FALSE(skew(Architecture::volta, MainLoop::sliced));
    CHECK_FALSE(skew(Architecture::ampere, MainLoop::wide));
}

TEST_CASE("rows along the reduction cost more the longer they are, up to a bound") {
    const auto p = declared();
    const auto cost = [&](std::int64_t k, int bytes) {
        const GemmShape s{.m = 512, .n = 512, .k = k, .element_bytes = bytes, .linear = true};
        return gemm::strided_cost(s, MainLoop::wide, p);
    };
    double before = 1;
    for (std::int64_t k = 8; k <= 1 << 20; k *= 2) {
        CAPTURE(k);
        CHECK(cost(k, 4) > before);
        CHECK(cost(k, 2) == cost(k / 2, 4));
        before = cost(k, 4);
    }
    CHECK(before == approx(1 / p.layer_strided_bandwidth).epsilon(0.01));
    const GemmShape s{.k = 4096, .linear = true};
    CHECK(gemm::strided_cost(s, MainLoop::vector, p) == approx(0.5 + 0.5 * cost(4096, 4)));
}

TEST_CASE("products beyond any memory have a kernel and a time") {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    CHECK(gemm::block_rows({.m = most}, tile("128x128")) == std::ldexp(1.0, 56));
    for (const char* device : devices) {
        {
            const MathPath path = MathPath::fp32;
            const auto planned =
                plan({.m = most, .n = most, .k = most, .linear = true}, rates_of(device, path), declared());
            CHECK_FALSE(planned.algorithm.empty());
            CHECK(planned.seconds > 0);
        }
    }
}

TEST_CASE("f32 products under a power limit sustain what was published") {
    // Sources: power.hpp.
    const auto sustained = [](std::string_view device) {
        const GemmShape s{.m = 8192, .n = 8192, .k = 8192, .linear = true};
        return flops(s) / within_power(plan(s, rates_of(device), declared()));
    };
    CHECK(sustained("l4") == test::Measured("products in f32, l4"));
    CHECK(sustained("a10") == test::Measured("products in f32, a10"));
}

TEST_CASE("f32 products on an H100 take what their kernels were measured to take") {
    // Source: data/measurements/h100-sxm5-80gb/product_kernels.csv.xz: sums of kernels, without the gaps between them.
    struct Measured {
        std::int64_t m, n, k;
        bool bias;
        double us;
        std::string tile;
    };
    const auto h100 = rates_of("h100-sxm5-80gb");
    for (const Measured& row : std::vector<Measured>{{128, 2048, 1024, true, 26.7, "32x32"},
                                                     {1024, 512, 1024, true, 34.7, "64x64"},
                                                     {1024, 1024, 512, true, 30.4, "128x64"},
                                                     {1024, 2048, 2048, true, 181.4, "128x128"},
                                                     {4096, 4096, 4096, true, 2698, "256x128"},
                                                     {1024, 4096, 1024, false, 171.9, "128x128"},
                                                     {1024, 512, 4096, false, 93.4, "128x128"}}) {
        const GemmShape shape{.m = row.m, .n = row.n, .k = row.k, .linear = row.bias, .newest_library = true};
        INFO(row.m << " " << row.n << " " << row.k);
        const auto planned = kernels::plan(shape, h100, declared());
        CHECK(planned.seconds == approx(row.us * 1e-6).epsilon(0.15));
        CHECK(planned.tile.name == row.tile);
    }
}

TEST_CASE("f32 layers of few tiles wait in each step under cublasLt 13 on Hopper, and only there") {
    const auto p = declared();
    const auto h100 = rates_of("h100-sxm5-80gb"), a100 = rates_of("a100-pcie-40gb");
    const auto seconds = [&](const GemmShape& shape, const DeviceRates& rates) {
        return kernels::plan(shape, rates, p).seconds;
    };
    // Source: kernels.csv.xz and product_kernels.csv.xz of data/measurements/h100-sxm5-80gb, with 1.65 us between
    // kernels.
    struct Measured {
        std::int64_t m, n, k;
        double us;
    };
    for (const Measured& row : std::vector<Measured>{{8, 768, 3072, 31.6},
                                                     {64, 1024, 1024, 28.1},
                                                     {128, 768, 768, 33.5},
                                                     {128, 768, 3072, 63.0},
                                                     {128, 1024, 2048, 51.8},
                                                     {256, 512, 4096, 88.1}}) {
        GemmShape shape{.m = row.m, .n = row.n, .k = row.k, .linear = true, .newest_library = true};
        INFO(row.m << " " << row.n << " " << row.k);
        CHECK(seconds(shape, h100) == approx(row.us * 1e-6).epsilon(0.15));
        GemmShape older = shape, unbiased = shape, half = shape;
        older.newest_library = false;
        unbiased.library = BlasLibrary::cublas;
        half.element_bytes = 2;
        CHECK(seconds(older, h100) < 0.95 * seconds(shape, h100));
        CHECK(seconds(unbiased, h100) < 0.8 * seconds(shape, h100));
        CHECK(seconds(half, h100) < 0.95 * seconds(shape, h100));
        CHECK(seconds(older, a100) == seconds(shape, a100));
    }
    for (const auto& size : {std::array<std::int64_t, 3>{4096, 3072, 768}, {64, 512, 4096}, {128, 1024, 512}}) {
        GemmShape other{.m = size[0], .n = size[1], .k = size[2], .linear = true, .newest_library = true},
            older = other;
        older.newest_library = false;
        INFO(size[0] << " " << size[1] << " " << size[2]);
        CHECK(seconds(other, h100) == seconds(older, h100));
    }
}

TEST_CASE("cublasLt splits layers of few tiles or a long reduction only, and one row is a matrix-vector product") {
    const auto h100 = rates_of("h100-sxm5-80gb");
    const auto planned = [&](std::int64_t m, std::int64_t n, std::int64_t k, bool bias) {
        return kernels::plan({.m = m, .n = n, .k = k, .linear = bias}, h100, declared());
    };
    CHECK(planned(1024, 512, 2048, true).split_k == 1);
    CHECK(planned(1024, 512, 2048, false).split_k > 1);
    CHECK(planned(64, 512, 2048, true).split_k > 1);
    CHECK(planned(128, 2048, 2048, true).split_k == 1);
    CHECK(planned(128, 2048, 4096, true).split_k > 1);
    CHECK(planned(1, 2048, 2048, false).algorithm == std::string("gemv"));
    CHECK(plan({.m = 1, .n = 2048, .k = 2048}, rates_of("a100-pcie-40gb"), declared()).algorithm ==
          std::string("gemm"));
}

TEST_CASE("a product in parts has a second kernel where floors do not contain it") {
    const auto p = declared();
    auto measured = rates_of("h100-sxm5-80gb"), fitted = measured;
    ArchitectureSpec chip = *measured.chip;
    chip.stream_gap_s = {};
    fitted.chip = &chip;
    const auto added_s = [&](const GemmShape& shape) {
        return kernels::plan(shape, measured, p).floor_s - kernels::plan(shape, fitted, p).floor_s;
    };
    const GemmShape split{.m = 64, .n = 64, .k = 8192, .linear = true}, whole{.m = 4096, .n = 4096, .k = 768};
    REQUIRE(kernels::plan(split, measured, p).split_k > 1);
    CHECK(added_s(split) > added_s(whole) + measured.floor_s);
}

TEST_CASE("a block has the threads that its tile's file says") {
    for (const char* device : devices) {
        const DeviceSpec& card = device_spec(device);
        std::ifstream file(FTAX_SOURCE_DIR "/data/architectures/maxwell.json");
        auto tiles = nlohmann::json::parse(file)["gemm"]["tiles"]["cuda_core"];
        std::ifstream own(fmt::format(FTAX_SOURCE_DIR "/data/architectures/{}.json", name_of(card.architecture)));
        const auto facts = nlohmann::json::parse(own);
        const nlohmann::json::json_pointer own_tiles("/gemm/tiles/cuda_core");
        if (facts.contains(own_tiles)) tiles.merge_patch(facts.at(own_tiles));
        for (const GemmCandidate& candidate : card.chip().layers.candidates) {
            const auto found = tiles.find(candidate.tile.name);
            if (found == tiles.end()) continue;
            const auto rates = rates_of(device);
            const auto p = declared();
            const GemmShape shape{.m = 4096, .n = 4096, .k = 512, .linear = true};
            const KernelPlan plan =
                gemm::plan_choice(shape, {&candidate.tile, 1}, rates, p, gemm::block_rates(rates, p));
            CHECK_MESSAGE(plan.threads_per_block == (*found)["threads"].get<double>(), candidate.tile.name);
        }
    }
}
