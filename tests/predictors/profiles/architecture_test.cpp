#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "ftax/device.hpp"
#include "predictors/profiles/profile_file.hpp"

using namespace ftax;

namespace {

std::vector<std::string> tiles_of(const GemmCatalogue& catalogue) {
    std::vector<std::string> names;
    for (const GemmCandidate& candidate : catalogue.candidates) names.push_back(candidate.tile.name);
    return names;
}

/// A generation's file over those that it inherits from, without their chips.
nlohmann::json file_of(const std::string& name) {
    std::ifstream file(FTAX_SOURCE_DIR "/data/architectures/" + name + ".json");
    const auto own = nlohmann::json::parse(file);
    if (!own.contains("inherits")) return own;
    auto whole = file_of(own["inherits"]);
    whole.erase("chips");
    whole.merge_patch(own);
    return whole;
}

}  // namespace

TEST_CASE("an architecture is what its files say, number by number") {
    for (const DeviceSpec& device : device_specs()) {
        if (device.architecture == Architecture::cpu) continue;
        CAPTURE(device.slug);
        const ArchitectureSpec& s = device.chip();
        auto facts = file_of(std::string(name_of(device.architecture)));
        const std::string chip =
            std::to_string(device.compute_capability_major) + "." + std::to_string(device.compute_capability_minor);
        if (facts.contains("chips") && facts["chips"].is_object() && facts["chips"].contains(chip))
            facts.merge_patch(nlohmann::json(facts["chips"][chip]));
        const auto same = [](double read, const nlohmann::json& in, const char* key, double fallback) {
            auto fact = in.is_object() ? in.value(key, nlohmann::json(fallback)) : nlohmann::json(fallback);
            if (fact.is_object()) fact = fact["value"];
            CHECK_MESSAGE(read == (fact.is_boolean() ? (fact.get<bool>() ? 1 : 0) : fact.get<double>()), key);
        };
        const std::tuple<const char*, double, double> numbers[] = {
            {"schedulers_per_sm", s.schedulers_per_sm, -1},
            {"asynchronous_copies", s.asynchronous_copies, -1},
            {"main_loop_stages", s.main_loop_stages, -1},
            {"integer_shares_lanes", s.integer_shares_lanes, -1},
            {"integer_product_ratio", s.integer_product_ratio, -1},
            {"cta_skew", s.cta_skew, -1},
            {"pointwise_through_blas", s.pointwise_through_blas, -1},
            {"has_sgemm_largek", s.has_sgemm_largek, 0},
            {"gemv_rows", s.gemv_rows, -1},
            {"stream_gap_s", s.stream_gap_s.value_or(0), 0},
            {"graph_gap_s", s.graph_gap_s.value_or(0), 0},
            {"dram_share", s.dram_share, -1},
            {"conv_share", s.conv_share, 1},
            {"gemm_latency_share", s.gemm_latency_share, 1},
            {"f32_share", s.f32_share, -1},
            {"f32_share_consumer", s.f32_share_consumer, -1},
            {"f32_energy_per_flop_j", s.f32_energy_per_flop_j, -1},
            {"tensor_energy_ratio", s.tensor_energy_ratio, -1},
            {"tensor_energy_per_flop_j", s.tensor_energy_per_flop_j, 0},
            {"narrow_energy_ratio", s.narrow_energy_ratio, 0.5},
            {"operand_sharing", s.operand_sharing, -1},
            {"step_cycles", s.step_cycles, 0},
            {"scales_on_tensor_cores", s.scales_on_tensor_cores, -1}};
        for (const auto& [key, read, fallback] : numbers) same(read, facts, key, fallback);
        const nlohmann::json& gemm = facts["gemm"];
        const auto same_catalogue = [&](const GemmCatalogue& read, const nlohmann::json& in, const char* tiles) {
            same(read.split_penalty, in, "split_penalty", 1);
            same(read.most_parts, in, "most_parts", 64);
            same(read.by_time, in, "by_time", 0);
            REQUIRE(read.candidates.size() == in["candidates"].size());
            for (std::size_t i = 0; i < read.candidates.size(); ++i) {
                const GemmCandidate& c = read.candidates[i];
                const nlohmann::json& one = in["candidates"][i];
                CHECK(c.tile.name == one["tile"]);
                same(c.weight, one, "weight", 1);
                same(c.wave_quantization_penalty, one, "wave_quantization_penalty", 0.5);
                same(c.most_rows, one, "most_rows", std::numeric_limits<double>::infinity());
                same(c.tile.resident, one, "resident", gemm["tiles"][tiles][c.tile.name]["resident"]);
                same(c.tile.share, gemm["tiles"][tiles][c.tile.name], "share", 1);
            }
        };
        same_catalogue(s.layers, gemm["layers"], "cuda_core");
        same_catalogue(s.batched, gemm["batched"], "cuda_core");
        same_catalogue(s.tensor, gemm["tensor"], "tensor");
        const char* families[] = {"fp8", "fp8_block", "nvfp4"};
        for (std::size_t i = 0; i < std::size(families); ++i) {
            same_catalogue(s.quantized[i], gemm["quantized"][families[i]], "tensor");
            const auto quantizer =
                gemm.value("quantizers", nlohmann::json::object()).value(families[i], nlohmann::json());
            same(s.quantizers[i].launches, quantizer, "launches", 1);
            same(s.quantizers[i].rows, quantizer, "rows", 0);
            same(s.quantizers[i].columns, quantizer, "columns", 0);
        }
        const auto experts = gemm.value("untuned_experts", nlohmann::json());
        same(s.untuned_experts.efficiency, experts, "efficiency", 1);
        same(s.untuned_experts.dram_share, experts, "dram_share", 1);
        same(s.untuned_experts.fill, experts, "fill", 1);
        for (const auto& [name, read] : {std::pair("flash2", &s.flash2), {"attention", &s.attention}}) {
            if (!facts.contains(name)) continue;
            const nlohmann::json& in = facts[name];
            same(read->mma_share, in, "mma_share", 1);
            same(read->exponential_ratio, in, "exponential_ratio", 1);
            same(read->asynchronous, in, "asynchronous", -1);
            same(read->packs_query_heads, in, "packs_query_heads", -1);
            same(read->decode_rows, in["decode"], "rows", -1);
            same(read->decode_keys, in["decode"], "keys", -1);
            for (const auto& [kind, tiles] : {std::pair("dense", &read->dense), {"paged", &read->paged}}) {
                REQUIRE(tiles->size() == in[kind].size());
                for (std::size_t i = 0; i < tiles->size(); ++i) {
                    same((*tiles)[i].head, in[kind][i], "head", -1);
                    same((*tiles)[i].rows, in[kind][i], "rows", -1);
                    same((*tiles)[i].keys, in[kind][i], "keys", -1);
                }
            }
        }
        same(s.winograd_mosaics, facts["conv"], "winograd_mosaics", -1);
        same(s.cudnn7_names_nonfused, facts["conv"], "cudnn7_names_nonfused", -1);
        for (std::size_t i = 0; i < s.winograd_tiles.size(); ++i) {
            const ConvTile& tile = s.winograd_tiles[i];
            CHECK(facts["conv"]["winograd_tiles"][i] == nlohmann::json{tile.rows, tile.columns, tile.threads});
        }
    }
}

