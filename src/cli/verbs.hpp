#pragma once

#include <functional>
#include <string_view>

#include "src/cli/options.hpp"

namespace ftax::cli {

/// What the program does once its arguments are parsed; returns the exit code.
using Action = std::function<int()>;

/// Exit code 1: the answer is no.
inline constexpr int over_max_mape = 1;
inline constexpr int interrupted = 1;

/// Each adds one verb to the program; parsing the verb sets `action`. One file per verb.
void setup_predict(Verb app, Action& action);
void setup_crossover(Verb app, Action& action);
void setup_compare(Verb app, Action& action);
void setup_explore(Verb app, Action& action);
void setup_headroom(Verb app, Action& action);
void setup_generate(Verb app, Action& action);
void setup_serve(Verb app, Action& action);
void setup_inspect(Verb app, Action& action);
void setup_convert(Verb app, Action& action);
void setup_validate(Verb app, Action& action);
void setup_devices(Verb app, Action& action);
void setup_frameworks(Verb app, Action& action);
void setup_profiles(Verb app, Action& action);
void setup_doctor(Verb app, Action& action);
void setup_nas(Verb app, Action& action);
void setup_measure(Verb app, Action& action);
void setup_completion(Verb app, Action& action);
void setup_manual(Verb app, Action& action);
#ifdef FTAX_WITH_FIT  // where it is not, two stand-ins in verbs.cpp say so
void setup_calibrate(Verb app, Action& action);
void setup_fit(Verb app, Action& action);
#endif

/// True for a verb of this program that describes no others, as the manual does.
[[nodiscard]] bool stands_alone(std::string_view word);

/// Adds the verb that `first_word` of the command line names, so that a start does not pay for the options of the
/// others; all of them, in the order in which the help lists them, where it names none or one that describes all.
void setup_verbs(Verb app, Action& action, std::string_view first_word);

}  // namespace ftax::cli
