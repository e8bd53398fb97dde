#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include "ftax/precision.hpp"
#include "predictors/kernels/device_rates.hpp"
#include "predictors/kernels/gemm_heuristic.hpp"
#include "predictors/kernels/kernel_plan.hpp"
#include "predictors/kernels/power.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/kernels/tiles.hpp"
#include "predictors/profiles/parameters.hpp"

/// Time of a matrix product on tensor cores with the fastest tile and split-K. The main loop is bound by the tensor
/// cores or by operand reads from the L2; it overlaps the DRAM or L2 time of weights and activations.
/// Source: docs/kernel-models/gemm-on-tensor-cores.md.
namespace ftax::kernels {

/// Fitted parameters. Times are for a card at 2 GHz, i.e. they scale as cycles.
struct TensorGemmParameters {
    double floor_s{}, fill_s{}, epilogue{}, split_s{}, ramp_s{};
    double operand_share{}, dram_share{}, l2_share{}, efficiency{}, energy_scale{}, wave_sharpness{};
    double misaligned{}, older_library{}, clock{};
};

/// Initial values: a fit to all seven cards.
inline void visit_parameters(TensorGemmParameters& p, const ParameterVisitor& visit) {
    using P = TensorGemmParameters;
    static const DeclaredFields<P> fields(
        "tensor_gemm", FTAX_NAMED(&P::floor_s, &P::fill_s, &P::epilogue, &P::split_s, &P::ramp_s, &P::operand_share,
                                  &P::dram_share, &P::l2_share, &P::efficiency, &P::energy_scale, &P::wave_sharpness,
                                  &P::misaligned, &P::older_library, &P::clock));
    fields.visit(p, visit);
}

namespace tensor_gemm {

/// Depth of one step of the main loop. Source: CUTLASS, 64 values of 2 bytes.
inline constexpr double step = 64;
/// Smallest depth of a split-K part, and blocks per SM up to which a reduction is split.
inline constexpr double least_part = 128, split_blocks_per_sm = 2;
/// Default L2 read rate of cards with an unknown rate, bytes per clock and SM.
inline constexpr double l2_bytes_per_clock_and_sm = 40;
/// Share of the bandwidth taken by ECC in GDDR. Source: one bit of parity for sixteen bytes.
inline constexpr double inline_ecc = 1.0 / 16;
/// Share of the L2 read rate that streaming reads reach. Source: the same fits (0.52 if fitted freely).
inline constexpr double l2_stream_share = 0.5;

/// Returns the cycles of a main loop relative to those of its products alone. Unless tensor cores apply block scales,
/// the sum of each block is scaled and accumulated in f32 before the next one. Source: "CUDA-core two-level
/// accumulation (promotion)", DeepGEMM, README.
inline double promotion(const PrecisionSpec& operands, const DeviceCounts& device) {
    if (operands.activation_block == 0 || device.chip->scales_on_tensor_cores) return 1;
    const double products_per_cycle_and_sm = device.peak_flops_per_s / (2 * device.boost_clock_hz * device.sms);
    return 1 + products_per_cycle_and_sm / (device.f32_lanes * real(operands.activation_block));
}

/// Returns the cycles of a main loop that dequantises weights before its products, relative to those of the products
/// alone: integer lanes convert each value once per block of rows. Source: Marlin (IST-DASLab), README: tiles of at
/// most 64 rows; CUDA C++ Programming Guide, throughput of lop3, 8.0 and 9.0. On an H200, products with 4-bit weights
/// and many rows take 1.4 times as long as 16-bit ones (AIConfigurator's tables). `rate`: of its instructions.
inline double widening(const PrecisionSpec& operands, const DeviceCounts& device, double rate = 1) {
    constexpr double integer_lanes = 64, most_rows = 64;
    if (operands.quantizes_activations()) return 1;
    const double products_per_cycle_and_sm = rate * device.peak_flops_per_s / (2 * device.boost_clock_hz * device.sms);
    return 1 + products_per_cycle_and_sm / (integer_lanes * most_rows);
}

/// Returns the share of its rate that a main loop reaches on tensor cores that a board slows down: the cycles beyond
/// those of the products stay the same. Source: products of 4096 to 10240 rows, columns and steps in bf16, an L20 at
/// 108 to 114 of 119 TFLOP/s, an H20 at 133 to 142 of 148 (zzc0721/torch-performance-test-data, issues 107 and 77).
inline double share_left(double share, const DeviceCounts& device) {
    return 1 / (1 + device.tensor_rate_left * (1 / share - 1));
}

/// Returns the energy of an f16 operation of a product; a slowed board has more cycles.
inline double energy_per_flop_j(const DeviceRates& device) {
    return device.chip->tensor_energy_per_flop_j * energy_of_cycles(1 / device.tensor_rate_left);
}

/// Returns the waves of blocks; `sharpness` is the share of blocks that start in whole waves.
inline double waves(double blocks_per_sm, double sharpness) {
    return blocks_per_sm <= 1 ? 1.0 : (1.0 - sharpness) * blocks_per_sm + sharpness * round_up(blocks_per_sm);
}

/// Returns the share of requests that miss the L2, x = working set / usable size.
inline double miss_share(double x) {
    return kernels::miss_share(x, 8);
}

/// Device rates for one shape. Seconds, bytes.
struct Rates {
    double cycle_scale{};             ///< factor on times at 2 GHz
    double sm_flops_per_s{};          ///< rate of one SM under the power limit
    double sm_boost_flops_per_s{};    ///< rate of one SM at boost clock
    double flop_j{};                  ///< energy of an operation before the fitted scale
    double sm_operand_bytes_per_s{};  ///< L2 read rate of one SM
    double l2_bytes_per_s{}, dram_bytes_per_s{};
    double sms = 0;
    double x_bytes = 2, weight_bytes = 2, y_bytes = 2;  ///< bytes per element
    double least_step_s = 0;                            ///< of a step of the main loop, however small the tile
    double weight_s = 0;            ///< of a weight at an SM's share of the memory; 0: loads and products overlap
    bool loads_whole_steps = true;  ///< loads of whole main-loop steps; false for unaligned rows

