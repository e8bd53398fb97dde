#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace ftax::cli {

/// Says what is wrong with a command line that CLI11 refused: which command or option does not exist, and which are
/// near; CLI11's own words where it is something else.
[[nodiscard]] std::string describe_misuse(const CLI::App& app, const CLI::ParseError& error);

}  // namespace ftax::cli
