#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string_view>

namespace ftax::cli {

/// What the program does once its arguments are parsed; returns the exit code.
using Action = std::function<int()>;

/// Exit code 1: the answer is no.
inline constexpr int over_max_mape = 1;
inline constexpr int interrupted = 1;

/// Each adds one verb to the program; parsing the verb sets `action`. One file per verb.
void setup_predict(CLI::App& app, Action& action);
void setup_crossover(CLI::App& app, Action& action);
void setup_compare(CLI::App& app, Action& action);
void setup_explore(CLI::App& app, Action& action);
void setup_headroom(CLI::App& app, Action& action);
void setup_generate(CLI::App& app, Action& action);
void setup_inspect(CLI::App& app, Action& action);
void setup_convert(CLI::App& app, Action& action);
void setup_validate(CLI::App& app, Action& action);
void setup_devices(CLI::App& app, Action& action);
void setup_frameworks(CLI::App& app, Action& action);
void setup_profiles(CLI::App& app, Action& action);
void setup_doctor(CLI::App& app, Action& action);
void setup_nas(CLI::App& app, Action& action);
void setup_measure(CLI::App& app, Action& action);
void setup_completion(CLI::App& app, Action& action);
void setup_manual(CLI::App& app, Action& action);
#ifdef FTAX_WITH_FIT  // where it is not, two stand-ins in verbs.cpp say so
void setup_calibrate(CLI::App& app, Action& action);
void setup_fit(CLI::App& app, Action& action);
#endif

/// True for a verb of this program that describes no others, as the manual does.
[[nodiscard]] bool stands_alone(std::string_view word);

/// Adds the verb that `first_word` of the command line names, so that a start does not pay for the options of the
/// others; all of them, in the order in which the help lists them, where it names none or one that describes all.
void setup_verbs(CLI::App& app, Action& action, std::string_view first_word);

}  // namespace ftax::cli
