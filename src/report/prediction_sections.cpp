#include "src/report/prediction_sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "ftax/equations.hpp"
#include "src/report/markup.hpp"
#include "src/report/page.hpp"
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
    PageTable table("uncovered", {{"operator without a rule", "", CellKind::text}, {"how many"}});
    for (const auto& [name, count] : counts) {
        table.row();
        table.text(name);
        table.number(static_cast<double>(count), std::to_string(count));
    }
    return table.html();
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
    const bool measured = std::any_of(report.rows.begin(), report.rows.end(),
                                      [](const PredictionRow& row) { return row.measured.has_value(); });
    std::vector<PageColumn> columns{{"batch", "batch"},
                                    {"latency", "latency_s"},
                                    {"90 % from", "low_s"},
                                    {"to", "high_s"},
                                    {"host", "host_s"},
                                    {"device", "device_s"},
                                    {"bound", "bound", CellKind::text},
                                    {"overhead", "framework_overhead"},
                                    {"items/s"}};
    const bool memory = std::any_of(report.rows.begin(), report.rows.end(),
                                    [](const PredictionRow& row) { return row.memory.has_value(); });
    if (memory) columns.insert(columns.end(), {{"memory", "total_bytes"}, {"fits", "fits", CellKind::text}});
    if (measured) columns.push_back({"measured", "measured_latency_s"});
    PageTable table("predictions", columns);
    for (const PredictionRow& row : report.rows) {
        const Prediction& p = row.prediction;
        table.row();
        table.batch(row.batch);
        for (const double seconds : {p.latency_s, p.low_s, p.high_s, p.host_s, p.device_s}) {
            table.number(seconds, duration(seconds));
        }
        table.text(name_of(p.bound));
        const double overhead = equations::framework_overhead(p.latency_s, p.device_s);
        table.number(overhead, percent(overhead));
        if (row.batch) {
            const double items_per_s = static_cast<double>(*row.batch) / p.latency_s;
            table.number(items_per_s, significant(items_per_s));
        } else {
            table.empty();
        }
        if (row.memory) {
            table.number(row.memory->total_bytes(), byte_size(row.memory->total_bytes()));
            table.text(row.memory->fits() ? "yes" : "no");
        } else if (memory) {
            table.empty();
            table.empty();
        }
        if (row.measured) {
            table.number(row.measured->latency_s, duration(row.measured->latency_s));
        } else if (measured) {
            table.empty();
        }
    }
    return section("Predictions", table.html());
}

std::string breakdown_section(std::string_view title, std::string_view id, const std::vector<Share>& shares) {
    double longest_s = 0;
    for (const Share& share : shares) longest_s = std::max({longest_s, share.host_s, share.device_s});
    PageTable table(id, {{std::string(title), "", CellKind::text},
                         {"launches"},
                         {"kernels"},
                         {"host"},
                         {"device"},
                         {"host above device", "", CellKind::bars}});
    for (const Share& share : shares) {
        table.row();
        table.text(share.name);
        table.number(share.launches, std::to_string(share.launches));
        table.number(share.kernels, std::to_string(share.kernels));
        table.number(share.host_s, duration(share.host_s));
        table.number(share.device_s, duration(share.device_s));
        table.bars({{"host", share.host_s / longest_s}, {"device", share.device_s / longest_s}});
    }
    return section(fmt::format("By {}", title), table.html());
}

std::string rests_on_section(const PredictionReport& report, const Graph& graph) {
    const Coverage coverage = lowest_coverage(report.rows);
    PageTable table("coverage",
                    {{"of the model's", "", CellKind::text}, {"have a rule"}, {"share", "", CellKind::bars}});
    for (const auto& [name, share] : {std::pair("operators", coverage.nodes), std::pair("FLOPs", coverage.flops),
                                      std::pair("host and device time", coverage.time)}) {
        table.row();
        table.text(name);
        table.number(share, percent(share));
        table.bars({{"device", share}});
    }
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
    return section("What the answer rests on", facts + warning_list(warnings_of(report, graph)) + table.html() +
                                                   uncovered_table(graph) + std::string(rule));
}

std::string memory_section(const MemoryUse& memory) {
    PageTable table("memory", {{"part", "", CellKind::text}, {"bytes"}, {"of the device", "", CellKind::bars}});
    for (const auto& [name, bytes] :
         {std::pair("weights", memory.weights_bytes), std::pair("keys and values", memory.cache_bytes),
          std::pair("activations", memory.activations_bytes), std::pair("workspace", memory.workspace_bytes),
          std::pair("context", memory.context_bytes), std::pair("all", memory.total_bytes())}) {
        table.row();
        table.text(name);
        table.number(bytes, byte_size(bytes));
        table.bars({{memory.fits() ? "device" : "host", std::min(1.0, bytes / memory.capacity_bytes)}});
    }
    return section(fmt::format("Memory: {} of {}{}", byte_size(memory.total_bytes()), byte_size(memory.capacity_bytes),
                               memory.fits() ? "" : ", does not fit"),
                   table.html());
}

std::string provenance_section(const PredictionReport& report) {
    PageTable table("provenance", {{"profile", "", CellKind::text},
                                   {"parameter", "", CellKind::text},
                                   {"value"},
                                   {"source", "", CellKind::text}});
    const auto add = [&](const std::string& profile, const std::vector<Parameter>& parameters) {
        for (const Parameter& parameter : parameters) {
            table.row();
            table.text(profile);
            table.text(parameter.name);
            table.number(parameter.value, fmt::format("{:.4g}", parameter.value));
            table.text(parameter.source);
        }
    };
    add(name_of_device_profile(report), report.device.parameters);
    add(name_of_framework_profile(report), report.framework.parameters);
    return section("Parameters", folded("Each with its value and source", table.html()));
}

}  // namespace ftax::report