    [[nodiscard]] double seconds(double bytes, double missed) const {
        return bytes * (missed / dram_bytes_per_s + (1.0 - missed) / l2_bytes_per_s);
    }
};

/// Returns true if the rows of operands and result are aligned to `bytes`. Libraries pad quantised layers.
inline bool rows_are_aligned(const GemmShape& s, std::int64_t bytes) {
    return precision_spec(s.operands).quantizes_weights() ||
           (is_aligned(s.n, s.element_bytes, bytes) && is_aligned(s.k, s.element_bytes, bytes));
}

/// Returns the alignment of rows for vector loads. Source: cp.async copies 4, 8 or 16 bytes (PTX), for which fp16 has
/// kernels named …_align2 (PyTorch's profiles of an A100); kernels of earlier chips load 16 bytes, and so does Hopper's
/// tensor memory accelerator: on an H100, fp16 layers with 196 values a row run
/// cutlass_80_tensorop_f16_s16816gemm_…_align2.
inline std::int64_t vector_bytes(const ArchitectureSpec& chip) {
    return chip.asynchronous_copies && chip.flash2.mma_share == 1 ? 4 : 16;
}

inline double cycle_scale(const DeviceRates& device, const TensorGemmParameters& p) {
    return 2e9 / (p.clock * device.boost_clock_hz);
}

inline Rates rates_of(const GemmShape& s, const DeviceRates& device, const TensorGemmParameters& p) {
    Rates r;
    const double clock_hz = p.clock * device.boost_clock_hz;
    r.cycle_scale = cycle_scale(device, p);
    r.sms = device.sms;
    const double peak = device.peak_flops_per_s * p.clock;
    const PrecisionSpec& operands = precision_spec(s.operands);
    const bool quantized = operands.quantizes_weights();
    const bool aligned = rows_are_aligned(s, vector_bytes(*device.chip));
    r.loads_whole_steps = aligned;
    // Kernels for such rows have the instructions of older generations.
    double share = aligned ? p.efficiency : p.efficiency * p.misaligned * device.chip->flash2.mma_share;
    if (s.older_library) share *= p.older_library;
    share = share_left(share, device);
    if (quantized && !s.hides_promotion) share /= promotion(operands, device);
    if (quantized && s.row_bytes_per_cycle == 0) share /= widening(operands, device);
    // Beside the tensor cores, llama.cpp converts the sums of 32 values, 64 a cycle, and multiplies them by two scales;
    // a block of eight warps takes 2.4 times the cycles of these instructions. Source: ggml-cuda/mmq.cuh
    // (vec_dot_q8_0_q8_1_mma; mul_mat_q_process_tile, which loads and multiplies in turn); CUDA C++ Programming Guide.
    const bool blocks_of_32 = s.dot_products && device.path == MathPath::int8_tensor;
    const double sums_per_cycle = device.peak_flops_per_s / (2 * 32 * device.boost_clock_hz * device.sms);
    if (blocks_of_32) share = std::min(share, 1 / (2.4 * sums_per_cycle * (1 / 64.0 + 2 / device.f32_lanes)));
    r.sm_boost_flops_per_s = peak * share / device.sms;
    // Those loops leave tensor cores waiting, slowed by the board or not.
    const double flop_j = blocks_of_32 ? device.chip->tensor_energy_per_flop_j : energy_per_flop_j(device);
    r.flop_j = flop_j * (device.path == MathPath::tf32 ? 2 : 1) * (quantized ? operands.energy_ratio : 1);
    const double powered = device.power_limit_w / (r.flop_j * p.energy_scale * device.sms);
    r.sm_flops_per_s = powered < r.sm_boost_flops_per_s ? powered : r.sm_boost_flops_per_s;
    const double l2_per_clock = device.l2_bytes_per_clock.value_or(l2_bytes_per_clock_and_sm * device.sms);
    r.sm_operand_bytes_per_s = p.operand_share * clock_hz * (l2_per_clock * device.chip->operand_sharing / device.sms);
    r.l2_bytes_per_s = l2_stream_share * l2_per_clock * clock_hz;
    r.dram_bytes_per_s = p.dram_share * device.dram_bytes_per_s * (device.has_inline_ecc ? 1 - inline_ecc : 1.0);
    r.x_bytes = activation_bytes(s), r.weight_bytes = weight_bytes(s), r.y_bytes = s.element_bytes;
    r.least_step_s = device.chip->step_cycles / clock_hz;
    if (!blocks_of_32) return r;
    r.x_bytes = 36.0 / 32, r.y_bytes = 4;  // block_q8_1 and f32
    // One block per SM loads, then multiplies (launch_mul_mat_q); each 128 rows of x read the weights again.
    const double weights = real(s.n) * real(s.k) * r.weight_bytes, times = round_up(real(s.m) / 128);
    const double missed = (1 + (times - 1) * miss_share(weights / (p.l2_share * device.l2_bytes))) / times;
    r.weight_s = r.sms * r.seconds(r.weight_bytes, missed);
    return r;
}

/// Returns the time of one tile and split-K without memory: waves of fill, main loop and epilogue.
inline double tile_time(const GemmShape& s, const GemmTile& tile, double blocks, double split_k, const Rates& r,
                        double flops_per_s, const TensorGemmParameters& p) {
    const double rows = std::min(tile.rows, real(s.m));
    const double columns = std::min(tile.columns, real(s.n));
    const double area = r.weight_s > 0 ? columns * 8 * round_up(rows / 8) : tile.area;
    const double arithmetic_s = 2 * area * step / flops_per_s;
    const double operands_s = step * (rows * r.x_bytes + columns * r.weight_bytes) / r.sm_operand_bytes_per_s;
    const double loads_s = step * (rows * r.x_bytes / r.sm_operand_bytes_per_s + columns * r.weight_s);
    const double overlapped_s = std::max({arithmetic_s, operands_s, r.least_step_s});
    const double step_s = r.weight_s > 0 ? arithmetic_s + loads_s : overlapped_s;
    const double fixed_s =
        p.fill_s * r.cycle_scale + p.epilogue * (r.y_bytes * rows * columns) / r.sm_operand_bytes_per_s;
    // Scalar loads skip values beyond the end; vector loads always fetch a whole step.
    const double loads = real(s.k) / (step * split_k);
    const double steps = r.loads_whole_steps ? round_up(loads) : loads;
    const double of_sm = blocks * split_k / r.sms;
    double time_s = (r.weight_s > 0 ? of_sm : waves(of_sm, p.wave_sharpness)) * (fixed_s + steps * step_s);
    if (split_k > 1) {
        const double results = real(s.batch) * real(s.m) * real(s.n);
        time_s += p.split_s * r.cycle_scale + 8 * split_k * results / r.l2_bytes_per_s;
    }
    return time_s;
}

/// Returns the time of bytes of weights and activations from DRAM or L2. Data hit the L2 if their reuse distance is
/// below its capacity: `reuse_bytes` for weights, none for activations.
inline double memory_time(double weights, double activations, double reuse_bytes, const DeviceRates& device,
                          const Rates& r, const TensorGemmParameters& p) {
    const double inverse_room = 1.0 / (p.l2_share * device.l2_bytes);
    const double kept = std::min(p.l2_share * device.l2_bytes, weights);
    const double time_s =
        r.seconds(weights, miss_share((std::max(reuse_bytes, weights) + activations) * inverse_room)) +
        r.seconds(activations, miss_share((activations + kept) * inverse_room));
    return time_s + p.ramp_s * time_s / (time_s + p.ramp_s);
}
inline double memory_time(const GemmShape& s, const DeviceRates& device, const Rates& r,
                          const TensorGemmParameters& p) {
    const auto batch = real(s.batch), m = real(s.m), n = real(s.n), k = real(s.k);
    return memory_time((s.linear ? 1 : batch) * k * n * r.weight_bytes, batch * m * (k * r.x_bytes + n * r.y_bytes),
                       s.linear ? s.weight_reuse_bytes : 0, device, r, p);
}

/// Returns the wait for the first tile where weights come from memory that came from the L2 when the other parameters
/// were fitted: tensor_ops.csv rotates among six copies of the weights.
inline double first_tile_s(const GemmShape& s, const DeviceRates& device, const Rates& r,
                           const TensorGemmParameters& p) {
    constexpr double wait_s = 0.8e-6, copies = 6;
    if (!s.linear) return 0;
    const double weights = real(s.k) * real(s.n) * r.weight_bytes;
    const double room = p.l2_share * device.l2_bytes;
    return wait_s * miss_share(std::max(s.weight_reuse_bytes, weights) / room) *
           (1 - miss_share(copies * weights / room));
}

/// Cost of a candidate: its time. Its arithmetic and operands at full rate are a lower bound for any split.
struct TileTime {
    const GemmShape* shape;
    const Rates* rates;
    const TensorGemmParameters* parameters;
    double most_parts = 64;  ///< largest split-K
    double sm_flop_s = 1 / rates->sm_flops_per_s, sm_byte_s = 1 / rates->sm_operand_bytes_per_s;

