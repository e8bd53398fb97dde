#pragma once

#include <string>

#include "src/scenario/scenario.hpp"

/// The host under a framework: what its CPU's name and its load say of host.scale.
namespace ftax::scenario {

/// A CPU of data/cpus.csv. Its score is its maximum turbo clock times the median Geekbench 6 single-core points per GHz
/// of its architecture; single models scatter by 7 to 15 %.
struct Cpu {
    std::string name;
    double score = 0;
};

/// Finds a CPU by its name as /proc/cpuinfo, a cloud's page or people spell it. Throws Error{usage} with similar names.
[[nodiscard]] Cpu cpu_named(const std::string& name);

/// Returns false for names that say no model, as clouds give them.
[[nodiscard]] bool is_known_cpu(const std::string& name);

/// Moves the host's scale to that of the run's --cpu and --host-load, and narrows it by what they say. Throws
/// Error{usage} for an unknown CPU, and for a profile that holds for one machine already.
/// Source: 9 machines of framework_tax.csv whose CPU is published: host time times score is constant but for 0.19
/// (logarithm, one machine left out; 0.24 for runs that other load may have slowed), without the name but for 0.33.
void place_host(FrameworkProfile& profile, const RunArguments& run);

}  // namespace ftax::scenario
