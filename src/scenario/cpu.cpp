#include "src/scenario/cpu.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "calibration/bench/bench_device.hpp"
#include "src/core/embedded.hpp"
#include "src/core/near_names.hpp"
#include "src/core/parameters.hpp"
#include "src/core/throw_error.hpp"
#include "src/io/csv.hpp"
#include "src/io/escape.hpp"
#include "src/io/number.hpp"

namespace ftax::scenario {
namespace {

const CsvTable& cpu_table() {
    static const CsvTable table(embedded_text("data/cpus.csv"), "data/cpus.csv");
    return table;
}

Cpu cpu_named(const std::string& name) {
    if (const auto found = find_cpu(name)) return *found;
    std::vector<std::string> names;
    for (std::size_t row = 0; row < cpu_table().rows(); ++row) names.emplace_back(cpu_table().cell(row, "name"));
    const auto near = near_names(name, names, 6);
    throw_error(ErrorCode::usage, "'{}' names none of the {} CPUs of data/cpus.csv, or several{}{}",
                escape_terminal(name), names.size(), near.empty() ? "" : "; near: ", fmt::join(near, ", "));
}

}  // namespace

std::optional<Cpu> find_cpu(const std::string& name) {
    const auto cpu_of = [](std::size_t row) {
        return Cpu{std::string(cpu_table().cell(row, "name")), *parse_number(cpu_table().cell(row, "score"))};
    };
    for (std::size_t row = 0; row < cpu_table().rows(); ++row)  // as profiles spell it, in every run
        if (cpu_table().cell(row, "name") == name) return cpu_of(row);
    // "Intel(R) Xeon(R) Platinum 8480+ CPU @ 2.00GHz", "AMD EPYC 7742 64-Core Processor"
    static const std::regex noise(R"(\(r\)|\(tm\)| cpu\b| processor\b|\d+-core|@.*)", std::regex::icase);
    const std::string wanted = normalized_name(std::regex_replace(name, noise, ""));
    std::vector<Cpu> found;
    for (std::size_t row = 0; row < cpu_table().rows(); ++row) {
        const std::string known = normalized_name(cpu_table().cell(row, "name"));
        if (known == wanted) return cpu_of(row);
        if (known.ends_with(wanted)) found.push_back(cpu_of(row));
    }
    return found.size() == 1 ? std::optional(found.front()) : std::nullopt;
}

void place_host(Scenario& scenario, const RunArguments& run) {
    FrameworkProfile& profile = scenario.framework;
    Parameter* scale = find_parameter(profile.parameters, "host.scale");
    const bool named = !run.cpu.empty(), loaded = run.host_load != "unknown", dedicated = run.host_load == "dedicated";
    if (loaded && !dedicated && run.host_load != "shared")
        throw_error(ErrorCode::usage, "--host-load {} is neither dedicated nor shared nor unknown", run.host_load);
    const std::string& own_cpu = scenario.device.device.host_cpu;
    if (scale == nullptr || profile.reference_cpu.empty() || !own_cpu.empty()) {
        if (profile.host == "reference") profile.assumed = own_cpu.empty() ? "a middling machine" : own_cpu;
        if (named || loaded)
            profile.warnings.push_back(fmt::format("--cpu and --host-load do nothing for {}", profile.framework));
        return;
    }
    const Cpu reference = cpu_named(profile.reference_cpu);
    Cpu cpu{"CPU unknown", reference.score};
    if (named) cpu = cpu_named(run.cpu == "local" ? bench::cpu_name() : run.cpu);
    const double ratio = reference.score / cpu.score;
    // Source: 9 machines of framework_tax.csv with a published CPU, one left out; larger: runs under any load.
    const double spread = dedicated ? (named ? 0.19 : 0.33) : (named ? 0.24 : 0.36);
    std::vector<HostGroup> groups = profile.groups;
    if (groups.empty()) groups = {{1, scale->value, named || loaded ? spread : scale->relative_stddev}};
    const auto [fast, slow] = std::ranges::minmax(groups, {}, &HostGroup::scale);
    for (HostGroup& group : groups) {
        if (loaded) group.weight = group.scale == (dedicated ? fast : slow).scale ? 1 : 0;
        if (named || loaded) group.log_stddev = std::max(group.log_stddev, spread);
        group.scale *= ratio;
    }
    const HostGroup& most = *std::ranges::max_element(groups, {}, &HostGroup::weight);
    double variance = 0;
    std::string others;
    for (const HostGroup& group : groups) {
        variance += group.weight * (std::pow(std::log(group.scale / most.scale), 2) + std::pow(group.log_stddev, 2));
        if (group.weight > 0 && &group != &most)
            others += fmt::format(", {:.2g} × on {:.0f} % of machines", group.scale, 100 * group.weight);
    }
    scale->value = most.scale;
    scale->relative_stddev = std::min(scale->relative_stddev, std::sqrt(variance));
    profile.assumed = fmt::format("{}, load {}: {:.2g} × the time of {}{}", cpu.name, run.host_load, most.scale,
                                  reference.name, others);
    if (named || loaded || !profile.groups.empty()) profile.groups = std::move(groups);
}

}  // namespace ftax::scenario
