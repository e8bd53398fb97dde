#include "predictors/kernels/memory_bound.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "tests/approx.hpp"
#include "tests/start_values.hpp"
namespace {

using namespace ftax;
using namespace ftax::kernels;

/// A card with round numbers: 10 SMs at 1 GHz, 100 GB/s, 1 MB of L2, 2 µs floor.
DeviceRates round_device() {
    DeviceRates device;
    device.chip = &architecture_spec(Architecture::volta, 0, 0);
    device.sms = 10;
    device.l2_bytes = 1e6;
    device.shared_memory_per_sm_bytes = 1e5;
    device.max_threads_per_sm = 2048;
    device.boost_clock_hz = 1e9;
    device.flops_per_s = device.fp32_flops_per_s = 1.28e12;
    device.bandwidth_bytes_per_s = 1e11;
    device.floor_s = 2e-6;
    return device;
}

MemoryParameters initial_parameters() {
    return test::start_values<MemoryParameters>();
}

double seconds_of(const MemoryShape& shape, const DeviceRates& device, const MemoryParameters& p) {
    return plan(shape, device, p).seconds;
}

MemoryShape rows_of(MemoryClass cls, std::int64_t rows, std::int64_t row_length) {
    const std::int64_t bytes = rows * row_length * 4;
    return {cls, rows * row_length, rows, row_length, bytes, bytes, 4};
}

}  // namespace

TEST_CASE("a large copy takes the floor and its bytes over the bandwidth") {
    const MemoryShape shape{MemoryClass::copy, 100'000'000, 1, 100'000'000, 400'000'000, 400'000'000, 4};
    CHECK(seconds_of(shape, round_device(), initial_parameters()) == approx(2e-6 + 8e-3).epsilon(1e-3));
}

TEST_CASE("without vectors a type takes the time of its elements, in an engine that of its words") {
    const auto work_s = [](int element_bytes, bool engine) {
        MemoryShape shape{MemoryClass::pointwise, 1 << 20, 1 << 10, 1 << 10, 0, 0, element_bytes};
        shape.read_bytes = shape.write_bytes = element_bytes * shape.elements;
        shape.engine = engine;
        shape.vectorized = false;
        return plan(shape, round_device(), initial_parameters()).compute_s;
    };
    CHECK(work_s(1, false) == approx(work_s(4, false)));
    CHECK(work_s(2, true) == approx(work_s(4, true) / 2));
    CHECK(work_s(1, true) == approx(work_s(4, true) / 4));
}

TEST_CASE("a footprint well inside the L2 moves at the rate of the L2") {
    const MemoryShape shape{MemoryClass::copy, 10'000, 1, 10'000, 40'000, 40'000, 4};
    MemoryParameters p = initial_parameters();
    p.residency.l2_bytes_per_cycle = 20;  // × 10 SMs × 1 GHz = 200 GB/s
    CHECK(seconds_of(shape, round_device(), p) == approx(2e-6 + 80e3 / 200e9).epsilon(1e-3));
}

TEST_CASE("an L2 that is one for all SMs holds as much as its size says") {
    auto device = round_device();
    const MemoryShape shape{MemoryClass::copy, 125'000, 1, 125'000, 500'000, 500'000, 4};  // as much as the L2
    MemoryParameters p = initial_parameters();
    p.residency.resident_footprint = 0.5;
    p.residency.l2_bytes_per_cycle = 1e6;
    CHECK(seconds_of(shape, device, p) - device.floor_s == approx(1e6 / 1e11 * 16 / 17).epsilon(1e-3));
    device.chip = &architecture_spec(Architecture::ada, 0, 0);
    CHECK(seconds_of(shape, device, p) - device.floor_s == approx(1e6 / 1e11 / 2).epsilon(1e-3));
}

