#pragma once

#include <optional>
#include <string>

#include "src/scenario/scenario.hpp"

namespace ftax::scenario {

/// A CPU of data/cpus.csv. Its score is its maximum turbo clock times the median Geekbench 6 single-core points per GHz
/// of its architecture; single models scatter by 7 to 15 %.
struct Cpu {
    std::string name;
    double score = 0;
};

/// Finds a CPU by its name as /proc/cpuinfo, a cloud's page or people spell it. Returns nullopt for names that say no
/// model, as clouds give them, and for those of several.
[[nodiscard]] std::optional<Cpu> find_cpu(const std::string& name);

/// Moves the host's scale by the run's --cpu, --host-file and --host-load, narrows it, and states what is assumed of
/// the host. Costs that hold for one machine, or for a device's own CPU, stay, with a warning. Throws Error{usage} for
/// an unknown CPU, Error{profile} for a host file without its probe.
void place_host(Scenario& scenario, const RunArguments& run);

}  // namespace ftax::scenario
