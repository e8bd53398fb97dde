#include "src/scenario/generation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "ftax/precision.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/ir/symbol_range.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/kernels/all_reduce.hpp"
#include "src/scenario/language_rows.hpp"
#include "src/scenario/usable_rows.hpp"

namespace ftax::scenario {
namespace {

/// Returns true if engines of 2025 and later store keys and values in fp8 for weights of that precision. Source:
/// ModelOpt, kv_cache_quant_algo of NVIDIA's checkpoints in FP8 and NVFP4; serving_engines.csv, where this is better
/// for each engine (212 rows: median error of a token's time 12.8 -> 9.6 %, mean of the first token's 202 -> 77 %).
bool quantizes_cache(const RunArguments& run) {
    LibraryVersions libraries = run.options.libraries;
    const FrameworkModel& model = framework_model(chosen_framework(run, libraries).name);
    const std::optional<Precision> precision = precision_from_name(run.precision);
    return behaviour_of(model, libraries).schedules_ahead &&
           (precision == Precision::fp8 || precision == Precision::nvfp4);
}

/// Rejects a model that does not generate tokens if the zoo has a similar one that does: gpt2 lacks the cache of
/// gpt2-small. For others, the Generator reports what is missing.
void suggest_decoders(const Graph& graph) {
    if (is_decoder(graph)) return;
    std::vector<std::string> decoders = zoo_names();
    std::erase_if(decoders, [](const std::string& model) { return !is_decoder(ftax::load_graph("zoo:" + model)); });
    const std::vector<std::string> near = near_names(graph.name, decoders);
    if (near.empty()) return;
    throw_error(ErrorCode::model, "{} generates no tokens: it has no KV cache; did you mean {}?", graph.name,
                fmt::join(near, " or "));
}

/// Rejects a size of a dimension, which the lengths of prompts and answers give, and a model with further dimensions.
void require_no_dimensions(const Graph& graph, const ModelArguments& model) {
    if (!model.dims.empty())
        throw_error(ErrorCode::usage, "--dim {}: --batch, --prompt and --new-tokens give the dimensions of {}",
                    model.dims.front(), graph.name);
    constexpr std::array<std::string_view, 4> own{"batch", "seq", cached_tokens, "cache"};
    for (const std::string& symbol : graph.expressions.symbols()) {
        if (!is_decoder(graph) || std::ranges::count(own, symbol) > 0) continue;
        throw_error(ErrorCode::usage, "{} has a further dimension {} (besides batch, seq and {}): fix it with --shapes",
                    graph.name, symbol, cached_tokens);
    }
}

/// Rejects options that another engine has.
void require_engine(std::string_view engine, const RunArguments& run, const SchedulerOptions& scheduler) {
    const MoeBackend experts = run.options.moe_backend;
    const bool marlin = experts == MoeBackend::marlin;
    for (const auto& [option, is_given, owner] :
         {std::tuple("--moe-backend", experts != MoeBackend::by_default, marlin ? "vllm" : "tensorrt-llm"),
          {"--flashinfer-gemm", run.options.flashinfer_gemm, "sglang"},
          {"--scheduler-recv-interval", scheduler.poll_steps > 1, "sglang"},
          {"--batch-wait-iters", scheduler.gather_steps > 0, "tensorrt-llm"},
          {"--batch-wait-ratio", scheduler.gather_share < 1, "tensorrt-llm"},
          {"--dp-balance-iters", scheduler.balance_steps > 0, "tensorrt-llm"}})
        if (is_given && engine != owner)
            throw_error(ErrorCode::usage, "{} is an option of {}; {} has none like it", option, owner, run.framework);
}

std::vector<report::GenerationRow> rows_of(Generator& generator, const GenerationArguments& arguments,
                                           report::GenerationRow row) {
    const ServiceLevel level = parse_level(arguments.choice.level);
    row.version = generator.predictor().framework().version;
    row.host = generator.predictor().framework().host;
    std::vector<report::GenerationRow> rows;
    for (const std::int64_t batch : parse_batches(arguments.batches)) {
        GenerationRequest request = arguments.request;
        request.batch = batch;
        request.images = arguments.model.images;
        const Generation& g = row.generation = generator.generate(request);
        row.crossover = generator.crossover(request, rows.empty() ? nullptr : &rows.front().crossover);
        if (arguments.largest_batch) row.largest_batch = g.at_once;
        if (row.cards > 1) row.exchange_share = exchange_share(generator.decoder(), generator.middle_step(request));
        row.batch = batch;
        row.fits = g.fits;
        row.memory_bytes = g.memory.total_bytes();
        row.latency_s = g.total_s;
        row.first_token_s = g.ttft_s;
        row.per_token_s = g.tpot_s;
        row.items_per_s = g.tokens_per_s;
        row.energy_per_item_j = row.cards * g.energy_j() / static_cast<double>(batch * request.new_tokens);
        row.low = g.low_s / g.total_s;
        row.high = g.high_s / g.total_s;
        hold_to(level, row);
        print_warnings(g.warnings);
        rows.push_back(row);
    }
    return rows;
}

}  // namespace

std::vector<LanguageMeasurement> take_language_rows(RunArguments& run) {
    if (run.anchor.empty()) return {};
    CsvTable table = read_anchors(run.anchor);
    if (!holds_language_models(table)) return {};
    run.anchor.clear();
    return usable_rows(read_language_measurements(std::move(table)),
                       [&](const std::vector<std::string>& warnings) { warn(run, warnings); });
}

ModelArguments with_cache_of(ModelArguments model, const RunArguments& run) {
    if (!model.cache_type.empty() || !quantizes_cache(run)) return model;
    model.cache_type = "fp8";
    warn(run, {fmt::format("keys and values are predicted in fp8, as {} checkpoints for {} specify "
                           "(for others: --kv-precision bf16)",
                           run.precision, run.framework)});
    return model;
}

Graph load_shard(const ModelArguments& model, std::int64_t cards) {
    constexpr std::int64_t most_cards = 64;
    ImportOptions options = import_options(model);
    if (std::min(cards, most_cards + 1) * options.data_parallel > most_cards)
        throw_error(ErrorCode::usage, "--tp {} times --dp {} is more than {} cards", cards, options.data_parallel,
                    most_cards);
    options.tensor_parallel = static_cast<int>(cards);
    return load_graph(model, options);
}

void require_shards(const FrameworkProfile& framework, const DeviceSpec& device, std::int64_t cards) {
    if (!model_of(framework).serving.splits_tensors)
        throw_error(ErrorCode::usage, "--tp {}: not supported for {}, which assigns whole layers to cards", cards,
                    framework.framework);
    if (!device.peer_bandwidth_bytes_per_s)
        throw_error(ErrorCode::usage,
                    "--tp {}: the datasheet of {} has no bandwidth between cards (peer_bandwidth_bytes_per_s)", cards,
                    device.name);
}

std::shared_ptr<const Graph> Shards::load(const ModelArguments& model, std::int64_t cards) {
    const std::lock_guard lock(mutex_);
    const ImportOptions& limits = model.limits;
    auto& graph = graphs_[{model.model, cards, limits.data_parallel, limits.expert_parallel, limits.last_layers,
                           model.cache_type}];
    if (!graph) graph = std::make_shared<const Graph>(load_shard(model, cards));
    return graph;
}

Generator& GenerationModels::add(const ModelArguments& arguments, RunArguments& run, std::int64_t cards,
                                 const std::vector<LanguageMeasurement>& anchors, const SchedulerOptions& scheduler) {
    const ModelArguments model = with_cache_of(arguments, run);
    const Graph& graph = *graphs.emplace_back(shards->load(model, cards));
    suggest_decoders(graph);
    require_no_dimensions(graph, model);
    warn(run, graph.warnings);
    run.precision = name_of(precision_of(graph, run));
    Scenario scenario = resolve(graph, model, run);
    const std::vector<std::string>& doubts = scenario.framework.warnings;
    if (cards > 1) require_shards(scenario.framework, scenario.device.device, cards);
    const kernels::Link link = kernels::link_of(scenario.device.device, scenario.framework.parameters);
    if (cards > 1 && run.link.empty() && link.kind != kernels::LinkKind::nvlink)
        warn(run, {fmt::format("{}: cards are assumed to be linked by PCIe, --link {}", run.device,
                               kernels::link_names[static_cast<std::size_t>(link.kind)])});
    if (const std::int64_t all = cards * model.limits.data_parallel; real(all) > link.cards)
        warn(run, {fmt::format("{} cards: {:g} share a link (--link-cards), all a network of {:g} GB/s a card", all,
                               link.cards, link.network_bytes_per_s * 1e-9)});
    if (run.memory_share > 0 && !model_of(scenario.framework).traits.serves_sequences)
        throw_error(ErrorCode::usage, "--gpu-memory-utilization: {} does not reserve memory",
                    scenario.framework.framework);
    require_engine(scenario.framework.framework, run, scheduler);
    if (!anchors.empty()) {
        const std::size_t known = doubts.size();
        anchor_on(scenario, anchors, model.model, run);
        warn(run, {doubts.begin() + static_cast<std::ptrdiff_t>(known), doubts.end()});
    }
    return generators.emplace_back(graph, std::move(scenario.device), std::move(scenario.framework), scenario.options,
                                   run.memory_share);
}

GenerationResult generate(const GenerationArguments& arguments) {
    GenerationResult result;
    report::GenerationReport& report = result.report;
    RunArguments run = arguments.run;
    const std::vector<LanguageMeasurement> anchors = take_language_rows(run);
    const auto without = arguments.choice.level.empty() ? std::nullopt : std::optional(report::Criterion::throughput);
    report.ranking = ranking_of(arguments.choice, without, "tokens");
    std::vector<report::PredictionReport> runs;
    std::set<std::string> reported;
    for (Combination& one : combinations(run, arguments.choice)) {
        report::GenerationRow row{one.choice()};
        row.model = runs.size();
        try {
            Generator& generator = result.models.add(arguments.model, one.run, one.cards, anchors);
            row.precision = one.run.precision;
            runs.push_back(report_on(generator.predictor(), arguments.model));
            for (report::GenerationRow& batch : rows_of(generator, arguments, row)) {
                reported.insert(batch.generation.warnings.begin(), batch.generation.warnings.end());
                report.rows.push_back(std::move(batch));
            }
        } catch (const Error& error) {
            if (error.code() != ErrorCode::usage) throw;
            row.skipped = error.what();
            report.rows.push_back(std::move(row));
        }
    }
    rank_rows(report.rows, report.ranking);
    if (!report.rows.front().runs()) throw Error(ErrorCode::usage, report.rows.front().skipped);
    report.run = std::move(runs[shown(report).model]);
    report.run.warnings = warnings_besides(reported);
    return result;
}

}  // namespace ftax::scenario
