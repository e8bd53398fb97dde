#include "src/report/prediction_report.hpp"

#include <doctest/doctest.h>

#include <clocale>
#include <locale>
#include <nlohmann/json.hpp>

#include "graphs/files/csv.hpp"
#include "src/report/charts.hpp"
#include "src/report/quantities.hpp"
#include "tests/recorded/transcripts.hpp"

using namespace ftax;
using namespace ftax::report;

namespace {

/// A report with every part in it, its numbers made up: what is under test is how they are shown.
PredictionReport example() {
    PredictionReport report;
    report.model = "bert";
    report.device.device.slug = "quadro-rtx-8000";
    report.device.device.name = "NVIDIA Quadro RTX 8000";
    report.device.version = "2026.1";
    report.framework.framework = "pytorch-eager";
    report.framework.version = "1.12";
    report.framework.host = "reference";
    report.precision = Precision::fp16;
    report.dims = {{"seq", 128}};
    Prediction small{.latency_s = 0.0142,
                     .low_s = 0.0121,
                     .high_s = 0.0163,
                     .host_s = 0.0141,
                     .device_s = 0.00289,
                     .closed_form_s = 0.0141,
                     .bound = Bound::host,
                     .kernels = 215};
    Prediction large{.latency_s = 0.0334,
                     .low_s = 0.0311,
                     .high_s = 0.0358,
                     .host_s = 0.0145,
                     .device_s = 0.0326,
                     .closed_form_s = 0.0326,
                     .bound = Bound::compute,
                     .kernels = 251};
    large.coverage = {.nodes = 0.98, .flops = 1, .time = 0.9991};
    large.warnings = {"extrapolated"};
    report.rows = {{1, small, Measured{.latency_s = 0.01644, .device_s = 0.00289}}, {64, large, {}}};
    report.rows[0].memory = {.weights_bytes = 219e6,
                             .cache_bytes = 1e6,
                             .activations_bytes = 3e6,
                             .workspace_bytes = 9.5e6,
                             .context_bytes = 5e8,
                             .capacity_bytes = 48e9};
    report.rows[1].memory = report.rows[0].memory;
    report.rows[1].memory->activations_bytes = 48e9;
    report.crossover = CrossoverReport{
        .crossovers = {{.batch = 27.44,
                        .low = 22.1,
                        .high = 34.6,
                        .host_s = 0.0145,
                        .causes = {{HostKind::gemm, 73, 0.0058}, {HostKind::elementwise, 129, 0.0022}}}},
        .largest = 4096};
    return report;
}

}  // namespace

TEST_CASE("a prediction report as a table, as CSV and as JSON") {
    test::check_report("prediction.txt", to_table(example(), {}));
    test::check_report("prediction.csv", to_csv(example()));
    test::check_report("prediction.json", to_json(example()));
}

TEST_CASE("a run that does not fit is reported in capitals") {
    const PredictionReport report = example();
    CHECK(describe(*report.rows[0].memory) ==
          "memory: 732 MB of 48.0 GB: weights 219 MB, cache 1.00 MB, activations 3.00 MB, workspace 9.50 MB, context "
          "500 MB");
    CHECK(describe(*report.rows[1].memory).starts_with("memory: 48.7 GB of 48.0 GB, DOES NOT FIT: weights"));
}

TEST_CASE("a report begins with its answer: the latencies, and what bounds which batches") {
    PredictionReport report = example();
    report.model = "m";
    report.device.device.slug = "card";
    report.framework.framework = "engine";
    report.framework.version = "1.2";
    CHECK(to_table(report, {}).starts_with(verdict_of(report) + "\n"));
    CHECK(nlohmann::json::parse(to_json(report))["verdict"] == verdict_of(report));
    const PredictionRow row = report.rows[0];
    report.rows.clear();
    for (const auto& [batch, latency_s, bound] : {std::tuple(1, 2e-3, Bound::host),
                                                  {8, 2e-3, Bound::host},
                                                  {16, 3e-3, Bound::memory},
                                                  {64, 9e-3, Bound::compute}}) {
        report.rows.push_back(row);
        report.rows.back().batch = batch;
        report.rows.back().prediction.latency_s = latency_s;
        report.rows.back().prediction.bound = bound;
    }
    CHECK(verdict_of(report) ==
          "m on card, engine 1.2: 2.00 ms at batch 1 to 9.00 ms at batch 64, bound by host at batch 1 to 8, memory at "
          "batch 16, compute at batch 64");
    report.rows.resize(2);
    CHECK(verdict_of(report).ends_with(": 2.00 ms at batch 1 to 2.00 ms at batch 8, bound by host"));
    report.rows.resize(1);
    report.rows[0].batch.reset();
    report.rows[0].memory->weights_bytes = 1e12;
    CHECK(verdict_of(report) == "m on card, engine 1.2: 2.00 ms, which does not fit, bound by host");
    report.measured = "40.0 ms is 20 times the prediction";
    CHECK(verdict_of(report) == report.measured);
}

