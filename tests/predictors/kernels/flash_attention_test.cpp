#include "predictors/kernels/flash_attention.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "tests/approx.hpp"
#include "tests/card_models.hpp"
#include "tests/measured.hpp"

using namespace ftax;
using namespace ftax::kernels;
using namespace ftax::test;

namespace {

double seconds(const KernelModels& models, const AttentionShape& s) {
    return within_power(models.plan(s, MathPath::bf16_tensor));
}

AttentionShape prefill(std::int64_t batch, std::int64_t length, std::int64_t heads = 32, std::int64_t kv_heads = 8,
                       std::int64_t head_dim = 128) {
    AttentionShape s{batch, heads, length, length, head_dim, 2, true, AttentionPath::flash, kv_heads};
    s.paged = true;
    return s;
}

AttentionShape decode(std::int64_t batch, std::int64_t length, std::int64_t heads = 32, std::int64_t kv_heads = 8) {
    AttentionShape s{batch, heads, 1, length, 128, 2, false, AttentionPath::flash, kv_heads};
    s.paged = true;
    return s;
}

constexpr const char* devices[] = {"a100-sxm4-80gb", "a40",  "l4",       "l40s",
                                   "h100-sxm5-80gb", "b200", "rtx-4090", "rtx-pro-6000-blackwell"};

}  // namespace

TEST_CASE("no fused attention beats peak, bandwidth or the floor") {
    for (const char* device : devices) {
        const auto models = unfitted(device);
        const auto& rates = models.at(MathPath::bf16_tensor);
        for (const std::int64_t batch : {1, 16, 256}) {
            for (const std::int64_t length : {2, 100, 4096, 65536}) {
                for (AttentionShape s :
                     {prefill(batch, length), decode(batch, length), decode(batch, length, 32, 32)}) {
                    for (const bool paged : {false, true}) {
                        s.paged = paged;
                        CAPTURE(device);
                        CAPTURE(batch);
                        CAPTURE(length);
                        const auto planned = models.plan(s, MathPath::bf16_tensor);
                        const double clock = models.parameters.tensor_gemm.clock;
                        CHECK(planned.seconds >= flops(s) / (rates.peak_flops_per_s * clock));
                        const double cache = 4.0 * 128 * static_cast<double>(s.kv_heads * batch * length);
                        if (cache > 4 * rates.l2_bytes) CHECK(planned.seconds >= cache / rates.dram_bytes_per_s);
                        CHECK(planned.seconds > planned.floor_s);
                        CHECK(planned.power_limited_s >= rates.traffic_power_share * planned.seconds);
                    }
                }
            }
        }
    }
}

TEST_CASE("longer sequences and more of them never take less time") {
    for (const char* device : devices) {
        const auto models = unfitted(device);
        for (const auto make : {+[](std::int64_t batch, std::int64_t length) { return prefill(batch, length); },
                                +[](std::int64_t batch, std::int64_t length) { return decode(batch, length); },
                                +[](std::int64_t batch, std::int64_t length) { return decode(batch, length, 32, 32); },
                                +[](std::int64_t batch, std::int64_t length) {
                                    auto s = prefill(batch, length);
                                    s.causal = s.paged = false;
                                    return s;
                                }}) {
            double by_length = 0, by_batch = 0;
            for (std::int64_t size = 2; size < 20000; size = size * 5 / 4 + 1) {
                CAPTURE(device);
                CAPTURE(size);
                // A library that splits keys by a rule of thumb may gain when it stops to.
                constexpr double rule_of_thumb = 0.05;
                const double longer = seconds(models, make(4, size));
                CHECK(longer >= by_length * (1 - rule_of_thumb));
                by_length = std::max(by_length, longer);
                if (size > 512) continue;
                const double larger = seconds(models, make(size, 1024));
                CHECK(larger >= by_batch * (1 - rule_of_thumb));
                by_batch = std::max(by_batch, larger);
            }
        }
    }
}