    [[nodiscard]] double bound(const GemmCandidate& c, double blocks) const {
        if (real(shape->m) > c.most_rows) return std::numeric_limits<double>::infinity();
        if (rates->weight_s > 0) return 0;
        const double rows = std::min(c.tile.rows, real(shape->m));
        const double columns = std::min(c.tile.columns, real(shape->n));
        const double operand_bytes = rows * rates->x_bytes + columns * rates->weight_bytes;
        return blocks / rates->sms * real(shape->k) * std::max(2 * c.tile.area * sm_flop_s, operand_bytes * sm_byte_s);
    }
    [[nodiscard]] double next_split(const GemmCandidate&, double blocks, double split_k) const {
        const double parts = 2 * split_k;
        const bool fits = shape->batch == 1 && parts <= most_parts && least_part * parts <= real(shape->k) &&
                          blocks * parts <= split_blocks_per_sm * rates->sms;
        return fits ? parts : 0;
    }
    [[nodiscard]] double operator()(const GemmCandidate& c, double blocks, double split_k) const {
        return tile_time(*shape, c.tile, blocks, split_k, *rates, rates->sm_flops_per_s, *parameters);
    }
};

/// Smooth maximum (a³ + b³)^⅓, within 26 % of the larger. Exponents of 2.5 to 4 fit equally well; cubes are cheap.
inline double overlap(double a, double b) {
    return std::cbrt(a * a * a + b * b * b);
}

inline KernelPlan plan_choice(const GemmShape& s, const gemm::Choice& c, const DeviceRates& device,
                              const TensorGemmParameters& p) {
    const Rates r = rates_of(s, device, p);
    const GemmTile& tile = *c.tile;
    KernelPlan plan;
    plan.algorithm = "gemm";
    plan.tile = {tile.name, tile.columns, tile.rows};
    plan.split_k = c.split_k;
    const double blocks = gemm::blocks_of(s, tile);
    plan.blocks = blocks * c.split_k;
    plan.waves = plan.blocks / device.sms;
    plan.blocks_per_sm = tile.resident;
    plan.threads_per_block = 128 / tile.idle_schedulers;
    plan.floor_s = p.floor_s * r.cycle_scale;
    plan.compute_s = tile_time(s, tile, blocks, c.split_k, r, r.sm_boost_flops_per_s, p);
    plan.memory_s = memory_time(s, device, r, p);
    plan.floor_s += first_tile_s(s, device, r, p);
    plan.seconds = plan.floor_s + overlap(plan.compute_s, plan.memory_s);
    const double limited_s = tile_time(s, tile, blocks, c.split_k, r, r.sm_flops_per_s, p);
    const double arithmetic_s = flops(s) / (r.sm_flops_per_s * r.sms);
    plan.power_limited_s = plan.compute_s < limited_s ? plan.floor_s + overlap(limited_s, plan.memory_s)
                                                      : power_limited_seconds(plan.seconds, arithmetic_s, device);
    return plan;
}

inline constexpr std::string_view streamed = "matrix-vector";
/// Plans a framework's own matrix-vector kernel, which streams the weights once with a limited rate of loads.
inline KernelPlan plan_streamed(const GemmShape& s, const DeviceRates& device, const TensorGemmParameters& p) {
    Rates r = rates_of(s, device, p);
    const double weights = real(s.n) * real(s.k) * r.weight_bytes;
    KernelPlan plan;
    plan.algorithm = streamed;
    plan.blocks = real(s.n);
    plan.blocks_per_sm = 8;
    plan.waves = plan.blocks / (device.sms * plan.blocks_per_sm);
    plan.floor_s = p.floor_s * r.cycle_scale;
    const double cycles_per_s = device.sms * p.clock * device.boost_clock_hz;
    const double loads_s = weights / (s.row_bytes_per_cycle * cycles_per_s);
    plan.memory_s = overlap(loads_s, memory_time(s, device, r, p));
    if (s.loads_ahead) {
        TensorGemmParameters steady = p;
        steady.ramp_s = 0;
        r.dram_bytes_per_s = device.bandwidth_bytes_per_s;
        plan.memory_s = std::max(loads_s, memory_time(s, device, r, steady));
        if (s.dot_products) plan.floor_s += 0.5e-6;  // a kernel quantises the values first. Source: mmvq.cu
    }
    // 32 products a cycle: Llama-3-8B in Q4_0 on an RTX 3090, four to eight tokens (llama.cpp pull request 15802).
    if (s.dot_products) plan.compute_s = flops(s) / 2 / (32 * cycles_per_s);
    plan.seconds = plan.floor_s + overlap(plan.compute_s, plan.memory_s);
    plan.power_limited_s = plan.seconds;
    return plan;
}

/// Plans FlashInfer's kernel for block scales on Blackwell, with tiles of 32 tokens for any product, which scales each
/// sum of 128 values before the next; each tile reads the weights again. Sources: FlashInfer, trtllm_gemm_runner.cu
/// (selectHeuristic); times of a B200 (docs/kernel-models/quantised-products.md).
inline KernelPlan plan_scaled_outside(const GemmShape& s, const DeviceRates& device, const TensorGemmParameters& p) {
    constexpr double columns = 128, rows = 32, block = 128, block_s = 0.181e-6, fill_s = 2.15e-6;  // at 1,965 MHz
    const Rates r = rates_of(s, device, p);
    const double scale = 1965e6 / device.boost_clock_hz, tiles = round_up(real(s.m) / rows);
    const double weights = real(s.n) * real(s.k) * r.weight_bytes;
    const double missed = miss_share(weights / (p.l2_share * device.l2_bytes));
    KernelPlan plan;
    plan.algorithm = "gemm";
    plan.tile = {"128x32", columns, rows};
    plan.blocks = tiles * round_up(real(s.n) / columns);
    plan.waves = plan.blocks / device.sms;
    plan.floor_s = p.floor_s * r.cycle_scale;
    plan.compute_s = round_up(plan.waves) * (fill_s + round_up(real(s.k) / block) * block_s) * scale;
    plan.memory_s = memory_time(s, device, r, p) + (tiles - 1) * weights * missed / r.dram_bytes_per_s;
    plan.seconds = plan.floor_s + overlap(plan.compute_s, plan.memory_s);
    plan.power_limited_s = plan.seconds;
    return plan;
}

/// Returns true for 8-bit products in an engine's own kernels.
inline bool of_engine(const GemmShape& s) {
    return s.engine && (s.operands == Precision::int8 || s.operands == Precision::fp8);
}

/// Returns the kernels for a product's operands. Engines use the 16-bit tiles for int8 and fp8 as well.
inline const GemmCatalogue& catalogue(const GemmShape& s, const ArchitectureSpec& chip) {
    const QuantizedKernels own = precision_spec(s.operands).kernels;
    return own == QuantizedKernels::none || of_engine(s) ? chip.tensor : chip.quantized[static_cast<std::size_t>(own)];
}

inline gemm::Choice choose(const GemmShape& s, const DeviceRates& device, const TensorGemmParameters& p) {
    const Rates rates = rates_of(s, device, p);
    const GemmCatalogue& kernels = catalogue(s, *device.chip);
    return gemm::choose(s, kernels, TileTime{&s, &rates, &p, kernels.most_parts});
}

inline bool runs_on_tensor_cores(const DeviceRates& device) {
    return is_tensor(device.path) && !device.chip->tensor.candidates.empty();
}

}  // namespace tensor_gemm

/// Chooses and times the kernel of a matrix product on tensor cores, without host time.
inline KernelPlan plan(const GemmShape& s, const DeviceRates& device, const TensorGemmParameters& p) {
    return tensor_gemm::plan_choice(s, tensor_gemm::choose(s, device, p), device, p);
}

}  // namespace ftax::kernels
