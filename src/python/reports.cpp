#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/io/file.hpp"
#include "src/python/bindings.hpp"
#include "src/report/model_report.hpp"
#include "src/scenario/generation.hpp"
#include "src/scenario/serving.hpp"
#include "src/scenario/validation.hpp"

namespace ftax::python {
namespace {

std::string inspect(const Graph& graph, const std::map<std::string, std::int64_t>& dims, int depth) {
    return to_json(report::model_report(graph, {dims.begin(), dims.end()}, depth));
}

/// The report as JSON, and what the anchors left in doubt.
std::tuple<std::string, std::vector<std::string>> validate(const std::string& rows, const std::string& anchor,
                                                           const std::string& models, const std::string& by,
                                                           const std::string& profile, const std::string& host,
                                                           const std::string& predictions) {
    std::vector<std::string> warnings;
    const scenario::Validation result = scenario::validate(
        {.rows = rows, .anchor = anchor, .models = models, .by = by, .device_profile = profile, .host_profile = host},
        [&](const std::vector<std::string>& more) { warnings.insert(warnings.end(), more.begin(), more.end()); });
    if (!predictions.empty()) write_file(predictions, predictions_csv(result.table, result.rows));
    return {to_json(result.report), warnings};
}

/// The report as JSON.
std::string generate(const std::string& model, const std::string& device, const std::string& framework,
                     const std::string& precision, const std::string& host, const std::vector<std::int64_t>& batches,
                     std::int64_t prompt, std::int64_t new_tokens, std::int64_t longest_prompt,
                     const std::vector<std::int64_t>& cards, double price, const std::string& cache,
                     const std::string& cache_precision) {
    scenario::GenerationArguments arguments;
    arguments.model.model = model;
    arguments.model.cache = cache;
    arguments.model.cache_type = cache_precision;
    arguments.run.device = device;
    arguments.run.framework = framework;
    arguments.run.precision = precision;
    arguments.run.host = host;
    arguments.batches = fmt::format("{}", fmt::join(batches, ","));
    arguments.tensor_parallel = fmt::format("{}", fmt::join(cards, ","));
    arguments.request = {.prompt = prompt, .longest_prompt = longest_prompt, .new_tokens = new_tokens};
    arguments.dollars_per_hour = price;
    arguments.largest_batch = true;
    return to_json(scenario::generate(arguments).report);
}

/// The report as JSON. `options` are named as the program's.
std::string serve(const std::string& model, const std::string& device, const std::string& framework,
                  const std::string& precision, const std::string& cards, const std::map<std::string, double>& numbers,
                  const std::map<std::string, std::string>& texts, const std::vector<std::string>& dims) {
    scenario::ServingArguments a;
    a.model.model = model;
    a.model.dims = dims;
    a.run.device = device;
    a.run.framework = framework;
    a.run.framework_given = true;
    a.run.precision = precision;
    a.tensor_parallel = cards;
    const auto number = [&](const char* name, auto& value) {
        if (const auto found = numbers.find(name); found != numbers.end())
            value = static_cast<std::remove_reference_t<decltype(value)>>(found->second);
    };
    number("rate", a.rate);
    number("concurrency", a.concurrency);
    number("count", a.count);
    number("prompt", a.prompt);
    number("new_tokens", a.new_tokens);
    number("spread", a.spread);
    number("seed", a.seed);
    number("slo_share", a.kept_share);
    number("find_rate", a.find_rate);
    number("max_num_seqs", a.max_sequences);
    number("max_num_batched_tokens", a.max_tokens);
    number("shared_prefix", a.shared_prefix);
    number("max_batch", a.max_batch);
    number("max_delay", a.max_delay_s);
    a.requests = texts.at("requests");
    a.level = texts.at("slo");
    a.prices = texts.at("price");
    return to_json(scenario::serve(a));
}

}  // namespace

void bind_reports(nb::module_& module) {
    module.def("inspect_json", inspect, "graph"_a, "dims"_a, "depth"_a, Release());
    module.def("generate_json", generate, "model"_a, "device"_a, "framework"_a, "precision"_a, "host"_a, "batches"_a,
               "prompt"_a, "new_tokens"_a, "longest_prompt"_a, "tp"_a, "price"_a, "kv_cache"_a, "kv_precision"_a,
               Release());
    module.def("serve_json", serve, "model"_a, "device"_a, "framework"_a, "precision"_a, "tp"_a, "numbers"_a, "texts"_a,
               "dims"_a, Release());
    module.def("validate_json", validate, "rows"_a, "anchor"_a, "models"_a, "by"_a, "profile"_a, "host_profile"_a,
               "predictions"_a, Release());
}

}  // namespace ftax::python