TEST_CASE("a causal mask saves nearly half of a long sequence, none of a past that all see") {
    for (const char* device : devices) {
        CAPTURE(device);
        const auto models = unfitted(device);
        AttentionShape masked = prefill(4, 8192), open = masked;
        open.causal = false;
        CHECK(seconds(models, masked) / seconds(models, open) == approx(0.52).epsilon(0.12));
        masked.kv_length = open.kv_length = 65536;
        masked.q_length = open.q_length = 512;
        CHECK(seconds(models, masked) / seconds(models, open) == approx(1).epsilon(0.25));
    }
}

TEST_CASE("heads that share keys read them once") {
    for (const char* device : devices) {
        CAPTURE(device);
        const auto models = unfitted(device);
        CHECK(seconds(models, decode(64, 8192, 32, 32)) > 2.5 * seconds(models, decode(64, 8192, 32, 8)));
    }
}

TEST_CASE("XQA decodes heads that share fp8 keys as fast as the memory allows") {
    const auto models = unfitted("h100-sxm5-80gb");
    AttentionShape s = decode(128, 5120, 64, 8);
    s.element_bytes = 1;
    const auto of_generation = models.plan(s, MathPath::bf16_tensor);
    s.library = FlashLibrary::tensorrt_llm;
    const auto narrow = models.plan(s, MathPath::bf16_tensor);
    CHECK(narrow.compute_s < 0.5 * narrow.memory_s);
    CHECK(narrow.seconds < of_generation.seconds);  // 0.92 measured on an H100, 64 sequences of 8,192 keys
    s.kv_heads = s.heads;
    CHECK(seconds(models, s) > 4 * narrow.seconds);
}

// Times of AIConfigurator 0.12, microseconds.
TEST_CASE("heads that share latent vectors fill tiles of 64 on Hopper, of 8 to 64 on Blackwell") {
    const auto latent = [](std::int64_t batch, std::int64_t length, std::int64_t heads, int bytes) {
        AttentionShape s = decode(batch, length, heads, 1);
        s.head_dim = 544, s.latent_width = 576, s.element_bytes = bytes;
        return s;
    };
    const auto us = [&](const char* device, std::int64_t batch, std::int64_t length, std::int64_t heads, int bytes) {
        return 1e6 * seconds(unfitted(device), latent(batch, length, heads, bytes));
    };
    const auto blocks = [&](const char* device, std::int64_t heads) {
        return unfitted(device).plan(latent(1024, 512, heads, 2), MathPath::bf16_tensor).blocks;
    };
    CHECK(us("h100-sxm5-80gb", 64, 4096, 128, 2) == approx(139).epsilon(0.2));
    CHECK(us("h100-sxm5-80gb", 64, 4096, 16, 2) == approx(119).epsilon(0.2));
    CHECK(us("h100-sxm5-80gb", 64, 8192, 64, 1) == approx(140).epsilon(0.2));
    CHECK(us("b200", 256, 4096, 16, 1) == approx(110).epsilon(0.2));
    CHECK(us("b200", 256, 8192, 16, 1) == approx(200).epsilon(0.1));
    CHECK(us("b200", 256, 8192, 32, 1) == approx(305).epsilon(0.1));  // each tile of 16 heads reads the vectors
    CHECK(blocks("b200", 32) == 2 * blocks("b200", 16));
    CHECK(blocks("b200", 64) == blocks("b200", 16));
    CHECK(blocks("h100-sxm5-80gb", 64) == blocks("h100-sxm5-80gb", 16));
    CHECK(blocks("h100-sxm5-80gb", 128) == 2 * blocks("h100-sxm5-80gb", 16));
    const auto gain = [&](const char* device) {
        const auto compute_s = [&](int bytes) {
            return unfitted(device).plan(latent(1024, 8192, 128, bytes), MathPath::bf16_tensor).compute_s;
        };
        return compute_s(2) / compute_s(1);
    };
    CHECK(gain("h100-sxm5-80gb") == approx(0.76 / 0.66).epsilon(0.04));
    CHECK(gain("b200") > 1.4);
}

