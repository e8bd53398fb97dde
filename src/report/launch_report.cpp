#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "src/io/csv.hpp"
#include "src/io/json_document.hpp"
#include "src/io/number.hpp"
#include "src/report/breakdown.hpp"
#include "src/report/model_report.hpp"
#include "src/report/units.hpp"

namespace ftax::report {
namespace {

/// The operator a launch stands for, in words; the forward call itself has none.
struct LaunchName {
    std::string_view op, source, module;
};

LaunchName name_of_launch(const Graph& graph, const OpPrediction& launch) {
    if (launch.op == no_op) return {name_of(launch.host_kind), "", ""};
    const Op& op = graph.ops[launch.op];
    return {op.name, op.source, op.module};
}

/// The kernel that takes longest; nullopt when none is launched.
std::optional<KernelDetail> longest(const std::vector<KernelDetail>& kernels) {
    const auto at = std::max_element(kernels.begin(), kernels.end(),
                                     [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
    if (at == kernels.end()) return std::nullopt;
    return *at;
}

std::string intensity(const KernelDetail& kernel) {
    return kernel.bytes > 0 ? fmt::format("{:.2f} × {:.3g}", kernel.flops / kernel.bytes / kernel.ridge, kernel.ridge)
                            : "";
}

nlohmann::ordered_json to_json(const KernelDetail& kernel) {
    return {{"name", kernel.name},
            {"path", kernel.path},
            {"seconds", kernel.seconds},
            {"compute_s", kernel.compute_s},
            {"memory_s", kernel.memory_s},
            {"waves", kernel.waves},
            {"flops", kernel.flops},
            {"bytes", kernel.bytes},
            {"ridge_flops_per_byte", kernel.ridge},
            {"bound", name_of(kernel.bound)},
            {"reason", kernel.reason}};
}

Table table_of_launches() {
    return Table({{"operator", Align::left},
                  {"source", Align::left},
                  {"module", Align::left},
                  {"host cost", Align::left},
                  {"kernels"},
                  {"host"},
                  {"device"},
                  {"bound", Align::left},
                  {"longest kernel", Align::left},
                  {"units", Align::left},
                  {"waves"},
                  {"intensity ÷ ridge"},
                  {"why", Align::left}});
}

void add_launch(Table& table, const Graph& graph, const Explanation& explanation, std::size_t i) {
    const OpPrediction& launch = explanation.launches[i];
    const LaunchName name = name_of_launch(graph, launch);
    const KernelDetail kernel = longest(explanation.kernels[i]).value_or(KernelDetail{});
    table.add({{std::string(name.op)},
               {std::string(name.source)},
               {std::string(name.module)},
               {std::string(name_of(launch.host_kind))},
               {std::to_string(launch.kernels)},
               {duration(launch.host_s)},
               {launch.kernels > 0 ? duration(launch.device_s) : ""},
               {std::string(name_of(launch.bound))},
               {kernel.name},
               {kernel.path},
               {kernel.waves > 0 ? fmt::format("{:.2f}", kernel.waves) : ""},
               {intensity(kernel)},
               {kernel.reason}});
}

}  // namespace

std::string launches_summary(const Graph& graph, const Explanation& explanation, Style style) {
    constexpr std::size_t shown = 10;
    // A launch counts with the class of its longest kernel: "gemm 128x64" is of the class gemm.
    auto classes = sum_by_name(explanation.launches, [&](std::size_t i) -> std::string {
        const auto kernel = longest(explanation.kernels[i]);
        return kernel ? kernel->name.substr(0, kernel->name.find(' ')) : "no kernel";
    });
    std::stable_sort(classes.begin(), classes.end(),
                     [](const Share& a, const Share& b) { return a.device_s > b.device_s; });
    Table summary({{"kernels", Align::left}, {"launches"}, {"kernels"}, {"host"}, {"device"}, {"of device time"}});
    const double device_s = explanation.prediction.device_s;
    for (const Share& sum : classes) {
        summary.add({{sum.name},
                     {std::to_string(sum.launches)},
                     {std::to_string(sum.kernels)},
                     {duration(sum.host_s)},
                     {sum.kernels > 0 ? duration(sum.device_s) : ""},
                     {sum.kernels > 0 && device_s > 0 ? percent(sum.device_s / device_s) : ""}});
    }
    const auto time_of = [&](std::size_t i) {
        return std::max(explanation.launches[i].host_s, explanation.launches[i].device_s);
    };
    std::vector<std::size_t> longest_first(explanation.launches.size());
    std::iota(longest_first.begin(), longest_first.end(), std::size_t{0});
    std::stable_sort(longest_first.begin(), longest_first.end(),
                     [&](std::size_t a, std::size_t b) { return time_of(a) > time_of(b); });
    const std::size_t rows = std::min(shown, longest_first.size());
    Table largest = table_of_launches();
    for (std::size_t i = 0; i < rows; ++i) add_launch(largest, graph, explanation, longest_first[i]);
    return fmt::format("{}\nthe {} of {} launches that take longest (--all lists them in order):\n\n{}",
                       summary.print(style), rows, longest_first.size(), largest.print(style));
}

std::string launches_table(const Graph& graph, const Explanation& explanation, Style style) {
    Table table = table_of_launches();
    for (std::size_t i = 0; i < explanation.launches.size(); ++i) add_launch(table, graph, explanation, i);
    return table.print(style);
}

std::string launches_json(const Graph& graph, const Explanation& explanation,
                          const std::vector<std::string>& warnings) {
    auto launches = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < explanation.launches.size(); ++i) {
        const OpPrediction& launch = explanation.launches[i];
        const LaunchName name = name_of_launch(graph, launch);
        auto kernels = nlohmann::ordered_json::array();
        for (const KernelDetail& kernel : explanation.kernels[i]) kernels.push_back(to_json(kernel));
        launches.push_back({{"operator", name.op},
                            {"source", name.source},
                            {"module", name.module},
                            {"host_kind", name_of(launch.host_kind)},
                            {"kernels", launch.kernels},
                            {"host_s", launch.host_s},
                            {"device_s", launch.device_s},
                            {"bound", name_of(launch.bound)},
                            {"kernel_details", std::move(kernels)}});
    }
    return to_text(
        nlohmann::ordered_json{{"schema_version", 1}, {"launches", std::move(launches)}, {"warnings", warnings}});
}

std::string launches_csv(const Graph& graph, const Explanation& explanation) {
    std::string text;
    append_csv_row(text, std::vector<std::string>{"operator", "source", "module", "host_kind", "kernels", "host_s",
                                                  "device_s", "bound"});
    for (const OpPrediction& launch : explanation.launches) {
        const LaunchName name = name_of_launch(graph, launch);
        append_csv_row(
            text, std::vector<std::string>{std::string(name.op), std::string(name.source), std::string(name.module),
                                           std::string(name_of(launch.host_kind)), std::to_string(launch.kernels),
                                           format_number(launch.host_s), format_number(launch.device_s),
                                           std::string(name_of(launch.bound))});
    }
    return text;
}

}  // namespace ftax::report
