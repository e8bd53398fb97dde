#include "src/scenario/cpu.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "calibration/bench/machine.hpp"
#include "src/core/embedded.hpp"
#include "src/core/near_names.hpp"
#include "src/core/parameters.hpp"
#include "src/core/throw_error.hpp"
#include "src/io/csv.hpp"
#include "src/io/escape.hpp"
#include "src/io/number.hpp"

namespace ftax::scenario {
namespace {

constexpr double dedicated_log_stddev = 0.19, unknown_load_log_stddev = 0.24;

/// "Intel(R) Xeon(R) Platinum 8480+ CPU @ 2.00GHz" → "intelxeonplatinum8480+"
std::string key_of(std::string text) {
    text = lower_case(text.substr(0, text.find('@')));
    for (const std::string_view noise : {"(r)", "(tm)", " cpu", " processor"}) {
        for (std::size_t at; (at = text.find(noise)) != std::string::npos;) text.erase(at, noise.size());
    }
    if (const std::size_t cores = text.find("-core"); cores != std::string::npos) {
        const std::size_t number = text.rfind(' ', cores);
        text.erase(std::min(number, cores), cores + 5 - std::min(number, cores));
    }
    std::erase_if(text, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '+'; });
    return text;
}

double log_variance(const std::vector<HostGroup>& groups, const HostGroup& around) {
    double weights = 0, variance = 0;
    for (const HostGroup& group : groups) {
        weights += group.weight;
        variance += group.weight * (std::pow(std::log(group.scale / around.scale), 2) + std::pow(group.log_stddev, 2));
    }
    return variance / weights;
}

}  // namespace

Cpu cpu_named(const std::string& name) {
    static const CsvTable table(embedded_text("data/cpus.csv"), "data/cpus.csv");
    const std::string wanted = key_of(name);
    std::vector<Cpu> found;
    std::vector<std::string> names;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        Cpu cpu{std::string(table.cell(row, "name")), parse_number(table.cell(row, "score")).value_or(0)};
        const std::string key = key_of(cpu.name);
        if (key == wanted) return cpu;
        names.push_back(cpu.name);
        if (key.ends_with(wanted)) found.push_back(std::move(cpu));
    }
    if (found.size() == 1) return found.front();
    names = near_names(name, names, 6);
    throw_error(
        ErrorCode::usage, "{} CPU '{}'{}", found.empty() ? "unknown" : "ambiguous", escape_terminal(name),
        names.empty() ? "; data/cpus.csv lists all" : fmt::format("; did you mean {}?", fmt::join(names, ", ")));
}

bool is_known_cpu(const std::string& name) {
    try {
        return cpu_named(name).score > 0;
    } catch (const Error&) {
        return false;
    }
}

void place_host(FrameworkProfile& profile, const RunArguments& run) {
    if (run.cpu.empty() && run.host_load == "unknown") return;
    if (run.costs || !run.host.empty() || !run.framework_profile.empty())
        throw Error(ErrorCode::usage, "--cpu and --host-load go with the reference host, not with --host or a profile");
    Parameter* scale = find_parameter(profile.parameters, "host.scale");
    if (scale == nullptr || profile.reference_cpu.empty()) {
        profile.warnings.push_back(
            fmt::format("host costs of {} name no reference machine: --cpu does not move them", profile.framework));
        return;
    }
    double ratio = 1, log_stddev = scale->relative_stddev;
    if (!run.cpu.empty()) {
        const Cpu cpu = cpu_named(run.cpu == "local" ? bench::cpu_name() : run.cpu);
        ratio = cpu_named(profile.reference_cpu).score / cpu.score;
        log_stddev =
            std::min(log_stddev, run.host_load == "dedicated" ? dedicated_log_stddev : unknown_load_log_stddev);
        profile.host += " on " + cpu.name;
    }
    if (run.host_load != "unknown") profile.host += ", " + run.host_load;
    std::vector<HostGroup>& groups = profile.groups;
    const auto by_scale = [](const HostGroup& a, const HostGroup& b) { return a.scale < b.scale; };
    if (groups.size() > 1 && run.host_load == "dedicated") groups = {*std::ranges::min_element(groups, by_scale)};
    if (groups.size() > 1 && run.host_load == "shared") groups = {*std::ranges::max_element(groups, by_scale)};
    scale->value *= ratio;
    if (!groups.empty()) {
        for (HostGroup& group : groups) {
            group.scale *= ratio;
            group.log_stddev = std::max(group.log_stddev, dedicated_log_stddev);
        }
        const HostGroup& most = *std::ranges::max_element(groups, {}, &HostGroup::weight);
        scale->value = most.scale;
        log_stddev = std::min(scale->relative_stddev, std::sqrt(log_variance(groups, most)));
    }
    scale->relative_stddev = log_stddev;
    scale->source += fmt::format("; times {:.3g} for {}", ratio, profile.host);
}

}  // namespace ftax::scenario