TEST_CASE("decoding on Hopper hides its products behind the reads of a large cache") {
    // vLLM 0.24 on an H100 (AIConfigurator 0.12).
    CHECK(1e6 * seconds(unfitted("h100-sxm5-80gb"), decode(16, 16384, 64, 8)) == approx(351).epsilon(0.12));
}

TEST_CASE("FlashAttention 3 decodes over 16-bit keys with tiles of 64 rows, as fast as an H200's memory allows") {
    const auto of = [](int bytes, FlashLibrary library, std::int64_t head_dim = 128) {
        AttentionShape s = decode(128, 8192, 16, 4);
        s.head_dim = head_dim, s.element_bytes = bytes, s.library = library;
        return unfitted("h200-sxm-141gb").plan(s, MathPath::bf16_tensor);
    };
    // vLLM 0.24 (AIConfigurator 0.12).
    CHECK(1e6 * of(2, FlashLibrary::generation).seconds == approx(494).epsilon(0.1));
    CHECK(of(2, FlashLibrary::generation).tile.rows == 64);
    CHECK(of(2, FlashLibrary::generation, 64).tile.rows == 128);
    CHECK(of(1, FlashLibrary::generation).tile.rows == 128);
    CHECK(of(2, FlashLibrary::tensorrt_llm).tile.rows == 128);
}

TEST_CASE(
    "TensorRT-LLM's kernels for Blackwell multiply prompts over fp8 keys in fp8, behind a cast if they are expanded") {
    const auto planned = [](std::int64_t kv_heads, int bytes, FlashLibrary library) {
        AttentionShape s = prefill(1, 16384, 16, kv_heads, kv_heads == 16 ? 160 : 128);
        s.element_bytes = bytes, s.library = library;
        return unfitted("b200").plan(s, MathPath::bf16_tensor);
    };
    using enum FlashLibrary;
    CHECK(planned(4, 1, tensorrt_llm).compute_s < 0.8 * planned(4, 1, generation).compute_s);
    CHECK(planned(4, 2, tensorrt_llm).compute_s == planned(4, 2, generation).compute_s);
    // TensorRT-LLM 1.3 (AIConfigurator 0.12): 1,054 us over keys of 16 bits, 926 over fp8.
    CHECK(1e6 * planned(16, 2, tensorrt_llm).seconds == approx(1054).epsilon(0.15));
    CHECK(1e6 * planned(16, 1, tensorrt_llm).seconds == approx(926).epsilon(0.1));
    const double beside_s = planned(16, 1, tensorrt_llm).seconds - planned(16, 1, tensorrt_llm).compute_s;
    CHECK(beside_s > planned(4, 1, tensorrt_llm).seconds - planned(4, 1, tensorrt_llm).compute_s + flash::cast_s);
}

// AIConfigurator 0.12, microseconds; the H200 and the RTX PRO 6000 are in no fit.
TEST_CASE("each library decodes at its own speed on the same card") {
    const auto us = [](const char* device, std::int64_t batch, std::int64_t length, int bytes, FlashLibrary library) {
        AttentionShape s = decode(batch, length, 32, 8);
        s.element_bytes = bytes, s.library = library;
        return 1e6 * seconds(fitted(device), s);
    };
    using enum FlashLibrary;
    const char *const hopper = "h200-sxm-141gb", *const card = "rtx-pro-6000-blackwell-server";
    CHECK(us(hopper, 16, 512, 2, generation) == approx(16.8).epsilon(0.15));
    CHECK(us(hopper, 64, 1024, 1, tensorrt_llm) == approx(45.6).epsilon(0.15));
    CHECK(us(hopper, 64, 1024, 1, generation) > 1.2 * us(hopper, 64, 1024, 1, tensorrt_llm));
    CHECK(us(hopper, 64, 128, 2, tensorrt_llm) == approx(24.7).epsilon(0.15));
    CHECK(us(card, 1, 4096, 2, flashinfer) == approx(12.5).epsilon(0.15));
    CHECK(us(card, 1, 4096, 2, generation) == approx(23.3).epsilon(0.25));
    CHECK(us(card, 1, 64, 2, flashinfer) == approx(6.3).epsilon(0.1));
    CHECK(us(card, 1, 64, 1, flashinfer) == approx(11.6).epsilon(0.15));  // casts
    CHECK(us(card, 1, 4096, 1, tensorrt_llm) == us(card, 1, 4096, 1, generation));
}

