#pragma once

#include <string>

#include "src/cli/verbs.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::cli {
using namespace scenario;

struct KinetoArguments {
    std::string trace;
    ModelArguments model;
    RunArguments run;
    std::string batch;
    std::string calibrated;  ///< path of a framework profile to write with the trace's host costs; empty: none
};

/// Compares a prediction with a trace of torch.profiler, operator by operator, and prints the host costs that it
/// calibrates. Throws Error{usage} for a framework that does not run the model's operators one by one, Error{profile}
/// for an invalid trace.
int compare_with_kineto(const KinetoArguments& arguments, const OutputArguments& output);

}  // namespace ftax::cli
