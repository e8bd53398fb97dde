#include "src/report/launch_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "src/report/quantities.hpp"

namespace ftax::report {

Columns<Share> share_columns(std::string_view title, const std::vector<Share>& shares) {
    double longest_s = 0;
    for (const Share& share : shares) longest_s = std::max({longest_s, share.host_s, share.device_s});
    return {{"name", std::string(title), Unit::text, &Share::name},
            {"launches", "launches", Unit::plain, &Share::launches},
            {"kernels", "kernels", Unit::plain, &Share::kernels},
            {"host_s", "host", Unit::duration, &Share::host_s},
            {"device_s", "device", Unit::duration, &Share::device_s},
            {"bars", "host above device", Unit::bars, [longest_s](const Share& share) {
                 return host_and_device_bars(share.host_s, share.device_s, longest_s);
             }}};
}

std::vector<Share> sum_by_name(const std::vector<OpPrediction>& launches,
                               const std::function<std::string(std::size_t)>& group) {
    std::map<std::string, Share> shares;
    for (std::size_t i = 0; i < launches.size(); ++i) {
        const std::string name = group(i);
        Share& share = shares[name];
        share.name = name;
        ++share.launches;
        share.kernels += launches[i].kernels;
        share.host_s += launches[i].host_s;
        share.device_s += launches[i].device_s;
    }
    std::vector<Share> result;
    for (auto& [name, share] : shares) result.push_back(std::move(share));
    return result;
}

std::vector<Share> breakdown(const Graph& graph, const std::vector<OpPrediction>& launches) {
    auto shares = sum_by_name(launches, [&](std::size_t i) {
        return std::string(launches[i].op == no_op ? "forward" : name_of(graph.ops[launches[i].op].kind));
    });
    std::ranges::stable_sort(shares, std::greater<>(), [](const Share& s) { return std::max(s.host_s, s.device_s); });
    return shares;
}

namespace {

struct Launch {
    const OpPrediction* prediction;
    const std::vector<KernelDetail>* kernels;
    int count = 1;  ///< number of equal launches in a row