TEST_CASE("a B200 decodes heads that share fp8 keys as fast as the memory allows") {
    const auto models = unfitted("b200");
    AttentionShape s = decode(128, 2048, 64, 8);
    s.element_bytes = 1;
    const auto planned = models.plan(s, MathPath::bf16_tensor);
    CHECK(planned.compute_s < 0.5 * planned.memory_s);
    CHECK(1e6 * planned.seconds == approx(88.7).epsilon(0.1));
    s.paged = false;
    CHECK(models.plan(s, MathPath::bf16_tensor).compute_s > 2 * planned.compute_s);
}

TEST_CASE("a B300 computes exponentials twice as fast as a B200, which its prompts show") {
    const auto ratio = [](const AttentionShape& s) {
        return seconds(unfitted("b300"), s) / seconds(unfitted("b200"), s);
    };
    CHECK(ratio(prefill(1, 8192, 32, 2)) == approx(397.0 / 490).epsilon(0.1));
    CHECK(ratio(prefill(1, 10240, 64, 1, 64)) == approx(833.0 / 1203).epsilon(0.15));
}

TEST_CASE("FlashAttention 3 decodes over fp8 keys in fp8, and TensorRT-LLM's prompts multiply in it as well") {
    const auto seconds_of = [](const char* device, AttentionShape s, int bytes, FlashLibrary library) {
        s.element_bytes = bytes, s.library = library;
        return seconds(unfitted(device), s);
    };
    const auto of_keys = [&](const char* device, const AttentionShape& s, FlashLibrary library) {
        return seconds_of(device, s, 1, library) / seconds_of(device, s, 2, library);
    };
    // vLLM on an H100: 209 and 362 us (AIConfigurator 0.8); prompts 0.92 to 1.01 and, under TensorRT-LLM, 1.2 to 1.5.
    CHECK(of_keys("h100-sxm5-80gb", decode(16, 16384), FlashLibrary::generation) == approx(0.58).epsilon(0.15));
    CHECK(of_keys("h100-sxm5-80gb", prefill(4, 8192), FlashLibrary::generation) > 0.9);
    CHECK(1 / of_keys("h100-sxm5-80gb", prefill(4, 8192), FlashLibrary::tensorrt_llm) == approx(1.38).epsilon(0.1));
}

TEST_CASE("keys of few long sequences are split until the SMs are busy") {
    const auto models = unfitted("a100-sxm4-80gb");
    CHECK(models.plan(decode(1, 32768), MathPath::bf16_tensor).split_k > 16);
    CHECK(models.plan(decode(256, 32768), MathPath::bf16_tensor).split_k == 1);
    CHECK(models.plan(decode(1, 128), MathPath::bf16_tensor).split_k == 1);
    // FlashAttention 2 with pages splits only where heads share keys.
    CHECK(models.plan(decode(1, 32768, 16, 16), MathPath::bf16_tensor).split_k == 1);
}

TEST_CASE("FlashAttention 2 copies groups of heads that share keys into rows, which others and views need not") {
    const auto floor_s = [](std::string_view device, const AttentionShape& s) {
        return unfitted(device).plan(s, MathPath::bf16_tensor).floor_s;
    };
    for (const char* device : {"a100-sxm4-80gb", "l40s"}) {
        CHECK(floor_s(device, decode(4, 64)) > floor_s(device, decode(4, 64, 32, 32)) + 3e-6);
        CHECK(floor_s(device, decode(1, 64)) == floor_s(device, decode(4, 64, 32, 32)));
        CHECK(floor_s(device, decode(4, 64, 32, 1)) == floor_s(device, decode(4, 64, 32, 32)));
    }
    CHECK(floor_s("h100-sxm5-80gb", decode(4, 64)) == floor_s("h100-sxm5-80gb", decode(4, 64, 32, 32)));
}

