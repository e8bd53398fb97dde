#include "src/scenario/serving.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "ftax/anchor.hpp"
#include "ftax/equations.hpp"
#include "graphs/base/embedded.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/base/in_parallel.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/csv.hpp"
#include "graphs/files/escape.hpp"
#include "graphs/files/number.hpp"
#include "graphs/ir/operands.hpp"
#include "predictors/analysis/step_table.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/kernels/all_reduce.hpp"
#include "src/report/quantities.hpp"
#include "src/scenario/generation.hpp"

namespace ftax::scenario {
namespace {

/// Serves requests with one combination.
using Server = std::function<Serving(const std::vector<ServingRequest>&)>;

void require(bool holds, const std::string& message) {
    if (!holds) throw Error(ErrorCode::usage, message);
}

/// Whether all is left to one server with --tp.
bool is_plain(const ServingArguments& a) {
    return a.layout == Layout{.tensor = a.layout.tensor} && a.readers.servers == 0 && a.engine.draft_tokens == 0;
}

/// What the options do not check alone.
void check(const ServingArguments& a) {
    require((a.rate != 0) != (a.engine.concurrency != 0 || !a.requests.empty()),
            "give --rate, or --concurrency, --requests or both");
    require(a.draft.empty() || a.engine.draft_tokens > 0, "--draft needs a number of --draft-tokens");
    require(a.cards == 0 || (is_plain(a) && a.prefill.empty() && a.choice.tensor_parallel == "1" && !a.find_rate),
            "--cards tries all layouts: give no other, no --draft-tokens and no --find-rate");
    require(!a.find_rate || (!a.choice.level.empty() && a.engine.concurrency == 0),
            "--find-rate looks for the largest rate that keeps a level: give --slo, and --rate or --requests");
}

std::pair<std::vector<ServingRequest>, std::string> requests_of(const ServingArguments& a, const RunArguments& run,
                                                                const std::string& framework, bool generates) {
    LibraryVersions libraries;
    RunArguments one = run;
    one.framework = framework;
    const FrameworkModel& model = framework_model(chosen_framework(one, libraries).name);
    if (!a.requests.empty()) {
        auto requests = read_requests(a.requests);
        std::string name = fmt::format("{} requests of {}", requests.size(), a.requests);
        if (a.engine.concurrency > 0) name += fmt::format(", {} at a time", a.engine.concurrency);
        return {std::move(requests), std::move(name)};
    }
    std::string name = fmt::format("{} requests", a.count);
    name +=
        a.rate > 0 ? fmt::format(" at {:g} per second", a.rate) : fmt::format(", {} at a time", a.engine.concurrency);
    std::int64_t prompt = 1, output = 1;
    const double spread = a.spread >= 0                                                             ? a.spread
                          : a.engine.concurrency > 0 && behaviour_of(model, libraries).mixes_phases ? 0.2
                                                                                                    : 0;
    if (generates) {
        require(std::min(a.prompt, a.new_tokens) >= 1 && std::max(a.prompt, a.new_tokens) <= most_tokens,
                fmt::format("give --prompt and --new-tokens, from 1 to {}, or --requests", most_tokens));
        prompt = a.prompt;
        output = a.new_tokens;
        name += fmt::format(", {} tokens in and {} out", prompt, output);
    }
    return {draw_requests(a.count, a.rate, prompt, output, spread, static_cast<std::uint64_t>(a.seed)),
            std::move(name)};
}

SchedulerOptions scheduler_options(const ServingArguments& arguments, const Generator& generator,
                                   const LibraryBehaviour& libraries, const ServingTraits& traits) {
    SchedulerOptions options = arguments.engine;
    if (options.frontend_s == 0) options.frontend_s = traits.frontend_s;
    options.mixes_phases = libraries.mixes_phases;
    options.chunks_prompts = libraries.chunks_prompts;
    options.schedules_ahead = libraries.schedules_ahead;
    options.evicts = traits.evicts_sequences;
    options.caches_prefixes = options.mixes_phases;  // vLLM's V1 engine, SGLang's radix cache
    const EngineLimits limits = generator.engine_limits();
    constexpr std::int64_t most_with_drafts = 48;  // source: SGLang, server_args.py (_handle_speculative_decoding)
    const bool few = libraries.sizes_by_memory && options.draft_tokens > 0;
    if (options.max_sequences == 0) options.max_sequences = few ? most_with_drafts : limits.sequences;
    if (options.max_tokens == 0) options.max_tokens = limits.tokens;
    require(options.max_tokens >= options.max_sequences || !options.mixes_phases || arguments.engine.max_tokens == 0,
            fmt::format("--max-num-batched-tokens {} is less than a token for each of {} sequences", options.max_tokens,
                        options.max_sequences));
    return options;
}

/// What the sampler's kernels take for each token of a version that sorts the logits for top-k and top-p.
double sampling_s(const Graph& graph, const DeviceSpec& device, const LibraryBehaviour& libraries) {
    constexpr double traffic_bytes = 500;  // of a logit
    const Tensor& logits = graph.tensors[graph.outputs[0]];
    if (!libraries.sorts_logits || graph.ops[logits.producer].integer(samples_all_attribute, 0) != 0) return 0;
    return vocabulary_of(graph) * traffic_bytes / device.memory_bandwidth_bytes_per_s;
}

void check_context(const Graph& graph, const std::vector<ServingRequest>& requests) {
    for (const SymbolRange& range : graph.ranges) {
        if (range.symbol != "past+seq") continue;
        for (const ServingRequest& request : requests)
            require(request.prompt + request.output <= range.greatest,
                    fmt::format("a request of {} + {} tokens is longer than the context of {}, {} tokens",
                                request.prompt, request.output, graph.name, range.greatest));
    }
}

/// Parses "servers=2,tp=4,dp=1,ep=1".
Layout parse_layout(const std::string& text) {
    Layout layout;
    const std::map<std::string, std::int64_t*, std::less<>> parts{
        {"servers", &layout.servers}, {"tp", &layout.tensor}, {"dp", &layout.data}, {"ep", &layout.experts}};
    for (const std::string& word : split_list(text)) {
        const auto [name, number] = split_at(word, '=');
        const auto part = parts.find(name);
        const auto count = parse_integer(number);
        require(part != parts.end() && count && *count >= 1 && *count <= most_parts,
                fmt::format("--prefill {}: not one of servers, tp, dp and ep with a number, as in servers=2,tp=4",
                            escape_terminal(excerpt(word))));
        *part->second = *count;
    }
    return layout;
}

/// A layer is a module of its own, "layers.3", inside others.
std::int64_t layers_of(const Graph& graph) {
    std::int64_t layers = 1;
    for (const Op& op : graph.ops) {
        const std::size_t at = op.module.find("layers.");
        if (at == std::string::npos) continue;
        const std::string_view rest = std::string_view(op.module).substr(at + 7);
        layers = std::max(layers, 1 + parse_integer(rest.substr(0, rest.find('.'))).value_or(0));
    }
    return layers;
}

/// What holds however many requests come.
void describe(report::ServingRow& row, const Predictor& predictor, const Prediction& step) {
    row.low = step.low_s / step.latency_s;
    row.high = step.high_s / step.latency_s;
    row.version = predictor.framework().version;
    row.idle_w = predictor.device().device.idle_power_w();
    for (const auto* more : {&step.warnings, &predictor.device().warnings, &predictor.framework().warnings})
        row.warnings = report::joined(row.warnings, *more);
}

/// What drafts, cut like the model; null where that takes no time.
Generator* draft_model(const ServingArguments& arguments, RunArguments& run, const ModelArguments& model,
                       const Graph& graph, const Layout& layout, GenerationModels& models) {
    if (arguments.engine.draft_tokens == 0 || arguments.draft == "ngram") return nullptr;
    ModelArguments draft = model;
    if (arguments.draft.empty() || arguments.draft == "head") {
        draft.limits.last_layers = 1;
    } else {
        draft.model = arguments.draft;
        draft.limits.data_parallel = draft.limits.expert_parallel = 1;
    }
    Generator& drafting = models.add(draft, run, layout.tensor, {});
    require(vocabulary_of(*models.graphs.back()) == vocabulary_of(graph),
            fmt::format("--draft {} has tokens of its own: {} a card, not {}", draft.model,
                        vocabulary_of(*models.graphs.back()), vocabulary_of(graph)));
    return &drafting;
}

/// Limits the sequences to those whose states have slots; returns the bytes of these. Of what is left beside the
/// weights, 0.9 / 1.9 is for states (--mamba-full-memory-ratio); a sequence has five slots, which also serve the radix
/// cache, and one for each token that a step verifies. Source: SGLang, mem_cache/kv_cache_configurator.py.
double take_state_slots(SchedulerOptions& options, double room_bytes, double state_bytes) {
    constexpr double share = 0.9 / 1.9, of_sequence = 5;
    const auto verified = static_cast<double>(options.draft_tokens > 0 ? options.draft_tokens + 1 : 0);
    const double most = room_bytes * share / state_bytes - 1 - verified;
    const double slots = std::max(of_sequence, std::floor(most / (1 + verified / of_sequence)));
    options.max_sequences = std::min(options.max_sequences, static_cast<std::int64_t>(slots / of_sequence));
    return state_bytes * (slots + 1 + verified * static_cast<double>(options.max_sequences + 1));
}

/// Sets the room for keys and values, in tokens of a group; returns the bytes that a token takes of a card.
double set_cache_room(SchedulerOptions& options, const Layout& layout, Generator& generator, Generator* draft,
                      std::int64_t length, const LibraryBehaviour& libraries, MemoryUse& memory) {
    memory = generator.serving_memory({options.max_sequences, options.max_tokens}, length);
    if (draft != nullptr) {
        const MemoryUse more = draft->serving_memory({1, 1}, length);
        memory.weights_bytes += more.weights_bytes;
        memory.cache_bytes += more.cache_bytes;
    }
    const auto stages = static_cast<double>(layout.stages);
    const double token_bytes = memory.cache_bytes / static_cast<double>(length) / stages;
    memory.cache_bytes = 0;
    memory.weights_bytes /= stages;
    require(generator.fits(memory), generator.does_not_fit(memory));
    double room_bytes = generator.limit_bytes(memory) - memory.total_bytes(), key_bytes = token_bytes;
    if (libraries.slots_states && memory.state_bytes > 0) {
        key_bytes -= memory.state_bytes / static_cast<double>(length) / stages;
        room_bytes -= take_state_slots(options, room_bytes, memory.state_bytes / stages);
    }
    options.cache_tokens = static_cast<std::int64_t>(room_bytes / key_bytes);
    memory.cache_bytes = generator.limit_bytes(memory) - memory.total_bytes();
    return token_bytes;
}

/// An engine with continuous batching. `row` gets what holds of it alone, `token_bytes` what a token takes of a card.
ServerPool language_pool(const ServingArguments& arguments, RunArguments& run, const Layout& layout,
                         const std::vector<LanguageMeasurement>& anchors, const std::vector<ServingRequest>& requests,
                         GenerationModels& models, report::ServingRow& row, double& token_bytes) {
    ModelArguments model = arguments.model;
    model.limits.data_parallel = static_cast<int>(layout.data);
    model.limits.expert_parallel = static_cast<int>(layout.experts);
    std::vector<LanguageMeasurement> batches = anchors;
    std::erase_if(batches, [](const LanguageMeasurement& anchor) { return anchor.clients > 0; });
    Generator& generator = models.add(model, run, layout.tensor, batches, arguments.engine);
    const Graph& graph = *models.graphs.back();
    const FrameworkModel& framework = model_of(generator.predictor().framework());
    require(framework.traits.serves_sequences,
            fmt::format("{} has no scheduler of requests: vllm, sglang and tensorrt-llm have", run.framework));
    check_context(graph, requests);
    const std::int64_t layers = layers_of(graph);
    require(layout.stages <= layers, fmt::format("--pp {} is more than {} layers", layout.stages, layers));
    if (layout.cards() > 1) require_shards(generator.predictor().framework(), generator.device(), layout.cards());
    row.warnings = graph.warnings;
    Generator* const draft = draft_model(arguments, run, model, graph, layout, models);
    const LibraryBehaviour libraries =
        behaviour_of(framework, generator.predictor().options().libraries, generator.device());
    require(arguments.captured_tokens <= 0 ||
                (libraries.captures_decoding && framework.serving.most_captured_sequences > 1),
            fmt::format("--captured-tokens: {} captures no steps with prompts", run.framework));
    SchedulerOptions options = scheduler_options(arguments, generator, libraries, framework.serving);
    options.groups = layout.data;
    if (libraries.reserves_answers) options.answer_share = layout.data > 1 ? 0.3 * 0.7 : 0.7;
    for (std::int64_t* limit : {&options.max_tokens, &options.max_sequences})
        if (libraries.sizes_by_memory) *limit = std::max<std::int64_t>(*limit / layout.data, 1);
    options.stages = layout.stages;
    options.images = arguments.model.images;
    if (options.images > 0) options.image_tokens = graph.image_encoder->tokens;
    double tokens = 0;
    for (const ServingRequest& request : requests) tokens += static_cast<double>(request.prompt + request.output);
    const auto mean = static_cast<std::int64_t>(std::ceil(tokens / static_cast<double>(requests.size())));
    token_bytes = set_cache_room(options, layout, generator, draft, mean, libraries, row.memory);
    row.cache_tokens = options.cache_tokens * layout.data;
    constexpr std::int64_t typical_sequences = 32;
    const std::int64_t together = arguments.engine.concurrency > 0 ? arguments.engine.concurrency : typical_sequences;
    describe(row, generator.predictor(),
             generator.decoder().predict(generator.pass({}, std::min(together, options.max_sequences), 1, mean / 2)));
    // Source: vLLM, config/vllm.py (_set_cudagraph_sizes).
    const std::int64_t captured_tokens =
        libraries.captures_pieces ? std::min<std::int64_t>(2 * options.max_sequences, 512) : 0;
    const StepOptions step{
        .schedules_ahead = options.schedules_ahead,
        .sampling_s = sampling_s(graph, generator.device(), libraries),
        .captured_tokens = arguments.captured_tokens >= 0 ? arguments.captured_tokens : captured_tokens,
        .draft_tokens = options.draft_tokens,
        .draft = draft};
    const auto table = std::make_shared<StepTable>(generator, step);
    return {.options = options,
            .step = [table](const StepLoad& load) { return (*table)(load); },
            .servers = layout.servers,
            .cards = layout.cards()};
}

/// Serves requests with a pool in place of the one that decodes.
using PoolServer = std::function<Serving(const std::vector<ServingRequest>&, const ServerPool&)>;

/// What the time of a token of a run depends on.
ServedRun served_run(std::string model, const RunArguments& run, const ServerPool& pool,
                     const std::vector<ServingRequest>& requests, const Serving& serving) {
    double prompt = 0, context = 0;
    for (const ServingRequest& request : requests) {
        prompt += static_cast<double>(request.prompt) / static_cast<double>(requests.size());
        context += static_cast<double>(request.output) / 2 / static_cast<double>(requests.size());
    }
    const double token_s = serving.tpot_s.mean, decoding_s = std::min(serving.itl_s.p50, token_s);
    const double alone_s = std::min(decoding_s, pool.step({0, 0, 1, prompt + context}).latency_s);
    return {.model = std::move(model),
            .precision = precision_from_name(run.precision).value_or(Precision::bf16),
            .prompt_share = (token_s - decoding_s) / token_s,
            .sequence_share = (decoding_s - alone_s) / token_s,
            .sequences = std::max(1.0, serving.mean_sequences),
            .cards = static_cast<double>(pool.cards),
            .prompt = prompt};
}

/// Serves the clients of a measured run; its error is not yet part of the time. `arguments`: of the engine.
ServedRun served_anchor(const LanguageMeasurement& measured, const std::vector<LanguageMeasurement>& anchors,
                        ServingArguments arguments, RunArguments run, GenerationModels models) {
    if (!is_same_model(run.models, measured.model, arguments.model.model))
        arguments.model.model = locate_model(run.models, measured.model);
    constexpr std::int64_t fewest_requests = 20;
    arguments.rate = 0;
    arguments.model.images = 0;
    arguments.requests.clear();
    arguments.engine.concurrency = measured.clients;
    arguments.count = std::max(fewest_requests, 5 * measured.clients);
    arguments.prompt = measured.prompt;
    arguments.new_tokens = measured.new_tokens;
    arguments.engine.draft_tokens = 0;
    if (measured.most_sequences > 0) arguments.engine.max_sequences = measured.most_sequences;
    if (!measured.version.empty()) run.framework = versioned(measured.framework, measured.version);
    run.precision = name_of(measured.precision);
    const auto requests = requests_of(arguments, run, run.framework, true).first;
    report::ServingRow row;
    double token_bytes = 0;
    const Layout layout{1, measured.cards, measured.data_parallel, measured.expert_parallel, 1};
    const ServerPool pool = language_pool(arguments, run, layout, anchors, requests, models, row, token_bytes);
    const Serving serving = ftax::serve(requests, pool);
    ServedRun anchor = served_run(arguments.model.model, run, pool, requests, serving);
    anchor.log_error = -std::log(serving.tpot_s.mean);
    return anchor;
}

/// Servers of one combination, with what holds of each however many they are, or why there are none; and its anchors.
struct SharedPools {
    GenerationModels models;
    /// By layout and drafts, each with the bytes of a token.
    std::map<std::pair<Layout, std::int64_t>, std::tuple<ServerPool, double, report::ServingRow, std::string>> pools{};
    /// By all but the measured time.
    std::map<LanguageMeasurement, std::pair<std::optional<ServedRun>, std::string>> anchors{};
};

/// Slows the decoding of a pool by what measured runs of its engine and card suggest; steps with prompts take as long
/// as before, which first tokens wait for.
void correct(ServerPool& pool, const PoolServer& run_with, const ServingArguments& arguments, const RunArguments& run,
             const std::vector<LanguageMeasurement>& anchors, const std::vector<ServingRequest>& requests,
             SharedPools& shared, report::ServingRow& row) {
    const std::string& card = shared.models.generators.front().device().slug;
    std::vector<ServedRun> served;
    bool any = false;
    for (const LanguageMeasurement& anchor : anchors) {
        if (anchor.clients == 0) continue;
        any = true;
        if (device_spec(anchor.gpu).slug != card || framework_name(anchor.framework) != unversioned(run.framework))
            continue;
        LanguageMeasurement scenario = anchor;
        scenario.latency_s = 0, scenario.line = 0;
        const auto [found, added] = shared.anchors.try_emplace(std::move(scenario));
        auto& [simulation, problem] = found->second;
        try {
            if (added) simulation = served_anchor(anchor, anchors, arguments, run, {.shards = shared.models.shards});
        } catch (const Error& error) {
            problem = error.what();
        }
        if (simulation) {
            served.push_back(*simulation);
            served.back().log_error += std::log(anchor.latency_s);
        } else {
            row.warnings.push_back(fmt::format("anchor in line {} is left out: {}", anchor.line, problem));
        }
        constexpr std::size_t most_served = 1000;  // the work grows with the third power
        if (served.size() > most_served)
            throw_error(ErrorCode::limit, "more than {} anchor rows of servers with {} on {}", most_served,
                        run.framework, card);
    }
    if (any && served.empty())
        row.warnings.push_back(fmt::format("no anchor row is of a server with {} on {}", run.framework, card));
    if (served.empty()) return;
    const Serving serving = run_with(requests, pool);
    if (serving.tpot_s.mean == 0) return;  // one token each
    const ServedRun own = served_run(arguments.model.model, run, pool, requests, serving);
    const ServedError error = served_error(served, own);
    constexpr double least_share = 0.3;  // where prompts take most of the time, decoding cannot make up for all of it
    const double more = (error.factor - 1) / std::max(least_share, 1 - own.prompt_share);
    row.low = std::exp(-equations::normal_90 * error.log_stddev);
    row.high = 1 / row.low;
    pool.step = [step = pool.step, more](const StepLoad& load) {
        StepCost cost = step(load);
        if (load.sequences == 0) return cost;
        const StepCost decoding = load.prompt_tokens == 0 ? cost : step({0, 0, load.sequences, load.context});
        for (const auto part : {&StepCost::host_s, &StepCost::device_s, &StepCost::latency_s, &StepCost::energy_j})
            cost.*part += more * decoding.*part;
        return cost;
    };
}

/// language_pool(), once for servers that are alike.
ServerPool shared_pool(const ServingArguments& arguments, RunArguments& run, Layout layout,
                       const std::vector<LanguageMeasurement>& anchors, const std::vector<ServingRequest>& requests,
                       SharedPools& shared, report::ServingRow& row, double& token_bytes) {
    const std::int64_t servers = std::exchange(layout.servers, 1);
    const auto [found, added] = shared.pools.try_emplace({layout, arguments.engine.draft_tokens});
    auto& [pool, own_bytes, own, problem] = found->second;
    try {
        if (added) own = row;
        if (added) pool = language_pool(arguments, run, layout, anchors, requests, shared.models, own, own_bytes);
    } catch (const Error& error) {
        if (error.code() != ErrorCode::usage) throw;
        problem = error.what();
    }
    if (added) own.precision = run.precision;
    run.precision = own.precision;
    require(problem.empty(), problem);
    const auto kept = std::tuple(row.cards, row.layout, row.dollars_per_hour);
    row = own;
    std::tie(row.cards, row.layout, row.dollars_per_hour) = kept;
    token_bytes = own_bytes;
    ServerPool several = pool;
    several.servers = servers;
    return several;
}

Server language_server(const ServingArguments& arguments, Combination& one,
                       const std::vector<LanguageMeasurement>& anchors, const std::vector<ServingRequest>& requests,
                       SharedPools& shared, report::ServingRow& row) {
    const auto& [layout, readers] = std::tie(arguments.layout, arguments.readers);
    const std::int64_t cards = layout.servers * layout.cards() + readers.servers * readers.cards();
    row.cards = static_cast<int>(cards);
    if (row.dollars_per_hour) *row.dollars_per_hour *= static_cast<double>(cards) / static_cast<double>(one.cards);
    if (arguments.cards > 0 || !is_plain(arguments)) row.layout = layout.text();
    if (arguments.engine.draft_tokens > 0) row.layout += fmt::format(", {} drafts", arguments.engine.draft_tokens);
    if (readers.servers > 0) row.layout = fmt::format("prefill {}, decode {}", readers.text(), row.layout);
    require(!row.is_saturated, "more of these servers do not keep up with the requests");
    double token_bytes = 0;
    const auto anchored = [&](ServerPool pool, const PoolServer& run_with) -> Server {
        correct(pool, run_with, arguments, one.run, anchors, requests, shared, row);
        return [=](const std::vector<ServingRequest>& some) { return run_with(some, pool); };
    };
    if (readers.servers == 0) {
        return anchored(shared_pool(arguments, one.run, layout, anchors, requests, shared, row, token_bytes),
                        [](const auto& some, const ServerPool& pool) { return ftax::serve(some, pool); });
    }
    ServingArguments reading = arguments;
    reading.engine.draft_tokens = 0;
    ServerPool prefill = shared_pool(reading, one.run, readers, anchors, requests, shared, row, token_bytes);
    prefill.options.max_sequences = prefill.options.max_tokens;  // --max-num-seqs is for those that decode
    // Source: SGLang, server_args.py (--load-balance-method auto): by the number of a request, drawn at random.
    prefill.options.draws_groups = unversioned(one.run.framework) == "sglang";
    const double sent_bytes = token_bytes;
    ServerPool decode = shared_pool(arguments, one.run, layout, anchors, requests, shared, row, token_bytes);
    constexpr double send_s = 1e-3;
    Generator& generator = shared.models.generators.front();
    const kernels::Link link = kernels::link_of(generator.device(), generator.predictor().framework().parameters);
    const bool joins =
        one.run.network_bytes_per_s == 0 && generator.device().peer_bandwidth_bytes_per_s && real(cards) <= link.cards;
    const double bytes_per_s = joins ? link.bytes_per_s : link.network_bytes_per_s;
    return anchored(std::move(decode), [=](const auto& some, const ServerPool& pool) {
        return ftax::serve(some, prefill, pool, [=](std::int64_t prompt) {
            return send_s + static_cast<double>(prompt) * sent_bytes / bytes_per_s;
        });
    });
}

Server batch_server(const ServingArguments& arguments, RunArguments& run, const Graph& graph, report::ServingRow& row) {
    run.precision = name_of(precision_of(graph, run));
    run.options.synchronized = true;
    const auto predictor = std::make_shared<Predictor>(make_predictor(graph, arguments.model, run));
    const ShapeBindings dims = dimension_bindings(graph, arguments.model);
    row.memory = predictor->memory(with_batch(dims, arguments.max_batch));
    const Prediction largest = predictor->predict(with_batch(dims, arguments.max_batch));
    require(row.memory.fits(),
            fmt::format("a batch of {} does not fit: {:.1f} GB of {:.1f} GB of memory", arguments.max_batch,
                        row.memory.total_bytes() * 1e-9, row.memory.capacity_bytes * 1e-9));
    describe(row, *predictor, largest);
    const auto costs = std::make_shared<std::map<std::int64_t, StepCost>>();
    const BatchingOptions options{arguments.max_batch, arguments.max_delay_s, arguments.engine.concurrency};
    return [=](const std::vector<ServingRequest>& some) {
        return serve_batches(some, options, [&](std::int64_t batch) {
            const auto [found, added] = costs->try_emplace(batch);
            if (added) {
                const Prediction p = predictor->predict(with_batch(dims, batch));
                found->second = {p.host_s, p.device_s, p.latency_s, p.bound, p.power_w * p.latency_s};
            }
            return found->second;
        });
    };
}

void serve_row(const ServingArguments& arguments, const Server& server, const std::vector<ServingRequest>& requests,
               const report::ServingReport& report, report::ServingRow& row) {
    row.serving = server(requests);
    const Serving& s = row.serving;
    row.kept_share = kept_share(s, report.level);
    row.serving.requests = std::vector<RequestTimes>();  // gives the memory back, as {} does not
    row.latency_s = s.latency_s.p99;
    row.memory_bytes = row.memory.total_bytes();
    row.items_per_s = report.generates ? s.tokens_per_s : s.requests_per_s;
    if (report.generates) row.first_token_s = s.ttft_s.p99;
    if (report.generates) row.per_token_s = s.tpot_s.p99;
    if (report.ranking.has_level) hold_to(report.level, row);
    row.keeps_level = row.kept_share >= report.level.share;
    const double idle_w = row.cards * row.idle_w * (1 - s.utilisation);
    row.energy_per_item_j = (s.energy_j / s.duration_s + idle_w) / *row.items_per_s;
    const auto count = static_cast<double>(requests.size());
    const double last_s = requests.back().arrival_s;
    const bool open = arguments.engine.concurrency == 0 && last_s > 0;
    const double own_rate = arguments.rate > 0 ? arguments.rate : open ? count / last_s : 0;
    constexpr double busy = 0.9, nearly = 0.98, all_at_once = std::numeric_limits<double>::infinity();
    constexpr std::size_t most_of_curve = 10'000;  // requests that its percentiles need
    const auto run_at = [&](double rate, std::size_t most = std::numeric_limits<std::size_t>::max()) {
        std::vector<ServingRequest> faster(
            requests.begin(), requests.begin() + static_cast<std::ptrdiff_t>(std::min(most, requests.size())));
        for (ServingRequest& request : faster) request.arrival_s *= own_rate / rate;
        return server(faster);
    };
    double holds = all_at_once;
    // Where pools or stages do different work, one may be at its limit while most cards wait.
    if (open && (row.serving.utilisation > busy || !is_plain(arguments))) {
        holds = run_at(all_at_once).requests_per_s;
        row.is_saturated = own_rate > nearly * holds;
    }
    if (!open) return;
    row.is_paced = !row.is_saturated;
    if (row.is_saturated) {
        row.largest_rate = holds;
        row.warnings.push_back(
            fmt::format("{} is saturated: {} requests/s arrive, {}/s are served; the queue grows without bound",
                        report::with_cards(row), report::significant(own_rate), report::significant(holds)));
    } else {
        // All that arrives is served, whichever arrivals were drawn.
        double tokens = static_cast<double>(arguments.new_tokens);
        if (!arguments.requests.empty()) tokens = s.tokens_per_s / s.requests_per_s;
        row.items_per_s = own_rate * (report.generates ? tokens : 1);
    }
    if (arguments.find_rate) {
        row.largest_rate = find_rate(run_at, report.level, std::min(own_rate, holds));
        if (*row.largest_rate == 0) row.warnings.emplace_back("no rate keeps the level");
    }
    if (!arguments.rates || arguments.cards > 0) return;
    if (!std::isfinite(holds)) holds = run_at(all_at_once, most_of_curve).requests_per_s;
    for (const double share : {0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2}) {
        const Serving serving = run_at(share * holds, most_of_curve);
        row.rates.push_back({share * holds, serving.latency_s.p50, serving.latency_s.p99});
    }
}

/// A combination with a layout; servers of one group generate alike.
struct Trial {
    ServingArguments arguments;
    Combination one;
    std::size_t group = 0;
};

/// Layouts of one server on as many cards as divide `cards`. Groups share experts; those of TensorRT-LLM are cards.
std::vector<Layout> server_layouts(std::int64_t cards, bool has_experts, bool splits_groups) {
    std::vector<Layout> layouts;
    for (Layout one; one.tensor <= cards; ++one.tensor) {
        for (one.data = 1; one.data <= (has_experts ? cards : 1); ++one.data) {
            for (one.stages = 1; one.cards() <= cards; ++one.stages) {
                if (cards % one.cards() != 0 || (one.data > 1 && one.tensor > 1 && !splits_groups)) continue;
                layouts.push_back(one);
                if (!has_experts || one.tensor * one.data == 1) continue;
                layouts.push_back(one);
                layouts.back().experts = one.tensor * one.data;
            }
        }
    }
    return layouts;
}

/// Without a search the one layout of the arguments, else each with every number of servers, most first.
std::vector<Trial> trials_of(const ServingArguments& arguments, const RunArguments& run, const Graph& graph) {
    const bool has_experts =
        std::ranges::any_of(graph.ops, [](const Op& op) { return op.integer(experts_attribute, 0) > 0; });
    const std::int64_t cards = arguments.cards;
    std::vector<Trial> trials;
    std::size_t group = 0;
    for (const Combination& one : combinations(run, arguments.choice)) {
        const bool splits_groups = unversioned(one.run.framework) != "tensorrt-llm";
        const std::vector<Layout> layouts = server_layouts(cards, has_experts, splits_groups);
        std::vector<Layout> all_readers{{.servers = 0}};
        for (Layout some : layouts)
            for (; some.stages == 1 && some.servers * some.cards() < cards; ++some.servers) all_readers.push_back(some);
        for (const Layout& layout : layouts) {
            for (const Layout& readers : all_readers) {
                for (std::int64_t servers = cards / layout.cards(); servers > 0; --servers) {
                    const std::int64_t all = servers * layout.cards() + readers.servers * readers.cards();
                    if (all > cards || cards % all != 0 || readers.servers * layout.stages > readers.servers) continue;
                    Trial& trial = trials.emplace_back(Trial{arguments, one, group});
                    trial.arguments.layout = layout;
                    trial.arguments.layout.servers = servers;
                    trial.arguments.readers = readers;
                }
            }
            ++group;
        }
        if (cards > 0) continue;
        ServingArguments& given = trials.emplace_back(Trial{arguments, one, group++}).arguments;
        given.layout.tensor = one.cards;
        if (!given.prefill.empty()) given.readers = parse_layout(given.prefill);
    }
    return trials;
}

/// The commands of data/commands.csv for a layout and its requests; options without "--" are lines of a YAML file.
std::vector<std::string> commands_of(const ServingArguments& a, const Combination& one) {
    static const CsvTable table(embedded_text("data/commands.csv"), "data/commands.csv");
    const std::string engine = unversioned(one.run.framework);
    std::size_t row = 0;
    while (row < table.rows() && table.cell(row, "engine") != engine) ++row;
    if (row == table.rows()) return {};
    const std::filesystem::path path(a.model.model);
    const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
    const std::string model = path.filename() == "config.json" ? folder : a.model.model;
    std::vector<std::string> commands;
    const auto add = [&](const Layout& layout, const char* role) {
        std::string command = fmt::format("{} {}", table.cell(row, "launch"), model), file;
        const std::int64_t tensor = layout.tensor * (engine == "vllm" ? 1 : layout.data);
        for (const auto& [name, value, none] : {std::tuple<std::string_view, double, double>("tp", tensor, 1),
                                                {"dp", layout.data, 1},
                                                {"pp", layout.stages, 1},
                                                {"ep", layout.experts, 1},
                                                {"max-num-seqs", *role == 'p' ? 0 : a.engine.max_sequences, 0},
                                                {"max-num-batched-tokens", a.engine.max_tokens, 0},
                                                {"gpu-memory-utilization", a.run.memory_share, 0},
                                                {"fp16", !a.run.precision.empty() && one.run.precision == "fp16", 0},
                                                {"fp8", !a.run.precision.empty() && one.run.precision == "fp8", 0},
                                                {"fp8 cache", with_cache_of(a.model, one.run).cache_type == "fp8", 0},
                                                {"cutlass", a.run.options.moe_backend == MoeBackend::cutlass, 0},
                                                {"trtllm", a.run.options.moe_backend == MoeBackend::trtllm, 0},
                                                {"marlin", a.run.options.moe_backend == MoeBackend::marlin, 0},
                                                {"flashinfer", a.run.options.flashinfer_gemm, 0},
                                                {role, 1, 0}}) {
            std::string option(table.cell(row, name));
            if (value == none || option.empty()) continue;
            if (const std::size_t at = option.find("{}"); at != std::string::npos)
                option.replace(at, 2, format_number(value));
            option.starts_with("--") ? command += " " + option : file += option + "\\n";
        }
        if (!file.empty()) command += fmt::format(" --extra_llm_api_options <(printf '{}')", file);
        if (layout.servers > 1 || *role != 0)
            command += fmt::format("  # {}{}{} server{}", layout.servers, *role == 0 ? "" : " ", role,
                                   layout.servers == 1 ? "" : "s");
        commands.push_back(command);
    };
    if (a.readers.servers > 0) add(a.readers, "prefill");
    add(a.layout, a.readers.servers > 0 ? "decode" : "");
    if (!a.requests.empty()) return commands;  // a file is none of its data sets
    commands.push_back(fmt::format(
        "{} --model {} --dataset-name random --random-input-len {} --random-output-len {} --num-prompts {} {}",
        table.cell(row, "benchmark"), model, a.prompt, a.new_tokens, a.count,
        a.rate > 0 ? fmt::format("--request-rate {:g}", a.rate)
                   : fmt::format("--max-concurrency {}", a.engine.concurrency)));
    return commands;
}

/// Serves the requests of each trial, those of a group one after the other; row i is that of trial i.
void serve_trials(const Graph& graph, const std::vector<LanguageMeasurement>& anchors,
                  const std::map<std::string, std::vector<ServingRequest>>& requests, std::vector<Trial>& trials,
                  std::vector<HeldWarnings>& warnings, report::ServingReport& report) {
    const auto shards = std::make_shared<Shards>();
    in_parallel(warnings.size(), 0, [&](std::size_t group) {
        SharedPools shared{.models = {.shards = shards}};
        for (std::size_t i = 0; i < trials.size(); ++i) {
            auto& [own, one, own_group] = trials[i];
            if (own_group != group) continue;
            one.run.held = &warnings[group];
            report::ServingRow& row = report.rows[i];
            const std::vector<ServingRequest>& some = requests.at(one.run.framework);
            try {
                require(report.generates || (own.cards == 0 && own.layout == Layout{} && is_plain(own)),
                        "--tp, --dp, --ep, --pp, --replicas, --prefill, --cards and --draft-tokens are for language "
                        "models");
                row.is_saturated = i > 0 && trials[i - 1].group == group && report.rows[i - 1].is_saturated &&
                                   trials[i - 1].arguments.readers == own.readers;
                const Server server = report.generates ? language_server(own, one, anchors, some, shared, row)
                                                       : batch_server(own, one.run, graph, row);
                serve_row(own, server, some, report, row);
                if (own.cards > 0) row.commands = commands_of(own, one);
            } catch (const Error& error) {
                if (error.code() != ErrorCode::usage) throw;
                row.skipped = error.what();
            }
            row.precision = one.run.precision;
        }
    });
}

/// Finds the front of a search, ranks the rows and prints the warnings of those that are shown.
void rank_trials(const std::vector<Trial>& trials, std::vector<HeldWarnings>& warnings, report::ServingReport& report) {
    std::set<std::string> reported;
    const auto warn = [&](std::size_t group, const report::ServingRow& row) {
        release(warnings[group]);
        print_warnings(row.warnings);
        reported.insert(row.warnings.begin(), row.warnings.end());
    };
    for (std::size_t i = 0; report.searches == 0 && i < warnings.size(); ++i) warn(i, report.rows[i]);
    if (std::all_of(report.rows.begin(), report.rows.end(), [](const report::ServingRow& row) { return !row.runs(); }))
        throw Error(ErrorCode::usage, report.rows.front().skipped);
    const auto choices = choices_of(report.rows);
    for (report::ServingRow& row : report.rows) {
        row.on_front = report.searches > 0 && is_on_front(row, choices);
        if (row.on_front)
            row.rates = {{row.dollars_per_million().value_or(row.cost()), row.serving.latency_s.p50, *row.latency_s}};
    }
    rank_rows(report.rows, report.ranking);
    for (const Trial& trial : trials)
        if (report.searches > 0 && trial.one.run.device == report.rows.front().device)
            warn(trial.group, report.rows.front());
    if (report.ranking.has_level && !report.rows.front().keeps_level)
        print_warnings({report.warnings.emplace_back("no combination keeps the level")});
    reported.insert(report.warnings.begin(), report.warnings.end());
    report.warnings = report::joined(report.warnings, warnings_besides(reported));
}

}  // namespace

std::string Layout::text() const {
    std::string text = servers > 1 ? fmt::format("{} x tp {}", servers, tensor) : fmt::format("tp {}", tensor);
    for (const auto& [name, count] : {std::pair("dp", data), {"ep", experts}, {"pp", stages}})
        if (count > 1) text += fmt::format(" {} {}", name, count);
    return text;
}

std::vector<ServingRequest> read_requests(const std::string& path) {
    const CsvTable table = read_csv(path);
    table.require({"arrival_s", "prompt", "output"});
    if (table.rows() == 0) throw_error(ErrorCode::profile, "{}: there are no requests", path);
    const bool has_prefix = table.column("prefix").has_value();
    std::vector<ServingRequest> requests;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        const auto fail = [&](std::string_view column, std::string_view what) {
            throw_error(ErrorCode::profile, "{}:{}: {} {}: {}", path, table.line(row), column, what,
                        escape_terminal(excerpt(table.cell(row, column))));
        };
        const auto arrival_s = parse_number(table.cell(row, "arrival_s"));
        if (!arrival_s || !(*arrival_s >= 0 && *arrival_s <= latest_arrival_s))
            fail("arrival_s", fmt::format("is not a time from 0 to {:g} s", latest_arrival_s));
        if (!requests.empty() && *arrival_s < requests.back().arrival_s)
            fail("arrival_s", "is before the one above; sort the rows");
        const auto tokens = [&](std::string_view column, std::int64_t least = 1, std::int64_t most = most_tokens) {
            const auto count = parse_integer(table.cell(row, column));
            if (!count || *count < least || *count > most)
                fail(column, fmt::format("is not a number of tokens from {} to {}", least, most));
            return count.value_or(least);
        };
        const std::int64_t prompt = tokens("prompt");
        requests.push_back({.arrival_s = arrival_s.value_or(0),
                            .prompt = prompt,
                            .output = tokens("output"),
                            .prefix = has_prefix ? tokens("prefix", 0, prompt) : 0});
    }
    return requests;
}

