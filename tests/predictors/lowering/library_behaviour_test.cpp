#include "predictors/lowering/library_behaviour.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "graphs/base/data_rows.hpp"
#include "graphs/base/embedded.hpp"

using namespace ftax;

TEST_CASE("every row of data/library_rules.tsv names its source and the versions and chips with the rule") {
    std::set<std::string> rules;
    for_each_data_row(embedded_text("data/library_rules.tsv"), [&](DataRow row) {
        rules.emplace(row.text());
        CAPTURE(*rules.rbegin());
        CHECK(row.text() != "none");
        const double from = row.number(-1), until = row.number(1e9);
        CHECK(0 <= from);
        CHECK(from < until);
        const double from_chip = row.number(0), until_chip = row.number(1e9);
        CHECK(from_chip < until_chip);
        CHECK_FALSE(row.text().empty());
    });
    CHECK(rules.size() == sizeof(LibraryBehaviour));  // each field has a row
}

TEST_CASE("a rule holds from its first version until the one that ends it, and for its own library alone") {
    const auto torch = [](int version) { return behaviour_of({.torch = version}, Library::none); };
    CHECK_FALSE(torch(0).flash1);  // unspecified: the newest
    CHECK(torch(201).flash1);
    CHECK_FALSE(torch(202).flash1);
    CHECK_FALSE(torch(210).newest_blas);
    CHECK(torch(211).newest_blas);
    CHECK_FALSE(torch(0).newest_blas);
    CHECK(behaviour_of({.cudnn = 7}, Library::none).cudnn7_heuristic);
    CHECK_FALSE(behaviour_of({.cudnn = 8}, Library::none).cudnn7_heuristic);
    const auto tensorrt = [](int version) { return behaviour_of({.tensorrt = version}, Library::none); };
    CHECK_FALSE(tensorrt(702).launches_groups);
    CHECK(tensorrt(800).launches_groups);
    CHECK_FALSE(tensorrt(804).launches_groups);
    CHECK(behaviour_of({.cudnn = 9}, Library::none).cublas_lt_of_any_size);
    const auto engine = [](Library library, int version, const DeviceSpec& device = device_spec("b200")) {
        return behaviour_of({.engine = version}, library, device);
    };
    CHECK_FALSE(engine(Library::vllm, 10).pads_experts);
    CHECK(engine(Library::vllm, 11).pads_experts);
    CHECK(engine(Library::vllm, 12).pads_experts);
    CHECK_FALSE(engine(Library::vllm, 13).pads_experts);
    CHECK_FALSE(engine(Library::tensorrt_llm, 100).pads_experts);
    CHECK(engine(Library::tensorrt_llm, 101).pads_experts);
    CHECK_FALSE(engine(Library::tensorrt_llm, 102).pads_experts);
    CHECK_FALSE(engine(Library::tensorrt_llm, 101).pads_groups);
    CHECK(engine(Library::tensorrt_llm, 102).pads_groups);
    CHECK(engine(Library::tensorrt_llm, 100).sorts_experts);
    CHECK_FALSE(engine(Library::llama_cpp, 202405).multiplies_int8);
    CHECK(engine(Library::llama_cpp, 202406).multiplies_int8);
    CHECK_FALSE(engine(Library::llama_cpp, 202412).keeps_scores);
    CHECK(engine(Library::llama_cpp, 202500).keeps_scores);
    CHECK_FALSE(engine(Library::llama_cpp, 202412).streams_faster);
    CHECK(engine(Library::llama_cpp, 202500).streams_faster);
    CHECK_FALSE(engine(Library::llama_cpp, 202509).fuses_gates);
    CHECK(engine(Library::llama_cpp, 202510).fuses_gates);
    CHECK_FALSE(engine(Library::llama_cpp, 202604).launches_early);
    CHECK(engine(Library::llama_cpp, 202605).launches_early);
    CHECK(engine(Library::vllm, 2).sums_by_nccl);
    CHECK_FALSE(engine(Library::sglang, 2).sums_by_nccl);
    CHECK(engine(Library::sglang, 4).schedules_ahead);
    CHECK_FALSE(engine(Library::none, 100).captures_decoding);
    CHECK_FALSE(engine(Library::onnxruntime, 113).unlimited_workspace);
    CHECK(engine(Library::onnxruntime, 114).unlimited_workspace);
    CHECK(engine(Library::onnxruntime, 119).sums_in_half);
    CHECK_FALSE(engine(Library::onnxruntime, 120).sums_in_half);
    CHECK_FALSE(engine(Library::none, 119).sums_in_half);
}

TEST_CASE("a rule for some chips holds on these alone, and on none where the device is not known") {
    const auto on = [](const char* device, Library library, int version) {
        return behaviour_of({.engine = version}, library, device_spec(device));
    };
    CHECK(on("h100-sxm5-80gb", Library::vllm, 12).pads_experts);
    CHECK(on("b300", Library::vllm, 12).pads_experts);
    CHECK_FALSE(on("rtx-5090", Library::vllm, 12).pads_experts);  // 12.0: the range ends before 11.0
    CHECK_FALSE(on("a100-sxm4-80gb", Library::vllm, 12).pads_experts);
    CHECK_FALSE(behaviour_of({.engine = 12}, Library::vllm).pads_experts);
    CHECK_FALSE(on("h100-sxm5-80gb", Library::tensorrt_llm, 101).pads_experts);
    CHECK(on("h100-sxm5-80gb", Library::tensorrt_llm, 102).quantizes_by_expert);
    CHECK_FALSE(on("b200", Library::tensorrt_llm, 102).quantizes_by_expert);
    CHECK(on("h100-sxm5-80gb", Library::tensorrt_llm, 102).attends_in_xqa);
    CHECK_FALSE(on("b200", Library::tensorrt_llm, 102).attends_in_xqa);
    CHECK(on("rtx-5090", Library::tensorrt_llm, 102).attends_in_xqa);  // a second range of chips
    CHECK(on("b200", Library::tensorrt_llm, 102).attends_latents_in_fp8);
    CHECK_FALSE(on("b200", Library::vllm, 14).attends_latents_in_fp8);
    CHECK(on("rtx-5090", Library::sglang, 5).leaves_no_gap);
    CHECK_FALSE(on("h100-sxm5-80gb", Library::sglang, 5).leaves_no_gap);
    CHECK(on("h100-sxm5-80gb", Library::llama_cpp, 202605).launches_early);
    CHECK_FALSE(on("rtx-4090", Library::llama_cpp, 202605).launches_early);
    CHECK(on("rtx-3090", Library::llama_cpp, 202500).captures_decoding);
    CHECK_FALSE(on("t4", Library::llama_cpp, 202500).captures_decoding);
}