TEST_CASE("a single query does not use a tile of queries") {
    for (const char* device : devices) {
        CAPTURE(device);
        const auto models = unfitted(device);
        AttentionShape chunk = prefill(8, 128);
        chunk.kv_length = 4096;
        CHECK(models.plan(decode(8, 4096), MathPath::bf16_tensor).algorithm == "attention, decode");
        CHECK(seconds(models, decode(8, 4096)) < seconds(models, chunk));
    }
}

TEST_CASE("single queries beside a chunk add their tiles") {
    const auto models = unfitted("rtx-4090");
    AttentionShape mixed = prefill(1, 512);
    const double alone = seconds(models, mixed);
    mixed.decodes = 64;
    mixed.decode_length = 4096;
    CHECK(seconds(models, mixed) > alone);
    CHECK(seconds(models, mixed) > 64 * 4096 * 4.0 * 128 * 8 / models.at(MathPath::bf16_tensor).dram_bytes_per_s);
}

TEST_CASE("chips before Ampere have no flash kernel and run the memory-efficient one") {
    for (const char* device : {"v100-pcie-32gb", "t4"}) {
        const auto models = unfitted(device);
        AttentionShape s = prefill(4, 1024);
        s.paged = false;
        const auto flash = models.plan(s, MathPath::fp16_tensor);
        s.path = AttentionPath::memory_efficient;
        CHECK(flash.algorithm == "attention, memory-efficient");
        CHECK(flash.seconds == models.plan(s, MathPath::fp16_tensor).seconds);
    }
}

TEST_CASE("attention without keys takes the floor, beyond any memory it has a time") {
    const auto models = unfitted("h100-sxm5-80gb");
    AttentionShape empty = prefill(4, 1024);
    empty.kv_length = empty.q_length = 0;
    const auto planned = models.plan(empty, MathPath::bf16_tensor);
    CHECK(planned.seconds == planned.floor_s);
    const std::int64_t most = std::int64_t{1} << 40;
    CHECK(seconds(models, prefill(most, most)) > 1e9);
    CHECK(seconds(models, decode(most, most)) > 1e9);
}

TEST_CASE("a window leaves the keys before it out") {
    const auto models = fitted("h100-sxm5-80gb");
    AttentionShape all{1, 64, 8192, 8192, 64, 2, true, AttentionPath::flash};
    AttentionShape window = all;
    window.window = 128;
    CHECK(flops(window) == approx(flops(all) * 128 / 4096));
    CHECK(seconds(models, window) < 0.2 * seconds(models, all));
    CHECK(seconds(models, window) > seconds(models, all) * 128 / 4096);
    window.window = 16384;  // beyond the prompt
    CHECK(seconds(models, window) == seconds(models, all));
}