    [[nodiscard]] double longest_side_s() const { return count * std::max(prediction->host_s, prediction->device_s); }
    [[nodiscard]] const KernelDetail* longest() const {
        const auto at = std::ranges::max_element(*kernels, {}, &KernelDetail::seconds);
        return at == kernels->end() ? nullptr : &*at;
    }
};

std::vector<Launch> launches_of(const Explanation& explanation) {
    std::vector<Launch> launches;
    for (std::size_t i = 0; i < explanation.launches.size(); ++i)
        launches.push_back({&explanation.launches[i], &explanation.kernels[i]});
    return launches;
}

Columns<Launch> columns_of(const Graph& graph) {
    return Columns<Launch>{{"count", "launches", Unit::plain, &Launch::count},
                           {"total_s", "device in all", Unit::duration,
                            [](const Launch& launch) {
                                const double seconds = launch.count * launch.prediction->device_s;
                                return launch.prediction->kernels > 0 ? Value(seconds) : Value();
                            }},
                           {"kernel_details", "", Unit::text,
                            [](const Launch& launch) {
                                return kernel_columns().json_rows(
                                    *launch.kernels,
                                    "name path seconds compute_s memory_s waves flops bytes "
                                    "ridge_flops_per_byte bound reason");
                            }}}
        .including(kernel_columns(), &Launch::longest)
        .including(launch_columns(graph), &Launch::prediction);
}

/// Launches of one operator whose longest kernels are alike, as one.
std::vector<Launch> equal_launches(const Graph& graph, const std::vector<Launch>& launches) {
    std::map<std::tuple<std::string_view, std::string_view, double>, std::size_t> first;
    std::vector<Launch> groups;
    for (const Launch& launch : launches) {
        const KernelDetail* const kernel = launch.longest();
        const auto& p = *launch.prediction;
        const std::tuple key{p.op == no_op ? name_of(p.host_kind) : std::string_view(graph.ops[p.op].source),
                             kernel ? std::string_view(kernel->name) : "", kernel ? kernel->seconds : p.host_s};
        const auto [group, is_new] = first.emplace(key, groups.size());
        if (is_new) groups.emplace_back(launch).count = 0;
        ++groups[group->second].count;
    }
    return groups;
}

}  // namespace

const Columns<KernelDetail>& kernel_columns() {
    using K = KernelDetail;
    static const Columns<K> columns{
        {"name", "longest kernel", Unit::text, &K::name},
        {"path", "units", Unit::text, "execution units; element width for copies", &K::path},
        {"seconds", "", Unit::duration, "under the power limit of the whole pass", &K::seconds},
        {"compute_s", "", Unit::duration, "at boost clock, as the times in `reason`", &K::compute_s},
        {"memory_s", "", Unit::duration, "at boost clock", &K::memory_s},
        {"waves", "waves", Unit::plain,
         [](const K& k) { return Value(k.waves, k.waves > 0 ? fmt::format("{:.2f}", k.waves) : ""); }},
        {"flops", "", Unit::amount, &K::flops},
        {"bytes", "", Unit::bytes, "read and written", &K::bytes},
        {"ridge_flops_per_byte", "", Unit::significant, &K::ridge},
        {"intensity", "intensity ÷ ridge", Unit::plain,
         [](const K& k) {
             if (k.bytes <= 0) return Value();
             return shown(fmt::format("{:.2f} × {:.3g}", k.flops / k.bytes / k.ridge, k.ridge));
         }},
        {"bound", "", Unit::text, bound_meaning, &K::bound},
        {"reason", "why", Unit::text, "why this algorithm and tile", &K::reason}};
    return columns;
}

Columns<OpPrediction> launch_columns(const Graph& graph) {
    using Launch = OpPrediction;
    const auto of_operator = [&](const Launch& launch, std::string Op::*name) {
        return launch.op == no_op ? std::string() : graph.ops[launch.op].*name;
    };
    return {{"operator", "operator", Unit::text,
             [&, of_operator](const Launch& launch) {
                 return launch.op == no_op ? std::string(name_of(launch.host_kind)) : of_operator(launch, &Op::name);
             }},
            {"source", "source", Unit::text, [=](const Launch& launch) { return of_operator(launch, &Op::source); }},
            {"module", "module", Unit::text, [=](const Launch& launch) { return of_operator(launch, &Op::module); }},
            {"host_kind", "host cost", Unit::text, "kind of the host's work", &Launch::host_kind},
            {"kernels", "kernels", Unit::plain, "number of launched kernels", &Launch::kernels},
            {"host_s", "host", Unit::duration, "dispatch time", &Launch::host_s},
            {"device_s", "device", Unit::duration, "time of the kernels", &Launch::device_s},
            {"kernel_s", "device", Unit::duration,
             [](const Launch& launch) { return launch.kernels > 0 ? Value(launch.device_s) : Value(); }},
            {"bound", "bound", Unit::text, bound_meaning, &Launch::bound}};
}

std::string launches_summary(const Graph& graph, const Explanation& explanation, Style style) {
    constexpr std::size_t shown = 10;
    const std::vector<Launch> launches = launches_of(explanation);
    // A launch counts with the class of its longest kernel: "gemm 128x64" is of the class gemm.
    auto classes = sum_by_name(explanation.launches, [&](std::size_t i) -> std::string {
        const KernelDetail* const kernel = launches[i].longest();
        return kernel ? kernel->name.substr(0, kernel->name.find(' ')) : "no kernel";
    });
    std::ranges::stable_sort(classes, std::greater<>(), &Share::device_s);
    const double device_s = explanation.prediction.device_s;
    Columns<Share> columns = share_columns("kernels", classes);
    columns.add({"kernel_s", "device", Unit::duration,
                 [](const Share& sum) { return sum.kernels > 0 ? Value(sum.device_s) : Value(); }});
    columns.add({"share", "of device time", Unit::share, [&](const Share& sum) {
                     return sum.kernels > 0 && device_s > 0 ? Value(sum.device_s / device_s) : Value();
                 }});
    std::vector<Launch> groups = equal_launches(graph, launches);
    std::ranges::stable_sort(groups, std::greater<>(), &Launch::longest_side_s);
    const std::size_t all = groups.size();
    groups.resize(std::min(shown, all));
    return fmt::format(
        "{}\nthe {} of {} groups of equal launches that take longest, each with its first module (--all: every launch):"
        "\n\n{}",
        columns.print(classes, "name launches kernels host_s kernel_s share bars", style), groups.size(), all,
        columns_of(graph).print(
            groups, "source count total_s kernel_s host_s bound name path module waves intensity reason", style));
}

std::string launches_table(const Graph& graph, const Explanation& explanation, Style style) {
    return columns_of(graph).print(
        launches_of(explanation),
        "operator source module host_kind kernels host_s kernel_s bound name path waves intensity reason", style);
}

std::string launches_json(const Graph& graph, const Explanation& explanation, const std::string& verdict,
                          const std::vector<std::string>& warnings) {
    const Grid launches = columns_of(graph).select(
        launches_of(explanation), "operator source module host_kind kernels host_s device_s bound kernel_details");
    return document({{"verdict", verdict}, {"launches", launches.json()}}, warnings);
}

std::string launches_csv(const Graph& graph, const Explanation& explanation) {
    return launch_columns(graph).csv(explanation.launches,
                                     "operator source module host_kind kernels host_s device_s bound");
}

}  // namespace ftax::report
