#include "src/scenario/cpu.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "calibration/bench/bench_device.hpp"
#include "graphs/base/embedded.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/csv.hpp"
#include "graphs/files/escape.hpp"
#include "graphs/files/file.hpp"
#include "graphs/files/json_document.hpp"
#include "graphs/files/number.hpp"
#include "predictors/kernels/sustained.hpp"
#include "predictors/profiles/parameters.hpp"

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
    throw_error(ErrorCode::usage, "unknown or ambiguous CPU '{}' (data/cpus.csv has {}){}{}", escape_terminal(name),
                names.size(), near.empty() ? "" : "; near: ", fmt::join(near, ", "));
}

/// Wall over CPU time from which on other work shares a host; 1.00 where a probe takes precedence over ten processes.
constexpr double crowded = 1.1;
/// A probe's time (bench::probe_host) times its CPU's score.
constexpr double probe_us_times_score = 0.376 * 1913;

/// CPU and load of a host, by its name, a probe, or both, whose errors are alike until more machines have both.
std::pair<std::optional<Cpu>, std::string> known_host(const RunArguments& run) {
    std::string load = run.host_load;
    std::optional<Cpu> cpu;
    if (!run.cpu.empty()) cpu = cpu_named(run.cpu == "local" ? bench::cpu_name() : run.cpu);
    if (run.host_file.empty()) return {cpu, load};
    const JsonField file =
        JsonField::parse(read_file(run.host_file), run.host_file, {}, "schema_version environment")["environment"];
    const auto time = [&](std::string_view key, double least) {
        const auto value = parse_number(file[key].text());
        if (!value || *value < least || *value > 1000)
            file[key].fail(fmt::format("must be a time from {:.2g} to 1000 us", least));
        return *value;
    };
    const double cpu_us = time("probe_cpu_median_us", 0.01), wall_us = time("probe_wall_median_us", 0.9 * cpu_us);
    if (load == "unknown") load = wall_us > crowded * cpu_us ? "shared" : "dedicated";
    const double score = probe_us_times_score / cpu_us;
    if (!cpu) cpu = find_cpu(file["cpu"].text()).value_or(Cpu{"CPU unknown", score});
    return {Cpu{fmt::format("{}, probed {:.2f} us", cpu->name, cpu_us), std::sqrt(cpu->score * score)}, load};
}

/// A card of a newer bus has a newer CPU: usual scores with PCIe 4.0 (the median of five published ones: two A100, A10,
/// RTX 3090, RTX A6000) and 5.0 (the Xeon 8480 of the first servers with an H100).
constexpr double score_with_pcie4 = 1247, score_with_pcie5 = 1902;
/// The same in a desktop: the median of the Core and Ryzen CPUs from 2020 on in data/cpus.csv. Of Ampere's GeForce
/// cards, those of 24 GB stand in servers: four of four measured hosts of an RTX 3090 or 3090 Ti are as slow as theirs.
constexpr double score_of_desktop = 2681, server_memory_bytes = 24e9;
/// Share of fast machines with PCIe 5.0: all six measured hosts of an H100 or H200 are, also one of a provider whose
/// A100 and L40S have slow ones. Source: the rule of succession.
constexpr double fast_with_pcie5 = 7.0 / 8;

/// Gives the fastest machines, which are dedicated ones, or the slowest, this share of the weight.
void weigh_group(std::vector<HostGroup>& groups, bool fastest, double share) {
    const auto [fast, slow] = std::ranges::minmax(groups, {}, &HostGroup::scale);
    const double scale = (fastest ? fast : slow).scale;
    double others = 0;
    for (const HostGroup& group : groups) others += group.scale == scale ? 0 : group.weight;
    for (HostGroup& group : groups) group.weight = group.scale == scale ? share : group.weight / others * (1 - share);
}