TEST_CASE(
    "FlashAttention 2 is what Ampere has, half as fast as the kernels made for Hopper and a third of Blackwell's") {
    AttentionShape shape{1, 24, 4608, 4608, 128, 2, false, AttentionPath::flash};  // a layer of FLUX.1
    AttentionShape portable = shape;
    portable.library = FlashLibrary::flash2;
    for (const char* device : {"a100-sxm4-80gb", "rtx-4090", "rtx-pro-6000-blackwell"}) {
        const auto models = unfitted(device);
        CHECK(seconds(models, portable) == seconds(models, shape));
    }
    const auto hopper = fitted("h100-sxm5-80gb");
    // Source: pytorch issue 142132, 329 and 631 TFLOP/s.
    CHECK(flops(shape) / seconds(hopper, portable) == Measured("FlashAttention 2, h100-sxm5-80gb"));
    CHECK(flops(shape) / seconds(hopper, shape) == Measured("attention of cuDNN, h100-sxm5-80gb"));
    // Source: flash-attention issue 1589, 379 TFLOP/s; tritonbench pull request 171, 354.
    const auto blackwell = fitted("b200");
    const AttentionShape wide{
        8, 16, 4096, 4096, 128, 2, false, AttentionPath::flash, 0, false, 0, 0, false, 0, FlashLibrary::flash2};
    CHECK(flops(wide) / seconds(blackwell, wide) == Measured("FlashAttention 2, heads of 128, b200"));
    const AttentionShape narrow{
        1, 32, 16384, 16384, 64, 2, false, AttentionPath::flash, 0, false, 0, 0, false, 0, FlashLibrary::flash2};
    CHECK(flops(narrow) / seconds(blackwell, narrow) == Measured("FlashAttention 2, b200"));
}

TEST_CASE("prefill under a causal mask takes no less than its blocks, longest first, on as many SMs") {
    const auto models = unfitted("a100-sxm4-80gb");
    const auto& device = models.at(MathPath::bf16_tensor);
    for (const std::int64_t heads : {8, 32, 48}) {
        for (const std::int64_t length : {2048, 4096, 8192}) {
            CAPTURE(heads);
            CAPTURE(length);
            const AttentionShape s = prefill(1, length, heads, heads);
            const AttentionTile& tile = flash::tile_of(flash::kernels_of(s, device).paged, 128);
            const double score_s = 1e-12;
            const flash::Compute compute = flash::prefill(s, tile, 128, score_s, 0, device);
            // Every SM takes the longest block that is left.
            std::vector<double> free_at(static_cast<std::size_t>(device.sms), 0);
            const auto tiles = static_cast<std::int64_t>(std::ceil(static_cast<double>(length) / tile.rows));
            for (std::int64_t t = tiles; t > 0; --t) {
                const double keys = std::min(static_cast<double>(length), static_cast<double>(t) * tile.rows);
                for (std::int64_t head = 0; head < heads; ++head)
                    *std::min_element(free_at.begin(), free_at.end()) +=
                        std::ceil(keys / tile.keys) * tile.keys * tile.rows * score_s;
            }
            const double scheduled_s = *std::max_element(free_at.begin(), free_at.end());
            CHECK(compute.seconds > scheduled_s);
            CHECK(compute.seconds < 1.2 * scheduled_s);
        }
    }
}

TEST_CASE("cuDNN's attention has tiles of 128 queries for every head") {
    const auto models = unfitted("h100-sxm5-80gb");
    for (const std::int64_t head : {64, 96, 128}) {
        AttentionShape s = prefill(1, 1500, 12, 12, head);
        s.paged = false;
        s.library = FlashLibrary::cudnn;
        CHECK(models.plan(s, MathPath::bf16_tensor).tile.rows == 128);
        s.library = FlashLibrary::generation;
        CHECK(models.plan(s, MathPath::bf16_tensor).tile.rows == (head <= 96 ? 192 : 128));
    }
}

TEST_CASE("the softmax takes most of cuDNN's time with heads of 64 on Hopper") {
    const auto score_s = [](std::int64_t head) {
        AttentionShape s = prefill(2, 4429, 38, 38, head);
        s.causal = s.paged = false;
        s.library = FlashLibrary::cudnn;
        return unfitted("h100-sxm5-80gb").plan(s, MathPath::bf16_tensor).compute_s;
    };
    // Source: data/measurements/h100-sxm5-80gb/sustained_load.csv, the first passes.
    CHECK(score_s(64) == approx(0.935e-3).epsilon(0.06));
    CHECK(score_s(128) < 1.4 * score_s(64));
}

