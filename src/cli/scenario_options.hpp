#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "src/scenario/scenario.hpp"

/// The options that say which model runs where.
namespace ftax::cli {
using namespace scenario;

void add_model_options(CLI::App& verb, ModelArguments& arguments);
/// All of the above but the positional MODEL.
void add_import_options(CLI::App& verb, ModelArguments& arguments);
void add_run_options(CLI::App& verb, RunArguments& arguments);
/// Adds --batch; the text is parsed by parse_batches.
void add_batch_option(CLI::App& verb, std::string& batches);

}  // namespace ftax::cli