TEST_CASE("halves that threads move one by one take as long as floats where the memory is fast") {
    const auto device = round_device();
    MemoryParameters p = initial_parameters();
    p.transpose_efficiency = 1;
    p.scalar_elements = 0.5;  // × 10 SMs × 1 GHz = 5 G elements/s, the time of 20 GB/s of floats
    const std::int64_t elements = 100'000'000;
    const auto copy = [&](MemoryClass cls, int element_bytes) {
        const std::int64_t bytes = elements * element_bytes;
        return seconds_of(MemoryShape{cls, elements, 1, elements, bytes, bytes, element_bytes}, device, p);
    };
    const double one_by_one_s = 2 * elements / 5e9;
    CHECK(copy(MemoryClass::transpose, 2) == approx(one_by_one_s).epsilon(1e-2));
    CHECK(copy(MemoryClass::transpose, 4) == approx(one_by_one_s).epsilon(1e-2));
    CHECK(copy(MemoryClass::copy, 2) == approx(2e-6 + elements * 4 / 1e11).epsilon(1e-3));
    MemoryShape sum{MemoryClass::pointwise, elements, 1, elements, elements * 2, elements * 2, 2};
    const double whole_s = seconds_of(sum, device, p);
    sum.vectorized = false;
    CHECK(seconds_of(sum, device, p) > 5 * whole_s);
}

TEST_CASE("a broadcast operand counts by its own bytes only") {
    const MemoryShape both{MemoryClass::pointwise, 10'000'000, 1, 1, 80'000'000, 40'000'000, 4};
    const MemoryShape scalar{MemoryClass::pointwise, 10'000'000, 1, 1, 40'000'004, 40'000'000, 4};
    const auto device = round_device();
    const auto p = initial_parameters();
    CHECK((seconds_of(both, device, p) - device.floor_s) / (seconds_of(scalar, device, p) - device.floor_s) ==
          approx(1.5).epsilon(1e-3));
}

TEST_CASE("an operator without bytes takes the floor") {
    CHECK(seconds_of(MemoryShape{}, round_device(), initial_parameters()) == round_device().floor_s);
}

TEST_CASE("rows that exceed the caches are read again from memory") {
    // Rows so long that the work of the SMs is hidden: what remains is the number of passes over the memory bus.
    auto device = round_device();
    auto p = initial_parameters();
    p.layer_norm_block_cycles = p.layer_norm_step_cycles = p.softmax_block_cycles = p.softmax_step_cycles = 1e-3;
    const double pass_s = 4.0 * 4096 * 65536 / device.bandwidth_bytes_per_s;
    CHECK(seconds_of(rows_of(MemoryClass::layer_norm, 4096, 65536), device, p) == approx(3 * pass_s).epsilon(0.01));
    CHECK(seconds_of(rows_of(MemoryClass::softmax, 4096, 65536), device, p) == approx(4 * pass_s).epsilon(0.01));
    device.l2_bytes = 1e9;
    p.residency.resident_footprint = 1e-3;
    CHECK(seconds_of(rows_of(MemoryClass::layer_norm, 4096, 65536), device, p) == approx(2 * pass_s).epsilon(0.01));
}

TEST_CASE("layer norm costs its warps with vectors") {
    const auto p = initial_parameters();
    const auto cycles_of = [&](std::int64_t length) {
        return memory_bound::layer_norm(rows_of(MemoryClass::layer_norm, 1, length), p).cycles_per_row;
    };
    const double step = p.layer_norm_step_cycles * p.sfu_cost_ratio;
    CHECK(cycles_of(388) - cycles_of(384) == approx(0.25 * step));  // a fourth warp for one vector
    CHECK(cycles_of(512) == cycles_of(388));
    CHECK(cycles_of(1536) - cycles_of(384) == approx(2.25 * step));
}