TEST_CASE("a prompt's call takes no less than the sequences that decode in it, however long") {
    for (const char* device : devices) {
        const auto models = unfitted(device);
        double before = 0;
        for (const std::int64_t length : {64, 4096, 65536, 1 << 20}) {
            AttentionShape mixed = prefill(1, 64);
            mixed.decodes = 1;
            mixed.decode_length = length;
            AttentionShape alone = mixed;
            alone.q_length = alone.kv_length = 1;
            const double together = seconds(models, mixed);
            CHECK_MESSAGE(together >= 0.99 * seconds(models, alone), device);
            CHECK_MESSAGE(together >= before, device);
            before = together;
        }
        // One query walks over its keys alone, whatever runs beside it.
        CHECK_MESSAGE(before > 8 * seconds(models, prefill(1, 64)), device);
    }
}

namespace {

/// Prompts over the latent vectors that an indexer selects: 64 + 512 values a key, 512 of them its value as well.
AttentionShape gathering(std::int64_t heads, std::int64_t queries, std::int64_t keys, int bytes = 2) {
    AttentionShape s{1, heads, queries, keys, (576 + 512) / 2, bytes, true, AttentionPath::flash, 1};
    s.paged = s.gathers = true;
    s.latent_width = 576;
    s.window = 2048;
    return s;
}

AttentionShape indexer(std::int64_t heads, std::int64_t queries, std::int64_t keys) {
    AttentionShape s{1, heads, queries, keys, 64, 1, queries > 1, AttentionPath::flash, 1};
    s.paged = true;
    s.latent_width = 128;
    s.selects = 2048;
    return s;
}

}  // namespace

TEST_CASE("queries that gather keys of their own multiply tiles of 64 heads, whatever the context") {
    const auto h100 = unfitted("h100-sxm5-80gb");
    const double all_s = seconds(h100, gathering(64, 8192, 8192));
    // FlashMLA, README: 640 TFLOP/s on an H800, whose tensor cores are an H100's.
    CHECK(2.0 * 8192 * 2048 * 64 * (576 + 512) / all_s == approx(640e12).epsilon(0.15));
    CHECK(seconds(h100, gathering(8, 8192, 8192)) == approx(all_s).epsilon(0.02));
    CHECK(seconds(h100, gathering(8, 8192, 131072)) < 1.1 * all_s);
    // Hopper widens fp8 keys; Blackwell multiplies them, with few heads in small tiles.
    CHECK(seconds(h100, gathering(64, 8192, 8192, 1)) > 1.3 * all_s);
    const auto b200 = unfitted("b200");
    AttentionShape few = gathering(8, 8192, 8192, 1), many = gathering(64, 8192, 8192, 1);
    few.library = many.library = FlashLibrary::tensorrt_llm;
    CHECK(seconds(b200, many) > 1.25 * seconds(b200, few));  // a tile of 8 rows waits for its loads
}

TEST_CASE("an indexer scores all keys in fp8 and selects where there are more than it keeps") {
    for (const char* device : {"h100-sxm5-80gb", "b200"}) {
        CAPTURE(device);
        const auto models = unfitted(device);
        const auto time = [&](std::int64_t heads, std::int64_t queries, std::int64_t keys) {
            return seconds(models, indexer(heads, queries, keys));
        };
        const double peak = models.at(MathPath::fp8_tensor).peak_flops_per_s;
        const double rate = 2.0 * 64 * 128 * 4096 * 65536 / time(64, 4096, 65536);
        CHECK(rate > 0.25 * peak);
        CHECK(rate < 0.8 * peak);
        CHECK(time(64, 4096, 65536) - time(32, 4096, 65536) > 0.3 * time(64, 4096, 65536));
        AttentionShape keeps_all = indexer(32, 8192, 8192);
        keeps_all.selects = 8192;
        CHECK(time(32, 8192, 8192) - seconds(models, keeps_all) > 5e-5);
        // One token reads its keys with all SMs; the eight that verify drafts do, too.
        CHECK(time(32, 1, 131072) < 1e-4);
        CHECK(time(32, 8, 131072) < 3e-4);
    }
}
