#include "predictors/kernels/kernel_plan.hpp"

#include <doctest/doctest.h>

#include "predictors/kernels/memory_bound.hpp"
#include "tests/approx.hpp"
#include "tests/start_values.hpp"

using namespace ftax;
using namespace ftax::kernels;

namespace {

/// Ten SMs that hold 1,024 threads each.
Occupancy of_blocks(double blocks, double threads, double blocks_per_sm) {
    KernelPlan plan;
    plan.blocks = blocks;
    plan.threads_per_block = threads;
    plan.blocks_per_sm = blocks_per_sm;
    return occupancy(plan, 10, 1024);
}

Occupancy of_shape(const MemoryShape& shape) {
    DeviceRates rates;
    rates.chip = &architecture_spec(Architecture::turing, 7, 5);
    rates.sms = 10;
    rates.max_threads_per_sm = 1024;
    rates.boost_clock_hz = 1e9;
    rates.flops_per_s = rates.fp32_flops_per_s = rates.bandwidth_bytes_per_s = 1e12;
    rates.l2_bytes = 1 << 20;
    return occupancy(plan(shape, rates, test::start_values<MemoryParameters>()), rates.sms, rates.max_threads_per_sm);
}

}  // namespace

TEST_CASE("fewer blocks than SMs leave SMs empty, as does a partial wave") {
    CHECK(of_blocks(3, 128, 4).sms == approx(0.3));
    CHECK(of_blocks(10, 128, 4).sms == approx(1));
    CHECK(of_blocks(40, 128, 4).sms == approx(1));
    CHECK(of_blocks(45, 128, 4).sms == approx((1 + 0.5) / 2));
    CHECK(of_blocks(0, 128, 4).sms == 0);
}

TEST_CASE("warps count against what the SMs can hold") {
    CHECK(of_blocks(10, 128, 4).warps == approx(128.0 / 1024));
    CHECK(of_blocks(80, 128, 8).warps == approx(1));
    CHECK(of_blocks(40, 128, 2).warps == approx(2 * 128.0 / 1024));
}

TEST_CASE("a large pointwise kernel fills the GPU, a row of a softmax does not") {
    CHECK(of_shape({.elements = 1 << 24, .read_bytes = 1 << 26, .write_bytes = 1 << 26}).sms > 0.99);
    CHECK(of_shape({.cls = MemoryClass::softmax,
                    .elements = 1000,
                    .rows = 1,
                    .row_length = 1000,
                    .read_bytes = 4000,
                    .write_bytes = 4000})
              .sms == approx(0.1));
}

TEST_CASE("the bound is the floor below twice its time, else the larger of arithmetic and traffic") {
    KernelPlan plan;
    plan.floor_s = 2e-6;
    plan.seconds = 3e-6;
    CHECK(plan.bound() == Bound::latency_floor);
    plan.seconds = 5e-6;
    plan.compute_s = 3e-6;
    plan.memory_s = 1e-6;
    CHECK(plan.bound() == Bound::compute);
    plan.memory_s = 3.1e-6;
    CHECK(plan.bound() == Bound::memory);
}
