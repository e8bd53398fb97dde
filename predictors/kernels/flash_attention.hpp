#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "ftax/architecture.hpp"
#include "predictors/kernels/device_rates.hpp"
#include "predictors/kernels/kernel_plan.hpp"
#include "predictors/kernels/power.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/kernels/tensor_gemm.hpp"
#include "predictors/kernels/tiles.hpp"
#include "predictors/profiles/parameters.hpp"

/// Fused attention on tensor cores: either each block iterates over the keys for a tile of queries (prefill, encoder),
/// or the keys of a sequence's single query are split among blocks (decode).
/// Source: docs/kernel-models/attention.md; tiles: data/architectures.
namespace ftax::kernels {

/// Fitted parameters of one kind of kernel, shared by all generations that run it. Times are cycles of 2 GHz.
struct FlashKindParameters {
    double rate{}, score_cycles{}, paged_floor_s{};
};

/// Those of a library's kernels for single queries.
struct FlashDecodeParameters {
    double floor_s{}, fill_s{}, ramp_s{};
};

struct FlashParameters {
    double fill_s{}, paged_rate{}, append_row_s{}, split_s{};
    FlashKindParameters warp, warpgroup;  ///< by AttentionKernels::asynchronous
    FlashDecodeParameters flash2, flash3, flash3_fp8, trtllm_gen, xqa, xqa_fp8, flashinfer, flashinfer_fp8;
};

/// Initial values: a fit to all six cards; docs/kernel-models/attention.md has the rows of each library.
inline void visit_parameters(FlashParameters& p, const ParameterVisitor& visit) {
    using P = FlashParameters;
    static const DeclaredFields<P> fields("attention",
                                          FTAX_NAMED(&P::fill_s, &P::paged_rate, &P::append_row_s, &P::split_s));
    using K = FlashKindParameters;
    const auto kind = [](const char* name) {
        return DeclaredFields<K>(name, FTAX_NAMED(&K::rate, &K::score_cycles, &K::paged_floor_s));
    };
    static const DeclaredFields<K> of_warps = kind("attention.warp"), of_groups = kind("attention.warpgroup");
    using D = FlashDecodeParameters;
    const auto own = [](D P::*library, const char* name) {
        return std::pair(library, DeclaredFields<D>(std::string("attention.decode.") + name,
                                                    FTAX_NAMED(&D::floor_s, &D::fill_s, &D::ramp_s)));
    };
    static const std::array libraries = {own(&P::flash2, "flash2"),
                                         own(&P::flash3, "flash3"),
                                         own(&P::flash3_fp8, "flash3_fp8"),
                                         own(&P::trtllm_gen, "trtllm_gen"),
                                         own(&P::xqa, "xqa"),
                                         own(&P::xqa_fp8, "xqa_fp8"),
                                         own(&P::flashinfer, "flashinfer"),
                                         own(&P::flashinfer_fp8, "flashinfer_fp8")};
    fields.visit(p, visit);
    of_warps.visit(p.warp, visit);
    of_groups.visit(p.warpgroup, visit);
    for (const auto& [library, decoding] : libraries) decoding.visit(p.*library, visit);
}

namespace flash {

/// Source of the constants unless stated otherwise: the fits named above; all other values tried are worse.
inline constexpr double last_block_share = 0.3;      ///< causal: share of the longest block that runs after the others
inline constexpr double ramp_s = 2.2e-6;             ///< memory latency of short transfers
inline constexpr double decode_ramp_bytes_s = 3e-7;  ///< transfer time at which half of decode's latency is exposed
inline constexpr double usable_l2 = 1.2;             ///< relative to matrix products
inline constexpr double energy_per_flop = 1.2;       ///< relative to matrix products: adds softmax and paging
inline constexpr double group_copies_s = 4.5e-6;     ///< two copies that turn groups of query heads into rows and back
inline constexpr double parts_per_split_s = 16;      ///< number of parts that doubles split_s
/// FlashAttention 2 splits keys to fill the SMs twice, unless they are already filled to 0.8 of that; other kernels up
/// to four times. Source: csrc/flash_attn/flash_api.cpp, num_splits_heuristic; parts of 128 keys.
inline constexpr double fill_sms = 2, enough_sms = 1.6, most_sms = 4, part_keys = 128, most_parts = 128;

/// SM cycles of a score's softmax in cuDNN's kernels for Hopper, beside its products.
inline constexpr double cudnn_score_cycles = 0.14;

/// Products in fp8 relative to bf16: 1.2 and 0.74 PFLOP/s on Hopper (arXiv 2407.08608); 0.76 and 0.66 over latent
/// vectors, whose values are transposed first (AIConfigurator 0.12, H100). Prompts gain by 1.2 to 1.5 under
/// TensorRT-LLM on Hopper, not under vLLM.
inline constexpr double fp8_ratio = 1.6, latent_fp8_ratio = 1.16;

/// Rate of decoding with tiles of one group of warps, whose products and softmax alternate, relative to prompts.
/// Source: FlashMLA's README, 660 of an H800's 990 TFLOP/s.
inline constexpr double decode_rate = 0.71;

/// Rate of TensorRT-LLM's prompts on Hopper relative to FlashAttention 3. Source: AIConfigurator 0.12, H100.
inline constexpr double tensorrt_llm_prompts = 0.83;

/// Rate of products over gathered fp8 keys, which FlashMLA widens first, relative to bf16 keys: 410 and 640 TFLOP/s on
/// an H800. Source: its README (sparse decoding and prefill).
inline constexpr double widened_keys = 410.0 / 640;

/// An indexer on an SM: cycles of its 128 lanes for ReLU and sum of a head's score; time of a radix selection for a row
/// and for a score of it (AIConfigurator 0.12, SGLang 0.5.14 on an H100 and a B200, scores in order). Kernels around
/// it: rotation, Hadamard transform and cast of queries and of keys, selection (SGLang, nsa_indexer.py).
inline constexpr double head_score_cycles = 2.0 / 128, selected_row_s = 1.65e-6, selected_score_s = 0.24e-9;
inline constexpr double kernels_around = 7;

/// Floor of the kernel that casts queries, keys and values of a prompt to fp8. Source: ditto, latent vectors, B200.
inline constexpr double cast_s = 4e-6;

/// FlashAttention 1 takes twice as long as 2 for the same tile. Source: arXiv 2307.08691, figures 4 to 6.
inline constexpr double flash1_step = 2;

/// llama.cpp's kernel takes twice as long as FlashAttention 2. Source: fitted to Gemma 2B in f16 on an RTX 3090 (pull
/// request 11583, 128 to 8,192 tokens a pass), scored on Llama-3-8B behind 32,768 tokens.
inline constexpr double ggml_step = 2;

/// Returns the next larger head size with a kernel. Source: csrc/flash_attn/flash_api.cpp, round_up_headdim.
inline double padded_head(std::int64_t head_dim) {
    for (const double size : {64, 96, 128, 160, 192, 256})
        if (real(head_dim) <= size) return size;
    return 256 * round_up(real(head_dim) / 256);
}

inline const AttentionTile& tile_of(const std::vector<AttentionTile>& tiles, double head) {
    const auto found = std::find_if(tiles.begin(), tiles.end(), [&](const auto& tile) { return head <= tile.head; });
    return found == tiles.end() ? tiles.back() : *found;
}

/// Returns the kernels for a shape. Source: PyTorch builds FlashAttention 2 for Ampere and later and prefers it to
/// cuDNN's, except 2.5.0 on Hopper (pytorch pull request 138522); serving engines ship kernels for the generation.
inline const AttentionKernels& kernels_of(const AttentionShape& s, const DeviceCounts& device) {
    return s.library > FlashLibrary::cudnn ? device.chip->flash2 : device.chip->attention;  // portable ones come last
}

/// Returns the resident blocks per SM: two if shared memory holds the queries, keys and values of both.
inline double resident_blocks(const AttentionTile& tile, double head, const AttentionShape& s,
                              const DeviceCounts& device) {
    if (kernels_of(s, device).asynchronous) return 1;
    const double bytes = (tile.rows + 2 * tile.keys) * head * s.element_bytes;
    return 2 * bytes <= device.shared_memory_per_sm_bytes ? 2 : 1;
}

/// Returns true if each sequence has a single query.
inline bool is_decode(const AttentionShape& s) {
    return s.q_length == 1 && (s.paged || s.kv_length > 1) && s.decodes == 0;
}

inline double kv_heads(const AttentionShape& s) {
    return real(s.kv_heads > 0 ? s.kv_heads : s.heads);
}

/// Returns the parameters of the library that decodes. TensorRT-LLM's kernels (XQA) are mma.sync's on all chips but
/// Blackwell, over fp8 keys wgmma's on Hopper. Source: TensorRT-LLM, cpp/kernels/xqa (mha.cu, mha_sm90.cu), trtllm-gen.
inline const FlashDecodeParameters& decoder(const AttentionShape& s, const AttentionKernels& kernels,
                                            const FlashParameters& p) {
    const bool latent = s.latent_width > 0, in_fp8 = s.element_bytes == 1 && !latent;
    if (kernels.asynchronous && !kernels.packs_query_heads) return p.trtllm_gen;
    if (s.library == FlashLibrary::tensorrt_llm && !latent && (kernels.asynchronous || !in_fp8))
        return in_fp8 ? p.xqa_fp8 : p.xqa;
    if (kernels.asynchronous) return in_fp8 ? p.flash3_fp8 : p.flash3;
    if (s.library == FlashLibrary::flashinfer) return in_fp8 ? p.flashinfer_fp8 : p.flashinfer;
    return p.flash2;
}

struct Compute {
    double seconds{};
    double flops{};  ///< including tile padding
    double blocks = 0, split = 1;
};

/// One block per tile of queries. Under a causal mask blocks have unequal lengths and the longest start first.
inline Compute prefill(const AttentionShape& s, const AttentionTile& tile, double head, double score_s, double fill_s,
                       const DeviceCounts& device) {
    const auto batch = real(s.batch), heads = real(s.heads), queries = real(s.q_length), keys = real(s.kv_length);
    const bool evenly = s.library == FlashLibrary::ggml;
    const double packed =
        evenly || s.selects > 0 || kernels_of(s, device).packs_query_heads ? std::max(1.0, heads / kv_heads(s)) : 1;
    const double tiles = round_up(queries * packed / tile.rows);
    const double most = most_keys(s, tile.rows / packed);  // keys of a tile
    const double seen =
        s.causal
            ? std::min(most, std::max(0.0, keys - queries) + std::min(queries, tile.rows / packed * (tiles + 1) / 2))
            : keys;  // mean over the tiles
    const double padding = s.causal ? tile.keys / 2 : 0;
    Compute result;
    result.blocks = batch * heads / packed * tiles;
    double scores = result.blocks * (seen + padding) * tile.rows;
    double longest_s = round_up(most / tile.keys) * tile.keys * tile.rows * score_s + fill_s;
    if (s.decodes > 0) {  // single queries of other sequences in the same call: tiles of one row
        const double blocks = real(s.decodes) * heads;
        const double length = round_up(real(s.decode_length) / tile.keys) * tile.keys;
        const double decode_s = length * tile.rows * score_s + fill_s;
        if (longest_s < decode_s) longest_s = decode_s;
        scores += blocks * length * tile.rows;
        result.blocks += blocks;
    }
    // Evenly: stream-k. Source: ggml-cuda/fattn-common.cuh, launch_fattn
    const double mean_s = (scores * score_s + result.blocks * fill_s) / device.sms;
    const double waves = std::max(1.0, round_up(result.blocks / device.sms));
    result.seconds = evenly ? mean_s : s.causal ? std::max(mean_s, longest_s) : waves * longest_s;
    if (s.causal && !evenly && waves > 1) result.seconds += last_block_share * longest_s;
    result.flops = 4 * head * scores;
    return result;
}

/// Returns the query rows of a tile of decoding; with 8 to 64, keys are the rows of its products. Source: FlashInfer,
/// trtllm/fmha/fmhaKernels.cuh; TensorRT-LLM, xqa; FlashMLA, config.h; FlashAttention 3, use_one_mma_wg (16 bits).
inline double decode_rows(const AttentionShape& s, const AttentionKernels& kernels) {
    const bool latent = s.latent_width > 0, packs = kernels.packs_query_heads;
    const double group = real(s.heads) / kv_heads(s);
    if (latent && (packs || group > 32)) return 64;
    const bool in_fp8 = s.element_bytes == 1, nvidia = s.library == FlashLibrary::tensorrt_llm;
    if (packs && !in_fp8 && !nvidia && s.head_dim == 128) return 64;
    const bool by_group = packs ? nvidia && in_fp8 && group > 1 : kernels.asynchronous && s.paged;
    if (!by_group) return kernels.decode_rows;
    return std::clamp(std::exp2(std::ceil(std::log2(group))), 8.0, latent ? 16.0 : packs ? 32.0 : 64.0);
}

/// One query per sequence; query heads that share keys are rows of one tile. FlashAttention 2 has rules of its own.
inline Compute decode(const AttentionShape& s, double score_s, double fill_s, double split_s, bool flash2,
                      const DeviceCounts& device) {
    const AttentionKernels& kernels = kernels_of(s, device);
    const auto batch = real(s.batch), heads = real(s.heads), keys = real(s.kv_length);
    const double group = heads / kv_heads(s);
    const bool packs = group > 1 || !flash2 || !s.paged;
    const double rows = decode_rows(s, kernels);
    const double units = batch * (packs ? kv_heads(s) * round_up(group / rows) : heads);
    const double step_s = kernels.decode_keys * rows * score_s;
    const auto with_parts = [&](double parts) {
        const double blocks_per_sm = std::max(1.0, units * parts / device.sms);
        double seconds = blocks_per_sm * (round_up(keys / (parts * kernels.decode_keys)) * step_s + fill_s);
        if (parts > 1) seconds += split_s * (1 + parts / parts_per_split_s);
        return seconds;
    };
    Compute result;
    result.flops = double(flops(s));
    if (packs && flash2) {
        if (units < enough_sms * device.sms) {
            const double most = std::min(most_parts, std::max(1.0, round_up(keys / part_keys)));
            result.split = std::clamp(std::floor(fill_sms * device.sms / units), 1.0, most);
        }
    } else if (packs) {
        const double most = std::min({most_parts, keys / part_keys, most_sms * device.sms / units});
        for (double parts = 2; parts <= most; parts *= 2)
            if (with_parts(parts) <= with_parts(result.split)) result.split = parts;
    }
    result.seconds = with_parts(result.split);
    result.blocks = units * result.split;
    return result;
}

/// Queries that gather keys of their own are sequences of one; the few (16) new tokens of a sequence that verify
/// drafts, for which an indexer's kernel splits the keys, are more heads.
inline AttentionShape with_single_queries(AttentionShape s) {
    if (!s.gathers && (s.selects == 0 || s.q_length > 16)) return s;
    (s.gathers ? s.batch : s.heads) *= s.q_length;
    if (s.window > 0) s.kv_length = std::min(s.kv_length, s.window);
    s.q_length = 1;
    s.causal = false;
    return s;
}

/// Returns the time of the kernel that selects the best scores of each query that sees more keys than it selects.
inline double selection_s(const AttentionShape& s, const DeviceCounts& device) {
    const double keys = real(s.kv_length), fresh = std::max(1.0, s.causal ? std::min(real(s.q_length), keys) : 1);
    const double least = std::max(keys - fresh, real(s.selects));  // keys of the first one
    const double rows = real(s.batch) * real(s.q_length) * (keys - least) / fresh / device.sms;
    return rows > 0 ? std::max(1.0, rows) * (selected_row_s + (least + keys) / 2 * selected_score_s) : 0;
}

/// Returns the time that an SM takes for one score and its share of the result.
inline double seconds_per_score(const AttentionShape& s, double head, double sm_flops_per_s, const DeviceRates& device,
                                const FlashParameters& p, const TensorGemmParameters& gemm) {
    const AttentionKernels& kernels = kernels_of(s, device);
    const FlashKindParameters& kind = kernels.asynchronous ? p.warpgroup : p.warp;
    double rate = sm_flops_per_s * kind.rate * kernels.mma_share;
    if (s.paged && !kernels.asynchronous) rate *= p.paged_rate;
    const bool nvidia = s.library == FlashLibrary::tensorrt_llm;
    const double cycle_s = 1.0 / (gemm.clock * device.boost_clock_hz);
    if (s.selects > 0) return real(s.latent_width) * s.element_bytes / rate + head_score_cycles * cycle_s;
    const bool in_fp8 = s.element_bytes == 1 && (is_decode(s) || nvidia);
    const bool hopper = kernels.packs_query_heads, widens = s.gathers && (hopper || !nvidia);
    if (kernels.asynchronous && in_fp8)
        rate *= widens ? widened_keys : hopper && s.latent_width > 0 ? latent_fp8_ratio : fp8_ratio;
    double seconds = 4 * head / rate;
    const bool overlaps = s.library == FlashLibrary::cudnn && kernels.asynchronous;
    if (overlaps) seconds = double(equations::smooth_maximum(seconds, cudnn_score_cycles * cycle_s));
    if (!overlaps) seconds += kernels.exponential_ratio * kind.score_cycles * cycle_s;
    if (is_decode(s) && kernels.asynchronous && decode_rows(s, kernels) <= 64) seconds /= decode_rate;
    if (nvidia && kernels.packs_query_heads && !is_decode(s) && head <= 128) seconds /= tensorrt_llm_prompts;
    if (s.library == FlashLibrary::flash1) seconds *= flash1_step;
    if (s.library == FlashLibrary::ggml && !is_decode(s)) seconds *= ggml_step;
    return seconds;
}

}  // namespace flash

/// Plans fused attention on tensor cores, preceded by the kernel that appends to a paged cache.
inline KernelPlan plan_flash(const AttentionShape& given, const DeviceRates& device, const FlashParameters& p,
                             const TensorGemmParameters& gemm) {
    const AttentionShape s = flash::with_single_queries(given);
    const AttentionKernels& kernels = flash::kernels_of(s, device);
    const FlashKindParameters& kind = kernels.asynchronous ? p.warpgroup : p.warp;
    const FlashDecodeParameters& decoder = flash::decoder(s, kernels, p);
    const bool decodes = flash::is_decode(s), flash2 = &decoder == &p.flash2;
    const auto rates =
        tensor_gemm::rates_of(GemmShape{.n = 64, .k = 64, .element_bytes = s.element_bytes}, device, gemm);
    KernelPlan plan;
    plan.algorithm = decodes ? "attention, decode" : "attention, flash";
    plan.floor_s =
        !s.paged ? device.floor_s : double((decodes ? decoder.floor_s : kind.paged_floor_s) * rates.cycle_scale);
    plan.seconds = plan.floor_s;
    // Kernels for latent vectors support a single width, without padding. Source: FlashMLA, csrc.
    const double head = s.latent_width > 0 ? real(s.head_dim) : flash::padded_head(s.head_dim);
    // cuDNN: sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1, two of whose three warpgroups compute.
    const bool narrow_tiles = s.paged || s.library == FlashLibrary::cudnn || decodes;
    AttentionTile tile = flash::tile_of(narrow_tiles ? kernels.paged : kernels.dense, head);
    if (s.library == FlashLibrary::ggml && !decodes) {  // by queries and heads that share keys. Source: fattn.cu
        const double rows = real(s.q_length) * std::min(8.0, real(s.heads) / flash::kv_heads(s));
        tile.rows = std::clamp(std::exp2(std::ceil(std::log2(rows))), 8.0, 64.0);
    }
    plan.blocks_per_sm = flash::resident_blocks(tile, head, s, device);
    if (flops(s) <= 0) return plan;

    const double block_scale = rates.cycle_scale / plan.blocks_per_sm;
    const double cached_bytes = cached_elements(s) * s.element_bytes;
    double score_s = flash::seconds_per_score(s, head, rates.sm_boost_flops_per_s, device, p, gemm);
    if (decodes && s.latent_width > 0)  // an SM loads them no faster than its share of the L2
        score_s = std::max(score_s, cached_bytes / flash::decode_rows(s, kernels) * device.sms / rates.l2_bytes_per_s);
    const auto compute =
        decodes ? flash::decode(s, score_s, decoder.fill_s * block_scale, p.split_s * rates.cycle_scale, flash2, device)
                : flash::prefill(s, tile, head, score_s, p.fill_s * block_scale, device);
    plan.blocks = compute.blocks;
    plan.split_k = compute.split;
    plan.waves = plan.blocks / device.sms;
    plan.tile = {.columns = tile.keys, .rows = decodes ? flash::decode_rows(s, kernels) : tile.rows};
    plan.compute_s = compute.seconds;

    const auto batch = real(s.batch), decode_batch = real(s.decodes);
    const double tokens = batch * real(s.q_length) + decode_batch;
    const double keys = batch * real(s.kv_length) + decode_batch * real(s.decode_length);
    const double vector_bytes = real(s.head_dim) * s.element_bytes;
    const double bytes = cached_bytes * flash::kv_heads(s) * keys + 2 * vector_bytes * real(s.heads) * tokens +
                         (s.selects > 0 ? sizeof(float) * keys * real(given.q_length) : 0);
    double missed =
        tensor_gemm::miss_share(std::max(bytes, s.reuse_bytes) / (flash::usable_l2 * gemm.l2_share * device.l2_bytes));
    if (s.batch > given.batch)  // neighbouring queries gather mostly the same keys
        missed = std::min(missed, real(given.batch * given.kv_length) / (batch * real(s.kv_length)));
    plan.memory_s = rates.seconds(bytes, missed);
    const double ramp_s = decodes && s.library != FlashLibrary::ggml ? decoder.ramp_s : flash::ramp_s;
    plan.memory_s += ramp_s * plan.memory_s / (plan.memory_s + (decodes ? flash::decode_ramp_bytes_s : gemm.ramp_s));
    // Hopper's kernels load keys while they multiply others.
    plan.seconds += decodes && kernels.packs_query_heads ? std::max(plan.compute_s, plan.memory_s)
                                                         : tensor_gemm::overlap(plan.compute_s, plan.memory_s);
    // Keys and values that were expanded from latent vectors are cast; of others, the kernel that appends them does it.
    if (!decodes && s.element_bytes == 1 && s.library == FlashLibrary::tensorrt_llm && s.heads == s.kv_heads)
        plan.seconds += flash::cast_s + rates.seconds(3 * 3 * vector_bytes * real(s.heads) * tokens, 1);
    if (s.paged) {
        const double append_s = rates.seconds(2 * cached_bytes * flash::kv_heads(s) * tokens, missed) +
                                tokens / device.sms * p.append_row_s * rates.cycle_scale;
        plan.memory_s += append_s;
        plan.seconds += append_s;
    }
    if (s.selects > 0)
        plan.seconds += flash::kernels_around * device.floor_s +
                        rates.seconds(12 * real(s.latent_width * s.heads) * tokens, 1) +
                        flash::selection_s(given, device);
    // With one sequence or one key head, a view suffices.
    if (decodes && flash2 && s.batch > 1 && s.kv_heads > 1 && s.kv_heads < s.heads) {
        plan.floor_s += flash::group_copies_s * rates.cycle_scale;
        plan.seconds += flash::group_copies_s * rates.cycle_scale;
    }
    const double flop_j = device.chip->tensor_energy_per_flop_j * flash::energy_per_flop * gemm.energy_scale;
    plan.power_limited_s = power_limited_seconds(plan.seconds, compute.flops * flop_j / device.power_limit_w, device);
    return plan;
}

}  // namespace ftax::kernels
