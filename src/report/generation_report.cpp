#include "src/report/generation_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/io/csv.hpp"
#include "src/io/json_document.hpp"
#include "src/io/number.hpp"
#include "src/report/memory_report.hpp"
#include "src/report/units.hpp"

namespace ftax::report {
namespace {

using Json = nlohmann::ordered_json;

Json phase_json(const Prediction& p) {
    return {{"latency_s", p.latency_s}, {"low_s", p.low_s},          {"high_s", p.high_s},  {"host_s", p.host_s},
            {"device_s", p.device_s},   {"bound", name_of(p.bound)}, {"kernels", p.kernels}};
}

/// The first crossover of each kind, with the others in `further_batches` and `further_contexts`.
Json crossover_json(const DecodeCrossover& crossover) {
    const auto direction = [](bool gpu_waits_above) { return gpu_waits_above ? "above" : "below"; };
    Json json = {{"batch", nullptr}, {"context", nullptr}};
    for (const Crossover& at : crossover.batches) {
        Json entry = {{"batch", at.batch},
                      {"batch_low", at.low},
                      {"batch_high", at.high},
                      {"batch_gpu_waits", direction(at.gpu_waits_above)}};
        if (json["batch"].is_null()) {
            json.update(entry);
        } else {
            json["further_batches"].push_back(std::move(entry));
        }
    }
    for (const ContextCrossover& at : crossover.contexts) {
        Json entry = {{"context", at.tokens}, {"context_gpu_waits", direction(at.gpu_waits_above)}};
        if (json["context"].is_null()) {
            json.update(entry);
        } else {
            json["further_contexts"].push_back(std::move(entry));
        }
    }
    if (crossover.batches.empty()) json["batch_bound"] = name_of(crossover.batch_bound);
    if (crossover.contexts.empty()) json["context_bound"] = name_of(crossover.context_bound);
    return json;
}

Json row_json(const GenerationReport& report, const GenerationRow& row) {
    const Generation& g = row.generation;
    Json json = {{"batch", g.request.batch},
                 {"prompt", g.request.prompt},
                 {"longest_prompt", std::max(g.request.prompt, g.request.longest_prompt)},
                 {"new_tokens", g.request.new_tokens},
                 {"cards", row.cards},
                 {"ttft_s", g.ttft_s},
                 {"tpot_s", g.tpot_s},
                 {"first_tpot_s", g.first_tpot_s},
                 {"last_tpot_s", g.last_tpot_s},
                 {"total_s", g.total_s},
                 {"low_s", g.low_s},
                 {"high_s", g.high_s},
                 {"tokens_per_s", g.tokens_per_s}};
    if (const auto tokens = tokens_per_dollar(report, row)) json["tokens_per_dollar"] = *tokens;
    json["prefill"] = phase_json(g.prefill);
    json["prefill"]["passes"] = g.prefill_passes;
    json["decode"] = phase_json(g.decode);
    json["decode"]["mean_host_s"] = g.decode_host_s;
    json["decode"]["mean_device_s"] = g.decode_device_s;
    json["crossover"] = crossover_json(row.crossover);
    json["memory"] = memory_json(g.memory);
    json["fits"] = g.memory.fits();
    json["at_once"] = g.at_once;
    json["waves"] = g.waves;
    if (row.largest_batch) json["largest_batch"] = *row.largest_batch;
    json["warnings"] = g.warnings;
    return json;
}

std::string share_of_device(double host_s, double device_s) {
    return fmt::format("{} host, {} device", duration(host_s), duration(device_s));
}

std::string print_decode_crossover(const DecodeCrossover& crossover, const GenerationRequest& request) {
    const auto throughout = [](Bound bound) {
        return fmt::format("{} is the bottleneck throughout", bound == Bound::host ? "the framework" : "the GPU");
    };
    const auto side = [](bool gpu_waits_above) { return gpu_waits_above ? "above" : "below"; };
    std::vector<std::string> batches, contexts;
    for (const Crossover& at : crossover.batches) {
        batches.push_back(fmt::format("{} batch {} (90 % interval {} to {})", side(at.gpu_waits_above),
                                      significant(at.batch), significant(at.low), significant(at.high)));
    }
    for (const ContextCrossover& at : crossover.contexts)
        contexts.push_back(fmt::format("{} a context of {} tokens", side(at.gpu_waits_above), at.tokens));
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

std::optional<double> tokens_per_dollar(const GenerationReport& report, const GenerationRow& row) {
    if (!report.dollars_per_hour) return std::nullopt;
    constexpr double seconds_per_hour = 3600;
    return row.generation.tokens_per_s * seconds_per_hour / (*report.dollars_per_hour * row.cards);
}

std::string to_table(const GenerationReport& report, Style style) {
    const bool priced = report.dollars_per_hour.has_value();
    const bool asked =
        std::any_of(report.rows.begin(), report.rows.end(), [](const auto& r) { return r.largest_batch; });
    const bool several = std::any_of(report.rows.begin(), report.rows.end(), [](const auto& r) { return r.cards > 1; });
    std::vector<Table::Column> columns{{"batch"},     {"first token ms"},     {"per token ms"}, {"first to last"},
                                       {"total s"},   {"90 % interval"},      {"tokens/s"},     {"host ms"},
                                       {"device ms"}, {"bound", Align::left}, {"memory"},       {"fits", Align::left}};
    if (several) columns.insert(columns.begin(), {"cards"});
    if (priced) columns.push_back({"tokens/$"});
    if (asked) columns.push_back({"largest batch"});
    Table table(std::move(columns));
    for (const GenerationRow& row : report.rows) {
        const Generation& g = row.generation;
        const Bound bound = g.decode.bound;
        std::vector<Cell> cells;
        if (several) cells.push_back({std::to_string(row.cards)});
        cells.insert(cells.end(), {{std::to_string(g.request.batch)},
                                   {milliseconds(g.ttft_s), Tone::strong},
                                   {milliseconds(g.tpot_s), Tone::strong},
                                   {fmt::format("{} to {}", milliseconds(g.first_tpot_s), milliseconds(g.last_tpot_s))},
                                   {significant(g.total_s)},
                                   {fmt::format("{} to {}", significant(g.low_s), significant(g.high_s))},
                                   {significant(g.tokens_per_s)},
                                   {milliseconds(g.decode_host_s)},
                                   {milliseconds(g.decode_device_s)},
                                   {std::string(name_of(bound)), bound == Bound::host ? Tone::warning : Tone::plain},
                                   {byte_size(g.memory.total_bytes())},
                                   {g.memory.fits() ? "yes" : "no", g.memory.fits() ? Tone::plain : Tone::warning}});
        if (priced) cells.push_back({count(*tokens_per_dollar(report, row))});
        if (asked) cells.push_back({row.largest_batch ? std::to_string(*row.largest_batch) : ""});
        table.add(std::move(cells));
    }
    const GenerationRow& last = report.rows.back();
    const Generation& g = last.generation;
    std::string text = print_header(report.run, style) + table.print(style) + "\n";
    text += "first token: of the whole batch; per token, host, device and bound: a step of decoding, on average\n";
    text += fmt::format("prompts of {} tokens, {} pass{}: {}, bound by {}\n", g.request.prompt, g.prefill_passes,
                        g.prefill_passes == 1 ? "" : "es", share_of_device(g.prefill.host_s, g.prefill.device_s),
                        name_of(g.prefill.bound));
    text += print_decode_crossover(last.crossover, g.request);
    return text + describe(g.memory) + "\n";
}

std::string to_json(const GenerationReport& report) {
    Json json = {{"schema_version", 1},
                 {"model", report.run.model},
                 {"device",
                  {{"slug", report.run.device.device.slug},
                   {"name", report.run.device.device.name},
                   {"profile_version", report.run.device.version}}},
                 {"framework",
                  {{"name", report.run.framework.framework},
                   {"version", report.run.framework.version},
                   {"host", report.run.framework.host}}},
                 {"precision", name_of(report.run.precision)},
                 {"predictions", Json::array()}};
    for (const GenerationRow& row : report.rows) json["predictions"].push_back(row_json(report, row));
    json["warnings"] = report.run.warnings;
    return to_text(json);
}

std::string to_csv(const GenerationReport& report) {
    std::string text;
    append_csv_row(text,
                   std::vector<std::string>{"model",           "device",        "framework",    "framework_version",
                                            "precision",       "cards",         "batch",        "prompt",
                                            "new_tokens",      "ttft_s",        "tpot_s",       "first_tpot_s",
                                            "last_tpot_s",     "total_s",       "low_s",        "high_s",
                                            "tokens_per_s",    "prefill_bound", "decode_bound", "decode_host_s",
                                            "decode_device_s", "memory_bytes",  "fits",         "waves",
                                            "warnings"});
    for (const GenerationRow& row : report.rows) {
        const Generation& g = row.generation;
        std::vector<std::string> cells{report.run.model,
                                       report.run.device.device.slug,
                                       report.run.framework.framework,
                                       report.run.framework.version,
                                       std::string(name_of(report.run.precision)),
                                       std::to_string(row.cards),
                                       std::to_string(g.request.batch),
                                       std::to_string(g.request.prompt),
                                       std::to_string(g.request.new_tokens)};
        for (const double value :
             {g.ttft_s, g.tpot_s, g.first_tpot_s, g.last_tpot_s, g.total_s, g.low_s, g.high_s, g.tokens_per_s}) {
            cells.push_back(format_number(value));
        }
        cells.emplace_back(name_of(g.prefill.bound));
        cells.emplace_back(name_of(g.decode.bound));
        for (const double value : {g.decode_host_s, g.decode_device_s, g.memory.total_bytes()}) {
            cells.push_back(format_number(value));
        }
        cells.emplace_back(g.memory.fits() ? "1" : "0");
        cells.push_back(format_number(g.waves));
        cells.push_back(one_cell(report.run.warnings, g.warnings));
        append_csv_row(text, cells);
    }
    return text;
}

}  // namespace ftax::report
