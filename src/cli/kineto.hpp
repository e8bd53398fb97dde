#pragma once

#include <string>

#include "src/cli/verbs.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::cli {
using namespace scenario;

/// A model under one device and framework, and the trace of a run of it.
struct KinetoArguments {
    std::string trace;
    ModelArguments model;
    RunArguments run;
    std::string batch;
    std::string calibrated;  ///< framework profile to write with the trace's host costs; empty for none
};

/// Prints a prediction beside a trace of torch.profiler, operator by operator, and the host costs that it can
/// calibrate. Throws Error{usage} for a framework that does not run the model's operators one by one, Error{profile}
/// for a trace that is none.
int compare_with_kineto(const KinetoArguments& arguments, const OutputArguments& output);

}  // namespace ftax::cli
