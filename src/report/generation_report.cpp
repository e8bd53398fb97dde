#include "src/report/generation_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "graphs/files/escape.hpp"
#include "src/report/quantities.hpp"

namespace ftax::report {
namespace {

Json phase_json(const Prediction& p, const Json& own) {
    Json json = prediction_columns().json(p, "latency_s low_s high_s host_s device_s bound kernels");
    json.update(own);
    return json;
}

const char* side_of(bool gpu_waits_above) {
    return gpu_waits_above ? "above" : "below";
}

Json crossover_json(const DecodeCrossover& crossover) {
    const Columns<ContextCrossover> contexts{
        {"context", "", Unit::plain, &ContextCrossover::tokens},
        {"context_gpu_waits", "", Unit::text, [](const auto& at) { return side_of(at.gpu_waits_above); }}};
    Json json = {{"batch", nullptr}, {"context", nullptr}};
    const auto add = [&json](const char* further, Json found) {
        if (found.empty()) return;
        json.update(found[0]);
        found.erase(0);
        if (!found.empty()) json[further] = std::move(found);
    };
    add("further_batches", crossover_columns().json_rows(
                               crossover.batches, "batch batch_low=low batch_high=high batch_gpu_waits=gpu_waits"));
    add("further_contexts", contexts.json_rows(crossover.contexts));
    if (crossover.batches.empty()) json["batch_bound"] = name_of(crossover.batch_bound);
    if (crossover.contexts.empty()) json["context_bound"] = name_of(crossover.context_bound);
    return json;
}

std::string print_decode_crossover(const DecodeCrossover& crossover, const GenerationRequest& request) {
    const auto throughout = [](Bound bound) {
        return fmt::format("{} is the bottleneck throughout", bound == Bound::host ? "the framework" : "the device");
    };
    std::vector<std::string> batches, contexts;
    for (const Crossover& at : crossover.batches)
        batches.push_back(fmt::format("{} batch {} (90 % interval {} to {})", side_of(at.gpu_waits_above),
                                      significant(at.batch), significant(at.low), significant(at.high)));
    for (const ContextCrossover& at : crossover.contexts)
        contexts.push_back(fmt::format("{} a context of {} tokens", side_of(at.gpu_waits_above), at.tokens));
    std::string text = fmt::format("decoding after {} tokens: ", request.prompt);
    text += batches.empty()
                ? fmt::format("{} up to batch {}", throughout(crossover.batch_bound), crossover.largest_batch)
                : fmt::format("bound by the framework {}", fmt::join(batches, ", "));
    text += fmt::format("\nat batch {}: ", request.batch);
    text += contexts.empty() ? fmt::format("{} up to a context of {} tokens", throughout(crossover.context_bound),
                                           crossover.longest_context)
                             : fmt::format("bound by the framework {}", fmt::join(contexts, ", "));
    return text + "\n";
}

}  // namespace

const GenerationRow& shown(const GenerationReport& report) {
    const auto last = std::find_if(report.rows.rbegin(), report.rows.rend(), std::mem_fn(&GenerationRow::runs));
    return *std::ranges::find_if(report.rows, [&](const GenerationRow& row) {
        return row.runs() && (report.ranking.by || row.batch == last->batch);
    });
}

Columns<GenerationRow> generation_columns(const GenerationReport& report) {
    using G = Generation;
    using Row = GenerationRow;
    const auto prefill = [](const G& g) { return phase_json(g.prefill, {{"passes", g.prefill_passes}}); };
    const auto decode = [](const G& g) {
        return phase_json(g.decode, {{"mean_host_s", g.decode_host_s}, {"mean_device_s", g.decode_device_s}});
    };
    const Columns<G> own{
        {"batch", "batch", Unit::plain, [](const G& g) { return g.request.batch; }},
        {"prompt", "prompt", Unit::plain, [](const G& g) { return g.request.prompt; }},
        {"longest_prompt", "longest prompt", Unit::plain,
         [](const G& g) { return std::max(g.request.prompt, g.request.longest_prompt); }},
        {"images", "", Unit::text, "with --images: the encoder's pass over those of the first prompts",
         [](const G& g) {
             return g.images ? Value(phase_json(*g.images, {{"tokens", g.image_tokens}})) : Value();
         }},
        {"new_tokens", "new tokens", Unit::plain, [](const G& g) { return g.request.new_tokens; }},
        {"ttft_s", "first token", Unit::milliseconds, "time until every sequence has its first token",
         [](const G& g) { return Value(g.ttft_s, Tone::strong); }},
        {"tpot_s", "per token", Unit::milliseconds, "mean time per further token",
         [](const G& g) { return Value(g.tpot_s, Tone::strong); }},
        {"first_tpot_s", "first step", Unit::milliseconds, "time of the first further token", &G::first_tpot_s},
        {"last_tpot_s", "last step", Unit::milliseconds, "time of the last token", &G::last_tpot_s},
        {"tpot_range", "first to last", Unit::plain,
         [](const G& g) { return range_value(g.first_tpot_s, g.last_tpot_s, milliseconds); }},
        {"total_s", "total", Unit::seconds, "time of all tokens", &G::total_s},
        {"low_s", "90 % from", Unit::seconds, "lower end of its 90 % interval", &G::low_s},
        {"high_s", "to", Unit::seconds, "upper end of its 90 % interval", &G::high_s},
        {"interval", "90 % interval", Unit::plain,
         [](const G& g) { return range_value(g.low_s, g.high_s, significant); }},
        {"tokens_per_s", "tokens/s", Unit::significant, "rate of new tokens of all sequences", &G::tokens_per_s},
        {"prefill", "", Unit::text, "first pass over the prompts; `passes` is the number of such passes", prefill},
        {"decode", "", Unit::text, "the step in the middle; `mean_host_s` and `mean_device_s` are of all steps",
         decode},
        {"prefill_bound", "prompt bound by", Unit::text, [](const G& g) { return g.prefill.bound; }},
        {"decode_bound", "decoding bound by", Unit::text, [](const G& g) { return g.decode.bound; }},
        {"bound", "bound", Unit::text,
         [](const G& g) { return Value(g.decode.bound, g.decode.bound == Bound::host ? Tone::warning : Tone::plain); }},
        {"decode_host_s", "host", Unit::milliseconds, &G::decode_host_s},
        {"decode_device_s", "device", Unit::milliseconds, &G::decode_device_s},
        {"memory", "", Unit::text, "memory of a card with all sequences at full length",
         [](const G& g) {
             Json json = memory_json(g.memory);
             json["fits"] = g.fits;
             return json;
         }},
        {"fits", "fits", Unit::text, "whether the memory that the framework uses is enough",
         [](const G& g) { return Value(g.fits, g.fits ? Tone::plain : Tone::warning); }},
        {"at_once", "at once", Unit::plain, "number of sequences that fit", &G::at_once},
        {"waves", "waves", Unit::plain, "rounds in which a larger batch is processed", &G::waves},
        {"warnings", "", Unit::text, "messages about this row", &G::warnings},
        {"all_warnings", "", Unit::text, [&](const G& g) { return joined(report.run.warnings, g.warnings); }}};
    return Columns<Row>{
        {"model", "model", Unit::text, [&](const Row&) { return report.run.model; }},
        {"exchange_share", "exchange", Unit::share,
         "share of a step's device time spent in all-reduce; absent on one card", &Row::exchange_share},
        {"tokens_per_dollar", "tokens/$", Unit::amount, "with --price",
         [](const Row& row) {
             if (!row.dollars_per_hour || !row.runs()) return Value();
             constexpr double seconds_per_hour = 3600;
             return Value(row.generation.tokens_per_s * seconds_per_hour / *row.dollars_per_hour);
         }},
        {"energy_j", "energy, J", Unit::significant, "energy of all cards",
         [](const Row& row) { return row.runs() ? Value(row.cards * row.generation.energy_j()) : Value(); }},
        {"power_w", "power, W", Unit::significant, "mean power of all cards",
         [](const Row& row) {
             return row.runs() ? Value(row.cards * row.generation.energy_j() / row.generation.total_s) : Value();
         }},
        {"crossover", "", Unit::text, "where decoding changes between framework-bound and device-bound",
         [](const Row& row) { return row.runs() ? Value(crossover_json(row.crossover)) : Value(); }},
        {"largest_batch", "largest batch", Unit::plain, "with --largest-batch: the largest that fits",
         &Row::largest_batch}}
        .including(choice_columns(report.ranking), [](const Row& row) { return &row; })
        .including(memory_columns(), [](const Row& row) { return row.runs() ? &row.generation.memory : nullptr; })
        .including(own, [](const Row& row) { return row.runs() ? &row.generation : nullptr; });
}

std::string to_table(const GenerationReport& report, Style style) {
    const GenerationRow& row = shown(report);
    const Generation& g = row.generation;
    const std::vector<const Choice*> choices = choices_of(report.rows);
    const Differences differences(choices);
    std::string text = print_verdict(report.ranking.verdict, style);
    text += report.rows.size() == 1 || text.empty()
                ? print_header(report.run, style)
                : escape_terminal(fmt::format("{}: {}", report.run.model, differences.common(row))) + "\n\n";
    text += generation_columns(report).print(
                rows_that_run(report.rows),
                differences.keys() +
                    "batch tokens_per_s ?dollars_per_million ?keeps_level ttft_s tpot_s total_s interval bound "
                    "decode_host_s decode_device_s ?exchange_share total_bytes fits ?largest_batch",
                style) +
            "\n";
    for (const std::string& line : reasons_of(choices)) text += "not generated: " + escape_terminal(line) + "\n";
    text += "first token: of the whole batch; per token, host, device and bound: a step of decoding, on average\n";
    if (row.exchange_share) text += "exchange: share of a step's device time in which the cards sum their parts\n";
    if (choices.size() > 1) text += escape_terminal(differences.name(row)) + ":\n";
    text += fmt::format("prompts of {} tokens, {} pass{}: {} host, {} device, bound by {}\n", g.request.prompt,
                        g.prefill_passes, g.prefill_passes == 1 ? "" : "es", duration(g.prefill.host_s),
                        duration(g.prefill.device_s), name_of(g.prefill.bound));
    if (g.images)
        text += fmt::format("images of {} tokens, {} a prompt: {} host, {} device\n", g.image_tokens, g.request.images,
                            duration(g.images->host_s), duration(g.images->device_s));
    text += print_decode_crossover(row.crossover, g.request);
    return text + describe(g.memory) + (g.fits || !g.memory.fits() ? "\n" : ", more than the engine uses\n");
}

std::string to_json(const GenerationReport& report) {
    Json json = run_json(report.run);
    json["predictions"] = generation_columns(report).json_rows(
        report.rows,
        "device framework precision batch prompt longest_prompt new_tokens cards skipped keeps_level ttft_s tpot_s "
        "first_tpot_s last_tpot_s total_s low_s high_s tokens_per_s tokens_per_dollar dollars_per_million power_w "
        "energy_j images prefill decode exchange_share crossover memory fits at_once waves largest_batch warnings");
    json["verdict"] = report.ranking.verdict;
    return document(std::move(json), report.run.warnings);
}

std::string to_csv(const GenerationReport& report) {
    return generation_columns(report).csv(
        report.rows,
        "model device framework framework_version precision cards batch prompt new_tokens ttft_s tpot_s first_tpot_s "
        "last_tpot_s total_s low_s high_s tokens_per_s dollars_per_million keeps_level power_w energy_j prefill_bound "
        "decode_bound decode_host_s decode_device_s memory_bytes=total_bytes fits waves skipped warnings=all_warnings");
}

}  // namespace ftax::report
