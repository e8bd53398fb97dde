#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ftax/graph.hpp"

/// Commands that run inside another process, for Python's functions and for agents: the same options, defaults and
/// results.
namespace ftax::cli {

/// The forms of a result. The page is written where it is asked for and the command has one.
struct Result {
    std::string table, json, page;
};

/// Those that run so.
[[nodiscard]] std::vector<std::string> commands_in_process();

/// Runs one of them with the words of a command line; `graph`, where there is one, stands for the model that they name.
/// Calls take turns. Throws Error.
[[nodiscard]] Result run_in_process(const std::vector<std::string>& words, const Graph* graph, bool with_page);

/// The options that a command takes, without dashes, each with its description.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> options_of(const std::string& command);

[[nodiscard]] std::string description_of(const std::string& command);

/// A JSON schema of an object with the arguments of a command, but for the files that it would write.
[[nodiscard]] nlohmann::json schema_of_arguments(const std::string& command);

/// The words of a command line from such an object. Throws Error{usage} that names the argument.
[[nodiscard]] std::vector<std::string> words_of(const std::string& command, const nlohmann::json& arguments);

}  // namespace ftax::cli
