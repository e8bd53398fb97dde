#pragma once

#include <cstdint>
#include <string_view>

#include "ftax/predict.hpp"
#include "graphs/base/named.hpp"

/// What libraries do differently from version to version and chip to chip: rows say when a rule holds.
namespace ftax {

/// Libraries with such rows; `none`: a framework without. Engines, after PyTorch, share LibraryVersions::engine.
enum class Library : std::uint8_t { cudnn, tensorrt, torch, none, onnxruntime, vllm, sglang, tensorrt_llm, llama_cpp };

#define FTAX_LIBRARY_RULES                                                                                            \
    cudnn7_heuristic, older_blas, oldest_blas, cublas_lt_of_any_size, fuses_activations, keeps_onnx_nodes,            \
        splits_norms, launches_groups, unlimited_workspace, sums_in_half, flash1, xformers, widens_attention,         \
        weights_in_place, vectorized_casts, strided_reads, keeps_layouts, volumes_to_aten, concatenates_by_part,      \
        newest_blas, cudnn_attention, sums_losses_by_blocks, sums_by_nccl, captures_decoding, captures_pieces,        \
        mixes_phases, chunks_prompts, schedules_ahead, sorts_logits, sorts_experts, pads_experts, dispatches_modules, \
        multiplies_int8, streams_half, streams_faster, launches_early, fuses_gates, keeps_scores, attends_in_xqa,     \
        decodes_in_flashinfer, decodes_fp8_in_flashinfer, attends_latents_in_fp8, attends_selected_in_fp8,            \
        reserves_answers, sizes_by_memory, pads_groups, hides_promotion, leaves_no_gap, sums_without_switch,          \
        separates_updates, maps_at_once, narrows_activated, sorts_wide_rows, quantizes_by_expert, fp4_in_cutlass,     \
        slots_states, mxfp4_in_triton, widens_in_marlin, widens_apart, fuses_in_torchscript

/// What the libraries of a run do: data/library_rules.tsv says it of each field. False without a row there, so also for
/// an unspecified PyTorch (0).
struct LibraryBehaviour {
    bool FTAX_LIBRARY_RULES;
};

/// The fields by their names in data/library_rules.tsv, in order.
inline constexpr std::string_view library_rule_names = FTAX_TEXT(FTAX_LIBRARY_RULES);

/// Returns what libraries of these versions do; `engine` is the one of LibraryVersions::engine. Without a device, rules
/// for some chips alone do not hold.
[[nodiscard]] LibraryBehaviour behaviour_of(const LibraryVersions& versions, Library engine,
                                            const DeviceSpec& device = {});

}  // namespace ftax
