#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <mutex>
#include <tuple>

#include "graphs/base/embedded.hpp"
#include "graphs/base/named.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/json_document.hpp"
#include "predictors/profiles/profile_file.hpp"
#include "predictors/profiles/quantities.hpp"

namespace ftax {
namespace {

constexpr std::array<std::string_view, main_loop_count> loop_names{"wide", "vector", "narrow", "sliced", "tensor"};
constexpr std::array<std::string_view, quantized_kernels_count> quantized_names{"fp8", "fp8_block", "nvfp4"};

int log2_of(const JsonField& field, std::string_view digits) {
    unsigned size = 0;
    for (const char digit : digits) size = 10 * size + static_cast<unsigned>(digit - '0');
    if (!std::has_single_bit(size)) field.fail("must begin with a tile of powers of two, columns first: \"128x64\"");
    return std::bit_width(size) - 1;
}

/// Names give the sizes: "128x64", "32x32 sliced", "128x128x8".
GemmTile parse_tile(const JsonField& field) {
    field.allow({"loop", "threads", "resident", "share"});
    const std::string& name = field.key();
    const auto [columns, rest] = split_at(name, 'x');
    const std::string_view rows = rest.substr(0, rest.find_first_not_of("0123456789"));
    const auto loop = std::ranges::find(loop_names, field["loop"].text());
    if (loop == loop_names.end()) field["loop"].fail(fmt::format("must be one of {}", fmt::join(loop_names, ", ")));
    GemmTile tile = gemm_tile(name, static_cast<MainLoop>(loop - loop_names.begin()), log2_of(field, columns),
                              log2_of(field, rows), field["threads"].positive_count(), field["resident"].positive());
    if (const auto share = field.find("share")) tile.share = share->positive();
    return tile;
}

GemmCatalogue parse_catalogue(const JsonField& field, const JsonField& tiles) {
    field.allow({"split_penalty", "most_parts", "by_time", "candidates"});
    GemmCatalogue catalogue;
    if (const auto penalty = field.find("split_penalty")) catalogue.split_penalty = penalty->positive();
    if (const auto parts = field.find("most_parts")) catalogue.most_parts = parts->positive();
    if (const auto by_time = field.find("by_time")) catalogue.by_time = by_time->flag();
    for (const JsonField& entry : field["candidates"].elements()) {
        entry.allow({"tile", "weight", "wave_quantization_penalty", "resident", "most_rows"});
        const std::string name = entry["tile"].text();
        const auto tile = tiles.find(name);
        if (!tile) entry["tile"].fail("is not one of the tiles");
        GemmCandidate candidate{parse_tile(*tile)};
        if (const auto resident = entry.find("resident")) set_resident(candidate.tile, resident->positive());
        if (const auto weight = entry.find("weight")) candidate.weight = weight->positive();
        if (const auto penalty = entry.find("wave_quantization_penalty"))
            candidate.wave_quantization_penalty = penalty->not_negative();
        if (const auto rows = entry.find("most_rows")) candidate.most_rows = rows->positive();
        catalogue.candidates.push_back(std::move(candidate));
    }
    return catalogue;
}

Quantizer parse_quantizer(const JsonField& field) {
    field.allow({"launches", "rows", "columns"});
    Quantizer quantizer;
    if (const auto launches = field.find("launches")) quantizer.launches = launches->positive_count();
    if (const auto rows = field.find("rows")) {
        quantizer.rows = rows->positive_count();
        quantizer.columns = field["columns"].positive_count();
    }
    return quantizer;
}

std::vector<AttentionTile> parse_attention_tiles(const JsonField& field) {
    std::vector<AttentionTile> tiles;
    for (const JsonField& entry : field.elements()) {
        entry.allow({"head", "rows", "keys"});
        tiles.push_back({static_cast<double>(entry["head"].positive_count()),
                         static_cast<double>(entry["rows"].positive_count()),
                         static_cast<double>(entry["keys"].positive_count())});
    }
    if (tiles.empty()) field.fail("needs at least one tile");
    return tiles;
}

AttentionKernels parse_attention(const JsonField& field) {
    field.allow({"mma_share", "exponential_ratio", "asynchronous", "packs_query_heads", "dense", "paged", "decode"});
    const JsonField decode = field["decode"];
    decode.allow({"rows", "keys"});
    const auto mma_share = field.find("mma_share"), exponential = field.find("exponential_ratio");
    return {.mma_share = mma_share ? mma_share->positive() : 1,
            .exponential_ratio = exponential ? exponential->not_negative() : 1,
            .asynchronous = field["asynchronous"].flag(),
            .packs_query_heads = field["packs_query_heads"].flag(),
            .dense = parse_attention_tiles(field["dense"]),
            .paged = parse_attention_tiles(field["paged"]),
            .decode_rows = static_cast<double>(decode["rows"].positive_count()),
            .decode_keys = static_cast<double>(decode["keys"].positive_count())};
}

ArchitectureSpec parse(std::string_view text, const std::string& origin) {
    const JsonField root = JsonField::parse(
        text, origin, "",
        "schema_version name kin schedulers_per_sm asynchronous_copies main_loop_stages "
        "integer_shares_lanes integer_product_ratio has_large_l2 tf32_at_boost stream_gap_s graph_gap_s cta_skew "
        "pointwise_through_blas gemv_rows "
        "has_sgemm_largek dram_share conv_share gemm_latency_share f32_share f32_share_consumer "
        "f32_energy_per_flop_j tensor_energy_ratio tensor_energy_per_flop_j narrow_energy_ratio "
        "tensor_ops_per_cycle operand_sharing step_cycles scales_on_tensor_cores gemm attention flash2 conv");
    ArchitectureSpec spec;
    spec.architecture = parse_architecture(root["name"]);
    for (const JsonField& kin : root["kin"].elements()) spec.kin.push_back(parse_architecture(kin));
    spec.schedulers_per_sm = root["schedulers_per_sm"].positive_count();
    spec.main_loop_stages = root["main_loop_stages"].positive_count();
    spec.gemv_rows = root["gemv_rows"].positive_count();
    if (const auto gap = root.find("stream_gap_s")) spec.stream_gap_s = gap->positive();
    if (const auto gap = root.find("graph_gap_s")) spec.graph_gap_s = gap->positive();
    using S = ArchitectureSpec;
    static const auto flags = by_name<bool S::*>(
        FTAX_NAMED(&S::asynchronous_copies, &S::integer_shares_lanes, &S::has_large_l2, &S::tf32_at_boost, &S::cta_skew,
                   &S::pointwise_through_blas, &S::has_sgemm_largek, &S::scales_on_tensor_cores));
    for (const auto& [name, flag] : flags)
        if (const auto fact = root.find(name)) spec.*flag = fact->flag();
    static const auto numbers = by_name<double S::*>(FTAX_NAMED(
        &S::integer_product_ratio, &S::gemm_latency_share, &S::dram_share, &S::conv_share, &S::f32_share,
        &S::f32_share_consumer, &S::f32_energy_per_flop_j, &S::tensor_energy_ratio, &S::tensor_energy_per_flop_j,
        &S::narrow_energy_ratio, &S::tensor_ops_per_cycle, &S::operand_sharing, &S::step_cycles));
    for (const auto& [name, number] : numbers)
        if (const auto fact = root.find(name)) spec.*number = fact->positive();

    const JsonField gemm = root["gemm"];
    gemm.allow(
        {"tiles", "layers", "layers_without_lt", "batched", "tensor", "quantized", "quantizers", "untuned_experts"});
    const JsonField tiles = gemm["tiles"];
    tiles.allow({"cuda_core", "tensor"});
    const JsonField cuda_core = tiles["cuda_core"];
    spec.layers = parse_catalogue(gemm["layers"], cuda_core);
    if (const auto own = gemm.find("layers_without_lt")) spec.layers_without_lt = parse_catalogue(*own, cuda_core);
    spec.batched = parse_catalogue(gemm["batched"], cuda_core);
    spec.tensor = parse_catalogue(gemm["tensor"], tiles["tensor"]);
    const JsonField quantized = gemm["quantized"];
    quantized.allow({"fp8", "fp8_block", "nvfp4"});
    for (std::size_t i = 0; i < quantized_names.size(); ++i)
        spec.quantized[i] = parse_catalogue(quantized[quantized_names[i]], tiles["tensor"]);
    if (const auto quantizers = gemm.find("quantizers")) {
        quantizers->allow({"fp8", "fp8_block", "nvfp4"});
        for (std::size_t i = 0; i < quantized_names.size(); ++i)
            if (const auto own = quantizers->find(quantized_names[i])) spec.quantizers[i] = parse_quantizer(*own);
    }

    if (const auto experts = gemm.find("untuned_experts")) {
        experts->allow({"efficiency", "dram_share", "fill"});
        spec.untuned_experts = {(*experts)["efficiency"].positive(), (*experts)["dram_share"].positive(),
                                (*experts)["fill"].positive()};
    }

    if (const auto flash2 = root.find("flash2")) spec.attention = spec.flash2 = parse_attention(*flash2);
    if (const auto attention = root.find("attention")) spec.attention = parse_attention(*attention);

    const JsonField conv = root["conv"];
    conv.allow({"winograd_tiles", "winograd_mosaics", "cudnn7_names_nonfused"});
    for (const JsonField& tile : conv["winograd_tiles"].elements()) {
        const auto sizes = tile.elements();
        if (sizes.size() != 3) tile.fail("must be rows, columns and threads");
        spec.winograd_tiles.push_back(
            {sizes[0].positive_count(), sizes[1].positive_count(), sizes[2].positive_count()});
    }
    spec.winograd_mosaics = conv["winograd_mosaics"].integer();
    spec.cudnn7_names_nonfused = conv["cudnn7_names_nonfused"].flag();
    return spec;
}

}  // namespace

ArchitectureSpec read_architecture(Architecture architecture, int compute_capability_major,
                                   int compute_capability_minor) {
    if (architecture == Architecture::cpu) return {.architecture = Architecture::cpu};
    std::string path = fmt::format("data/architectures/{}@{}.{}.json", name_of(architecture), compute_capability_major,
                                   compute_capability_minor);
    if (embedded_text(path).empty()) path = fmt::format("data/architectures/{}.json", name_of(architecture));
    return parse(embedded_text(path), path);
}

const ArchitectureSpec& architecture_spec(Architecture architecture, int compute_capability_major,
                                          int compute_capability_minor) {
    static std::mutex mutex;
    static std::map<std::tuple<Architecture, int, int>, ArchitectureSpec> read;
    const std::scoped_lock lock(mutex);
    const std::tuple chip(architecture, compute_capability_major, compute_capability_minor);
    if (const auto known = read.find(chip); known != read.end()) return known->second;
    return read.emplace(chip, std::apply(read_architecture, chip)).first->second;
}

std::span<const Architecture> kin_of(Architecture architecture) {
    return architecture_spec(architecture, 0, 0).kin;
}

}  // namespace ftax
