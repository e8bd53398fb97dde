#include "src/report/prediction_sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "src/report/page.hpp"
#include "src/report/quantities.hpp"
#include "src/report/units.hpp"

namespace ftax::report {
namespace {

std::vector<std::string> warnings_of(const PredictionReport& report, const Graph& graph) {
    std::set<std::string> warnings(graph.warnings.begin(), graph.warnings.end());
    warnings.insert(report.device.warnings.begin(), report.device.warnings.end());
    warnings.insert(report.framework.warnings.begin(), report.framework.warnings.end());
    warnings.insert(report.warnings.begin(), report.warnings.end());
    for (const PredictionRow& row : report.rows) {
        warnings.insert(row.prediction.warnings.begin(), row.prediction.warnings.end());
    }
    return {warnings.begin(), warnings.end()};
}

std::string name_of_device_profile(const PredictionReport& report) {
    return fmt::format("{} {}", report.device.device.slug, report.device.version);
}

std::string name_of_framework_profile(const PredictionReport& report) {
    return fmt::format("{} {}, {}", report.framework.framework, report.framework.version, report.framework.host);
}

/// Operators without a rule, by what the model file calls them.
std::string uncovered_table(const Graph& graph) {
    std::map<std::string, std::size_t> counts;
    for (const Op& op : graph.ops) {
        if (op.kind == OpKind::custom) ++counts[op.source.empty() ? op.name : op.source];
    }
    if (counts.empty()) return "";
    const Columns<std::pair<const std::string, std::size_t>> columns{
        {"operator", "operator without a rule", Unit::text, [](const auto& entry) { return entry.first; }},
        {"count", "how many", Unit::plain, [](const auto& entry) { return entry.second; }}};
    return columns.select(counts, "=operator =count").page_table("uncovered");
}

/// Shares of a whole, each with a bar in the colour of its look.
struct NamedShare {
    std::string_view name, look;
    double value, share;
};

std::string shares_table(std::string_view id, std::string_view title, std::string_view value_title, Unit unit,
                         std::string_view share_title, const std::vector<NamedShare>& rows) {
    const Columns<NamedShare> columns{{"", std::string(title), Unit::text, &NamedShare::name},
                                      {"", std::string(value_title), unit, &NamedShare::value},
                                      {"", std::string(share_title), Unit::bars, [](const NamedShare& row) {
                                           return Json{{std::string(row.look), row.share}};
                                       }}};
    return columns.select(rows).page_table(id);
}

}  // namespace

std::string facts_line(const PredictionReport& report) {
    std::string text = fmt::format("Framework profile {}; device profile {}", name_of_framework_profile(report),
                                   name_of_device_profile(report));
    for (const auto& [symbol, value] : report.dims) text += fmt::format("; {} {}", symbol, value);
    return fmt::format("<p class=\"facts\">{}.</p>\n", escape_markup(text));
}

std::string crossover_paragraph(const CrossoverReport& crossover) {
    std::istringstream lines(print_crossover(crossover, {}));
    std::string html;
    for (std::string line; std::getline(lines, line);) {
        line.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(line.front())));
        html += (html.empty() ? "" : ".<br>") + escape_markup(line);
    }
    return fmt::format("<p id=\"crossover\">{}.</p>\n", html);
}

std::string predictions_section(const PredictionReport& report) {
    return section("Predictions", prediction_row_columns(report)
                                      .select(report.rows,
                                              "batch latency_s low_s high_s host_s device_s bound framework_overhead "
                                              "=items_per_s ?total_bytes ?fits ?measured_latency_s")
                                      .page_table("predictions"));
}

std::string breakdown_section(std::string_view title, std::string_view id, const std::vector<Share>& shares) {
    double longest_s = 0;
    for (const Share& share : shares) longest_s = std::max({longest_s, share.host_s, share.device_s});
    Columns<Share> columns = share_columns(title);
    columns.add({"bars", "host above device", Unit::bars, [longest_s](const Share& share) {
                     return host_and_device_bars(share.host_s, share.device_s, longest_s);
                 }});
    return section(fmt::format("By {}", title),
                   columns.select(shares, "=name =launches =kernels =host_s =device_s =bars").page_table(id));
}

std::string rests_on_section(const PredictionReport& report, const Graph& graph) {
    const Coverage coverage = lowest_coverage(report.rows);
    const std::string table = shares_table("coverage", "of the model's", "have a rule", Unit::share, "share",
                                           {{"operators", "device", coverage.nodes, coverage.nodes},
                                            {"FLOPs", "device", coverage.flops, coverage.flops},
                                            {"host and device time", "device", coverage.time, coverage.time}});
    const std::string_view rule =
        "<p>An operator without a rule counts as memory-bound. Of several batches the least share stands here.</p>\n";
    const bool unknown_host = report.framework.host == "reference" && !is_cpu(report.device.device);
    const Prediction& last = report.rows.back().prediction;
    const std::string facts = fmt::format(
        "<ul>\n<li>{}</li>\n<li>{}</li>\n<li>{}</li>\n</ul>\n",
        escape_markup(fmt::format("The host costs of {}{}", name_of_framework_profile(report),
                                  unknown_host
                                      ? ": a middling machine, not yours; one measured latency (--anchor) narrows the "
                                        "interval"
                                      : "")),
        escape_markup(fmt::format("The kernels of the device profile {}", name_of_device_profile(report))),
        escape_markup(fmt::format(
            "90 % interval {} to {} around {}{}", duration(last.low_s), duration(last.high_s), duration(last.latency_s),
            last.widest_component.empty() ? "" : fmt::format("; mostly {}", last.widest_component))));
    return section("What the answer rests on", facts + warning_list(warnings_of(report, graph)) + table +
                                                   uncovered_table(graph) + std::string(rule));
}

std::string memory_section(const MemoryUse& memory) {
    std::vector<NamedShare> rows{
        {"weights", "", memory.weights_bytes},         {"keys and values", "", memory.cache_bytes},
        {"activations", "", memory.activations_bytes}, {"workspace", "", memory.workspace_bytes},
        {"context", "", memory.context_bytes},         {"all", "", memory.total_bytes()}};
    for (NamedShare& row : rows) {
        row.look = memory.fits() ? "device" : "host";
        row.share = std::min(1.0, row.value / memory.capacity_bytes);
    }
    return section(fmt::format("Memory: {} of {}{}", byte_size(memory.total_bytes()), byte_size(memory.capacity_bytes),
                               memory.fits() ? "" : ", does not fit"),
                   shares_table("memory", "part", "bytes", Unit::bytes, "of the device", rows));
}

std::string provenance_section(const PredictionReport& report) {
    std::vector<std::pair<std::string, const Parameter*>> rows;
    for (const Parameter& p : report.device.parameters) rows.emplace_back(name_of_device_profile(report), &p);
    for (const Parameter& p : report.framework.parameters) rows.emplace_back(name_of_framework_profile(report), &p);
    using Row = std::pair<std::string, const Parameter*>;
    const auto columns =
        Columns<Row>{{"profile", "profile", Unit::text, &Row::first}}.including(parameter_columns(4), &Row::second);
    return section("Parameters",
                   folded("Each with its value and source",
                          columns.select(rows, "=profile =name =value =source").page_table("provenance")));
}

}  // namespace ftax::report
