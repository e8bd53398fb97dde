#include "predictors/kernels/token_kernels.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/approx.hpp"
#include "tests/card_models.hpp"

using namespace ftax;
using namespace ftax::kernels;
using namespace ftax::test;

namespace {

MemoryShape token(TokenKernel kernel, std::int64_t rows, std::int64_t width, bool vectorized) {
    const std::int64_t bytes = 2 * rows * width;
    return {.cls = MemoryClass::pointwise,
            .elements = rows * width,
            .rows = rows,
            .row_length = width,
            .read_bytes = bytes,
            .write_bytes = bytes,
            .element_bytes = 2,
            .vectorized = vectorized,
            .token = kernel};
}

constexpr TokenKernel all[] = {TokenKernel::norm, TokenKernel::rope, TokenKernel::gated,
                               TokenKernel::gelu, TokenKernel::add,  TokenKernel::embedding};

}  // namespace

TEST_CASE("row-wise kernels beat neither memory nor floor, and more rows never take less time") {
    for (const char* device : {"a100-sxm4-80gb", "a40", "rtx-4090", "h100-sxm5-80gb", "b200", "t4"}) {
        const auto models = unfitted(device);
        const auto& rates = models.at(MathPath::fp32);
        for (const TokenKernel kernel : all) {
            for (const bool vectorized : {false, true}) {
                double before = 0;
                for (std::int64_t rows = 1; rows < 200'000; rows = rows * 3 / 2 + 1) {
                    CAPTURE(device);
                    CAPTURE(rows);
                    const auto planned = models.plan(token(kernel, rows, 4096, vectorized), MathPath::bf16_tensor);
                    CHECK(planned.seconds > planned.floor_s);
                    CHECK(planned.seconds >= before);
                    const double bytes = 4.0 * 4096 * static_cast<double>(rows);
                    if (bytes > 4 * rates.l2_bytes) CHECK(planned.seconds > bytes / rates.dram_bytes_per_s);
                    before = planned.seconds;
                }
            }
        }
    }
}

TEST_CASE("kernels that load element by element are bound by the SMs where those that load vectors are not") {
    const auto models = unfitted("a100-sxm4-80gb");
    const auto by_element = models.plan(token(TokenKernel::gated, 8192, 8192, false), MathPath::bf16_tensor);
    const auto by_vector = models.plan(token(TokenKernel::gated, 8192, 8192, true), MathPath::bf16_tensor);
    CHECK(by_element.bound() == Bound::compute);
    CHECK(by_vector.bound() == Bound::memory);
    CHECK(by_element.seconds > 1.3 * by_vector.seconds);
}

TEST_CASE("a norm by elements reads its rows twice") {
    const auto models = unfitted("a40");
    const auto norm = models.plan(token(TokenKernel::norm, 8192, 8192, false), MathPath::bf16_tensor);
    const auto rope = models.plan(token(TokenKernel::rope, 8192, 8192, false), MathPath::bf16_tensor);
    CHECK(norm.memory_s == approx(1.5 * rope.memory_s));
}

TEST_CASE("of traffic as large as the L2 a share of 1 - 1/e comes from memory") {
    const auto models = unfitted("a100-sxm4-80gb");
    const auto& rates = models.at(MathPath::fp32);
    const std::int64_t rows = 2560;  // rows of 8192 fp16 values, read and written: 80 MiB, twice the L2
    const auto twice = models.plan(token(TokenKernel::gated, rows, 8192, true), MathPath::bf16_tensor);
    const auto once = models.plan(token(TokenKernel::gated, rows / 2, 8192, true), MathPath::bf16_tensor);
    const double l2_bytes_per_s = 0.5 * 5120 * models.parameters.tensor_gemm.clock * rates.boost_clock_hz;
    const auto seconds = [&](double bytes, double missed) {
        return bytes * (missed / rates.dram_bytes_per_s + (1 - missed) / l2_bytes_per_s);
    };
    CHECK(once.memory_s == approx(seconds(rates.l2_bytes, 1 - std::exp(-1))));
    CHECK(twice.memory_s == approx(seconds(2 * rates.l2_bytes, 1 - std::exp(-2))));
}

TEST_CASE("a kernel that moves nothing takes its floor, and no power limit lengthens it") {
    for (const char* device : {"a100-sxm4-80gb", "rtx-4090", "h100-sxm5-80gb", "b200", "t4"}) {
        const auto models = unfitted(device);
        for (const TokenKernel kernel : all) {
            for (const bool vectorized : {false, true}) {
                for (const std::int64_t rows : {0, 1, 4096}) {
                    CAPTURE(device);
                    CAPTURE(rows);
                    const auto none = models.plan(token(kernel, rows, 0, vectorized), MathPath::bf16_tensor);
                    const auto least = models.plan(token(kernel, 1, 1, vectorized), MathPath::bf16_tensor);
                    CHECK(none.seconds == none.floor_s);
                    CHECK(none.seconds <= least.seconds);
                    CHECK(none.memory_s == 0);
                    CHECK(none.compute_s == 0);
                    CHECK(none.power_limited_s == 0);
                    CHECK(least.power_limited_s > 0);
                }
            }
        }
    }
}