TEST_CASE("every datasheet has a chip with features, tiles and rates") {
    for (const DeviceSpec& device : device_specs()) {
        CAPTURE(device.slug);
        const ArchitectureSpec& chip = device.chip();
        CHECK(chip.architecture == device.architecture);
        if (device.architecture == Architecture::cpu) continue;
        CHECK_FALSE(chip.kin.empty());
        CHECK_FALSE(chip.layers.candidates.empty());
        CHECK_FALSE(chip.batched.candidates.empty());
        CHECK_FALSE(chip.winograd_tiles.empty());
        CHECK(chip.f32_energy_per_flop_j > 1e-12);
        CHECK(chip.dram_share > 0.5);
        CHECK(chip.dram_share <= 1);
        if (device.peak(MathPath::fp16_tensor)) CHECK_FALSE(chip.tensor.candidates.empty());
    }
}

TEST_CASE("a generation inherits what its file does not say, a chip what its generation does not") {
    const auto pascal = read_architecture(Architecture::pascal, 6, 1);
    const auto gp100 = read_architecture(Architecture::pascal, 6, 0);
    CHECK(pascal.schedulers_per_sm == 4);
    CHECK(gp100.schedulers_per_sm == 2);
    CHECK(tiles_of(gp100.layers) == tiles_of(pascal.layers));
    CHECK(pascal.layers.candidates.back().tile.resident == 8);
    CHECK(gp100.layers.candidates.back().tile.resident == 7);
    CHECK(tiles_of(gp100.batched) == std::vector<std::string>{"128x64"});  // Maxwell's
    const auto ga100 = read_architecture(Architecture::ampere, 8, 0),
               ga102 = read_architecture(Architecture::ampere, 8, 6);
    CHECK_FALSE(ga100.integer_shares_lanes);
    CHECK(ga102.integer_shares_lanes);
    CHECK(
        read_architecture(Architecture::volta, 7, 0).layers_without_lt.candidates.empty());  // taken back from Maxwell
    CHECK(read_architecture(Architecture::hopper, 9, 0).asynchronous_copies);                // Ampere's
    CHECK(read_architecture(Architecture::cpu, 0, 0).layers.candidates.empty());
}

TEST_CASE("an architecture is read once and stays where it is") {
    const ArchitectureSpec& first = architecture_spec(Architecture::turing, 7, 5);
    CHECK(&first == &architecture_spec(Architecture::turing, 7, 5));
    CHECK(&first == &device_spec("t4").chip());
}
