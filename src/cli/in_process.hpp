#pragma once

#include <string>
#include <vector>

#include "ftax/graph.hpp"

/// Commands that run inside another process, as Python's functions do: the same options, defaults and results.
namespace ftax::cli {

/// The forms of a result. The page is written where it is asked for and the command has one.
struct Result {
    std::string table, json, page;
};

/// Runs one of compare, generate, serve and validate with the words of a command line; `graph`, where there is one,
/// stands for the model that they name. Calls take turns. Throws Error.
[[nodiscard]] Result run_in_process(const std::vector<std::string>& words, const Graph* graph, bool with_page);

/// The options that a command takes, without dashes, each with its description.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> options_of(const std::string& command);

}  // namespace ftax::cli