TEST_CASE("warnings that differ in numbers or in the name alone become one") {
    CHECK(merged({"batch 8: 25 of 64 sequences fit: 2.6 turns", "other", "batch 16: 25 of 128 sequences fit: 5.1 turns",
                  "batch 4: 25 of 32 sequences fit: 1.3 turns", "other"}) ==
          std::vector<std::string>{"batch 4 to 16: 25 of 32 to 128 sequences fit: 1.3 to 5.1 turns", "other"});
    // Names and versions hold no numbers.
    const std::vector<std::string> names{"a100: not measured", "s77 is called batch", "s78 is called batch",
                                         "vllm 0.11.1 has 3x", "vllm 0.12.1 has 3x",  "v2 # of 1"};
    CHECK(merged(names) == names);
    CHECK(merged({"rows.csv:2: no gpu", "rows.csv:12: no gpu", "takes 9.", "takes 10."}) ==
          std::vector<std::string>{"rows.csv:2 to 12: no gpu", "takes 9 to 10."});
    CHECK(merged({"a10: not measured", "host: slow", "a40: not measured", "l4: not measured, like a10: old", "no",
                  "none"}) == std::vector<std::string>{"a10, a40: not measured", "host: slow",
                                                       "l4: not measured, like a10: old", "no", "none"});
    CHECK(merged({std::string(100'000, '1'), " 1" + std::string(100'000, 'a')}).size() == 2);
}

TEST_CASE("causes of host time are one or many") {
    PredictionReport report = example();
    report.crossover->crossovers[0].causes = {{HostKind::engine_call, 1, 0.0029}, {HostKind::gemm, 2, 0.00145}};
    CHECK(to_table(report, {}).find("20 % for 1 engine call, 10 % for 2 matrix products\n") != std::string::npos);
}

TEST_CASE("a report of two crossovers says on which side of each the device waits") {
    PredictionReport report = example();
    Crossover second = report.crossover->crossovers[0];
    second.batch = 300;
    second.gpu_waits_above = true;
    report.crossover->crossovers.push_back(second);
    const std::string table = to_table(report, {});
    CHECK(table.find("to 34.6): below it the device waits for the framework, above it the framework runs ahead\n") !=
          std::string::npos);
    CHECK(table.find("batch 300 (90 % interval 22.1 to 34.6): below it the framework runs ahead, above it the device "
                     "waits for the framework\n") != std::string::npos);
    const auto json = nlohmann::json::parse(to_json(report))["crossover"];
    CHECK(json["gpu_waits"] == "below");
    REQUIRE(json["further"].size() == 1);
    CHECK(json["further"][0]["batch"] == 300);
    CHECK(json["further"][0]["gpu_waits"] == "above");
    CHECK(latency_chart(report).marks.size() == 2);
}

TEST_CASE("a report without a crossover says who is the bottleneck") {
    PredictionReport report = example();
    report.rows.resize(1);
    report.rows[0].measured.reset();
    report.crossover->crossovers.clear();
    CHECK(to_table(report, {}).find("the framework is the bottleneck throughout") != std::string::npos);
    report.crossover->bound = Bound::memory;
    CHECK(to_table(report, {}).find("the device is the bottleneck throughout") != std::string::npos);
    CHECK(nlohmann::json::parse(to_json(report))["crossover"]["batch"].is_null());
    report.crossover.reset();
    CHECK_FALSE(nlohmann::json::parse(to_json(report)).contains("crossover"));
}

TEST_CASE("BAD_INPUTS 6, 7: a hostile model name is harmless in every form") {
    PredictionReport report = example();
    report.model = "=cmd|'/c calc'!A1\x1b[31m\n\xff";
    const std::string table = to_table(report, {});
    CHECK(table.find('\x1b') == std::string::npos);
    const CsvTable csv(to_csv(report), "csv");
    CHECK(csv.rows() == 2);
    CHECK(csv.row(0)[0].front() == '\'');
    CHECK(nlohmann::json::accept(to_json(report)));
}

TEST_CASE("BAD_INPUTS 48: a locale with a decimal comma changes no byte") {
    struct Comma : std::numpunct<char> {
        char do_decimal_point() const override { return ','; }
        char do_thousands_sep() const override { return '.'; }
        std::string do_grouping() const override { return "\3"; }
    };
    const std::string table = to_table(example(), {});
    const std::string csv = to_csv(example());
    const std::string json = to_json(example());
    const std::locale before = std::locale::global(std::locale(std::locale(), new Comma));
    std::setlocale(LC_ALL, "de_DE.UTF-8");  // where it is installed
    CHECK(to_table(example(), {}) == table);
    CHECK(to_csv(example()) == csv);
    CHECK(to_json(example()) == json);
    std::locale::global(before);
    std::setlocale(LC_ALL, "C");
}