TEST_CASE("softmax rows that start between sectors cost more") {
    const auto p = initial_parameters();
    const auto device = round_device();
    CHECK(seconds_of(rows_of(MemoryClass::softmax, 100'000, 767), device, p) >
          seconds_of(rows_of(MemoryClass::softmax, 100'000, 768), device, p));
}

TEST_CASE("elements that are read one by one cost a sector each on top of the traffic") {
    const auto device = round_device();
    auto p = initial_parameters();
    MemoryShape shape = rows_of(MemoryClass::pointwise, 1 << 16, 1024);
    const double contiguous_s = seconds_of(shape, device, p);
    shape.strided_elements = shape.elements;
    const double sectors_s = 32.0 * (1 << 26) / (p.residency.l2_bytes_per_cycle * device.sms * device.boost_clock_hz);
    CHECK(seconds_of(shape, device, p) - contiguous_s == approx(sectors_s).epsilon(0.01));
}

TEST_CASE("few long rows wait for memory, each in a block of its own") {
    const auto device = round_device();
    MemoryShape few = rows_of(MemoryClass::group_norm, 4, 1 << 20);
    const double hidden_s = seconds_of(few, device, initial_parameters());
    few.elements_per_wait = 512;
    // 2,048 waits of 940 cycles; 40 SMs would hold the blocks of 40 rows at once.
    const double waits_s = 2048 * 940e-9;
    CHECK(seconds_of(few, device, initial_parameters()) > waits_s);
    CHECK(hidden_s < waits_s);
    MemoryShape many = rows_of(MemoryClass::group_norm, 4096, 1024);
    const double many_s = seconds_of(many, device, initial_parameters());
    many.elements_per_wait = 512;
    CHECK(seconds_of(many, device, initial_parameters()) == approx(many_s).epsilon(0.01));
}

TEST_CASE("a block waits for the steps of its row, which a floor fitted to whole models contains in part") {
    auto device = round_device();  // its floor is below the shortest kernel's 2,500 cycles
    const auto p = initial_parameters();
    const auto waits_of = [&](const MemoryShape& shape) {
        return (seconds_of(shape, device, p) - device.floor_s) / 940e-9;
    };
    CHECK(waits_of(rows_of(MemoryClass::layer_norm, 1, 512)) == approx(2.7).epsilon(0.01));
    CHECK(waits_of(rows_of(MemoryClass::layer_norm, 1, 1536)) == approx(4.7).epsilon(0.01));
    CHECK(waits_of(rows_of(MemoryClass::softmax, 1, 1000)) > 5);
    CHECK(waits_of(rows_of(MemoryClass::softmax, 1, 1025)) == approx(3).epsilon(0.01));
    MemoryShape reducing = rows_of(MemoryClass::pointwise, 1, 64);
    reducing.waits = 4;
    CHECK(waits_of(reducing) == approx(4).epsilon(0.01));
    CHECK(waits_of(rows_of(MemoryClass::gather, 1, 64)) == approx(1).epsilon(0.01));
    CHECK(waits_of(rows_of(MemoryClass::batch_norm, 4, 64)) == approx(3).epsilon(0.01));
    MemoryShape sum = rows_of(MemoryClass::reduce, 1, 1 << 20);  // blocks share it
    sum.read_bytes = sum.write_bytes = 4;
    CHECK(waits_of(sum) == approx(2 + 4096 / 384.0).epsilon(0.01));
    MemoryShape engine = rows_of(MemoryClass::layer_norm, 1, 512);
    engine.engine = true;
    CHECK(waits_of(engine) < 1);
    device.floor_s = 3.5e-6;
    CHECK(waits_of(rows_of(MemoryClass::layer_norm, 1, 512)) == approx(2.7 - 1 / 0.94).epsilon(0.01));
}

TEST_CASE("an engine's reformats take the time of the shortest kernel, not that of an average one") {
    auto device = round_device();
    device.floor_s = 4e-6;  // 2,500 cycles take 2.5 µs
    MemoryShape shape = rows_of(MemoryClass::transpose, 1, 8);
    const auto floor_s = [&] { return plan(shape, device, initial_parameters()).floor_s; };
    CHECK(floor_s() == approx(4e-6));
    shape.engine = true;
    CHECK(floor_s() == approx(2.5e-6));
    device.floor_s = 2e-6;
    CHECK(floor_s() == approx(2e-6));
    device.floor_s = 4e-6;
    shape.cls = MemoryClass::pointwise;
    CHECK(floor_s() == approx(4e-6));
}

TEST_CASE("a root-mean-square norm has one statistic") {
    const auto p = initial_parameters();
    MemoryShape shape = rows_of(MemoryClass::layer_norm, 100'000, 128);
    const double both_s = seconds_of(shape, round_device(), p);
    shape.root_mean_square = true;
    CHECK(seconds_of(shape, round_device(), p) < 0.9 * both_s);
}

TEST_CASE("an average of windows writes no indices, and long rows or neighbours are summed by vectors") {
    auto device = round_device();
    device.fp32_flops_per_s = 1e30;
    device.boost_clock_hz = 1e15;
    MemoryShape window = rows_of(MemoryClass::pool, 10'000'000, 9);
    const double average_s = seconds_of(window, device, initial_parameters()) - device.floor_s;
    window.indexed = true;
    CHECK(seconds_of(window, device, initial_parameters()) - device.floor_s == approx(average_s * 7 / 5));
    MemoryShape sum = rows_of(MemoryClass::reduce, 100'000, 1000);
    auto p = initial_parameters();
    p.norm_efficiency = 0.9, p.reduce_efficiency = 0.6;
    const double by_vectors_s = seconds_of(sum, device, p) - device.floor_s;
    sum.vectorized = false;
    CHECK(seconds_of(sum, device, p) - device.floor_s == approx(by_vectors_s * 1.5));
}

TEST_CASE("bilinear upsampling of small maps is serial in the planes") {
    auto p = initial_parameters();
    p.resize_plane_cycles = 500;
    const MemoryShape shape{MemoryClass::resize, 256 * 49, 256, 49, 256 * 16 * 4, 256 * 49 * 4, 4};
    CHECK(seconds_of(shape, round_device(), p) == approx(2e-6 + 256 * 500e-9).epsilon(1e-3));
}

TEST_CASE("half the element size never takes longer and more rows never less") {
    const auto device = round_device();
    const auto p = initial_parameters();
    for (int cls = 0; cls < memory_class_count; ++cls) {
        double before = 0;
        for (std::int64_t rows = 1; rows < 300'000; rows = rows * 3 / 2 + 1) {
            MemoryShape shape = rows_of(static_cast<MemoryClass>(cls), rows, 768);
            const double now = seconds_of(shape, device, p);
            CAPTURE(cls);
            CAPTURE(rows);
            CHECK(now >= before);
            before = now;
            shape.element_bytes = 2;
            shape.read_bytes /= 2;
            shape.write_bytes /= 2;
            // Batch norms of halves have two more kernels.
            if (shape.cls != MemoryClass::batch_norm) CHECK(seconds_of(shape, device, p) <= now);
        }
    }
}

TEST_CASE("every parameter of the memory model has a name, a source and an initial value within its bounds") {
    MemoryParameters p;
    visit_parameters(p, [](std::string_view name, double&, const ParameterSpec& spec) {
        CAPTURE(std::string(name));
        CHECK(name.starts_with("memory."));
        CHECK_FALSE(spec.source.empty());
        CHECK(spec.lower < spec.initial);
        CHECK(spec.initial < spec.upper);
    });
}

TEST_CASE("a norm over groups reads its input twice, one over rows once") {
    // Far beyond the L2, where bytes alone count.
    const auto seconds = [](MemoryClass cls) {
        return seconds_of(rows_of(cls, 4096, 65536), round_device(), initial_parameters());
    };
    MemoryShape twice = rows_of(MemoryClass::group_norm, 4096, 65536);
    const double bytes = 4096.0 * 65536 * 4;
    const double read_again = seconds(MemoryClass::group_norm) - [&] {
        twice.read_bytes = 0;  // without the first reading
        return seconds_of(twice, round_device(), initial_parameters());
    }();
    CHECK(seconds(MemoryClass::group_norm) == approx(3 * read_again).epsilon(0.01));
    CHECK(read_again >= bytes / 1e11);
}

TEST_CASE("an elementwise kernel that computes offsets waits twice") {
    const auto p = initial_parameters();
    auto device = round_device();
    device.floor_s = 2.5e-6;  // the shortest kernel
    MemoryShape few = rows_of(MemoryClass::pointwise, 1, 64);
    const double vectors_s = seconds_of(few, device, p);
    few.vectorized = false;
    CHECK(seconds_of(few, device, p) - vectors_s == approx(2 * wait_cycles / device.boost_clock_hz).epsilon(0.1));
}