report::ServingReport serve(const ServingArguments& given_arguments) {
    ServingArguments arguments = given_arguments;
    std::vector<ServingRequest> measured;
    report::MeasuredFigures figures;
    if (!arguments.verify.empty()) {
        require(
            arguments.rate == 0 && arguments.engine.concurrency + arguments.cards == 0 && arguments.requests.empty(),
            "--verify takes rate, clients and lengths from its file: give none, no --requests and no --cards");
        std::tie(figures, measured) = read_benchmark_run(arguments.verify, arguments);
    }
    check(arguments);
    report::ServingReport report{.model = arguments.model.model,
                                 .level = parse_level(arguments.choice.level, arguments.kept_share),
                                 .measured = std::move(figures)};
    static_cast<void>(combinations(arguments.run, arguments.choice));
    const Graph graph = load_graph(arguments.model);
    report.generates = is_decoder(graph);
    report.offered_per_s = arguments.rate;
    if (!report.generates) require_batch(graph);
    RunArguments run = arguments.run;
    if (report.generates && !run.framework_given) run.framework = "vllm";
    report.ranking = ranking_of(arguments.choice, report::Criterion::latency, report.generates ? "tokens" : "requests");
    report.ranking.latency = "p99 latency";
    report.ranking.fewest_cards = report.ranking.by == report::Criterion::latency && arguments.choice.sort.empty();
    std::map<std::string, std::vector<ServingRequest>> requests;  // by framework
    for (const std::string& framework : split_list(run.framework))
        std::tie(requests[framework], report.workload) = requests_of(arguments, run, framework, report.generates);
    if (const std::int64_t images = arguments.model.images; images > 0) {
        require(graph.image_encoder != nullptr, "no images: " + graph.no_images);
        report.workload += fmt::format(", images of {} tokens, {} a prompt", graph.image_encoder->tokens, images);
        for (auto& [framework, some] : requests)
            for (ServingRequest& request : some) request.prompt += images * graph.image_encoder->tokens;
    }
    for (std::size_t i = 0; i < measured.size(); ++i) {
        measured[i].arrival_s = requests.begin()->second[i].arrival_s;
        requests.begin()->second[i] = measured[i];
    }
    for (const ServingRequest& request : requests.begin()->second) report.tokens += static_cast<double>(request.output);
    const std::vector<LanguageMeasurement> anchors =
        report.generates ? take_language_rows(run) : std::vector<LanguageMeasurement>{};
    std::vector<Trial> trials = trials_of(arguments, run, graph);
    require(arguments.verify.empty() || (trials.size() == 1 && report.generates),
            "--verify compares one run: give one --device, --framework and --precision, and a language model");
    std::vector<HeldWarnings> warnings(trials.back().group + 1);
    for (const Trial& trial : trials) report.rows.push_back({trial.one.choice()});
    serve_trials(graph, anchors, requests, trials, warnings, report);
    report.searches = arguments.cards > 0 ? trials.size() : 0;
    rank_trials(trials, warnings, report);
    return report;
}

}  // namespace ftax::scenario