/// Standard deviation of the logarithm of a host's costs. Source: 9 machines of framework_tax.csv with a published CPU,
/// one left out. A probe is believed as a name of unknown load, and narrows no name; nor does a card's generation.
double log_stddev_of(const RunArguments& run, bool known, bool dedicated) {
    if (!known) return dedicated ? 0.33 : any_machine_log_stddev;
    return !run.cpu.empty() && run.host_load == "dedicated" ? 0.19 : 0.24;
}

/// Where the machines of the other groups lie: ", 2 to 2.1 × on 47 % of machines".
std::string others(const std::vector<HostGroup>& groups, const HostGroup& most) {
    if (most.weight == 1) return "";
    double least = HUGE_VAL, greatest = 0;
    for (const HostGroup& group : groups) {
        least = std::min(least, group.scale == most.scale ? least : group.scale);
        greatest = std::max(greatest, group.scale == most.scale ? 0 : group.scale);
    }
    const std::string from = fmt::format("{:.2g}", least), to = fmt::format(" to {:.2g}", greatest);
    return fmt::format(", {}{} × on {:.0f} % of machines", from, least < greatest ? to : "", 100 * (1 - most.weight));
}

}  // namespace

std::optional<Cpu> find_cpu(const std::string& name) {
    if (name.empty()) return std::nullopt;
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
    const auto [known, load] = known_host(run);
    const bool loaded = load != "unknown", dedicated = load == "dedicated";
    const bool stated = known || loaded;
    if (!has_word("dedicated shared unknown", load))
        throw_error(ErrorCode::usage, "--host-load {}: must be dedicated, shared or unknown", load);
    const DeviceSpec& card = scenario.device.device;
    if (scale == nullptr || profile.reference_cpu.empty() || !card.host_cpu.empty()) {
        if (profile.host == "reference")
            profile.assumed = card.host_cpu.empty() ? "unknown machine, reference costs" : card.host_cpu;
        if (stated)
            profile.warnings.push_back(
                fmt::format("--cpu, --host-file, --host-load have no effect for {}", profile.framework));
        return;
    }
    const Cpu reference = cpu_named(profile.reference_cpu);
    const bool pcie4 = card.architecture >= Architecture::ampere, pcie5 = card.architecture >= Architecture::hopper;
    const bool desktop = pcie4 && kernels::is_consumer(card) &&
                         (card.architecture > Architecture::ampere || card.memory_bytes < server_memory_bytes);
    const bool fast = desktop || pcie5;
    const double usual = desktop ? score_of_desktop : pcie5 ? score_with_pcie5 : pcie4 ? score_with_pcie4 : 0;
    const Cpu cpu = known.value_or(Cpu{"CPU unknown", std::max(reference.score, usual)});
    const double ratio = reference.score / cpu.score;
    const double spread = log_stddev_of(run, known || (pcie5 && !desktop), dedicated);
    std::vector<HostGroup> groups = profile.groups;
    if (groups.empty()) groups = {{1, scale->value, stated ? spread : std::max(spread, scale->relative_stddev)}};
    if (loaded || (fast && groups.size() > 1)) weigh_group(groups, !loaded || dedicated, loaded ? 1 : fast_with_pcie5);
    for (HostGroup& group : groups) {
        group.log_stddev = std::max(group.log_stddev, stated || fast ? spread : 0);
        group.scale *= ratio;
    }
    const HostGroup most = *std::ranges::max_element(groups, {}, &HostGroup::weight);
    double variance = 0;
    for (const HostGroup& group : groups)
        variance += group.weight * (std::pow(std::log(group.scale / most.scale), 2) + std::pow(group.log_stddev, 2));
    scale->value = most.scale;
    scale->relative_stddev = std::min(std::sqrt(variance), std::max(scale->relative_stddev, most.log_stddev));
    profile.assumed = fmt::format("{}, load {}: {:.2g} × the time of {}{}", cpu.name, load, most.scale, reference.name,
                                  others(groups, most));
    if (stated || !profile.groups.empty()) profile.groups = std::move(groups);
}

}  // namespace ftax::scenario
