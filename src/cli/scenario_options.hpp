#pragma once

#include <string>

#include "src/cli/verbs.hpp"
#include "src/scenario/combinations.hpp"
#include "src/scenario/scenario.hpp"

/// The options that say which model runs where.
namespace ftax::cli {
using namespace scenario;

/// Which model runs where, and where the result goes.
struct PredictedRun {
    ModelArguments model;
    RunArguments run;
    OutputArguments output;
};

/// Arguments of a function, and where its result goes.
template <class Arguments>
struct WithOutput : Arguments {
    OutputArguments output;
};

void add_model_options(CLI::App& verb, ModelArguments& arguments);
/// All of the above but the positional MODEL.
void add_import_options(CLI::App& verb, ModelArguments& arguments);
/// `several` says where lists are taken.
void add_run_options(CLI::App& verb, RunArguments& arguments, std::string_view several = "");
/// After add_run_options: device, framework and precision become lists, with --tp, and --price, --slo, --sort and --top
/// rank all combinations. `order`: the default without --price.
void add_choice_options(CLI::App& verb, ChoiceArguments& arguments,
                        std::string_view order = "throughput with --slo, else latency");
void add_advice_option(CLI::App& verb, bool& advises);
/// With those of the link between cards.
void add_engine_options(CLI::App& verb, ModelArguments& model, RunArguments& arguments);
/// Adds --batch; the text is parsed by parse_batches.
void add_batch_option(CLI::App& verb, std::string& batches, const std::string& note = " (default: 1)");

}  // namespace ftax::cli
