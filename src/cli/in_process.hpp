#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ftax/graph.hpp"
#include "src/scenario/scenario.hpp"

/// Commands run inside another process, for Python's functions and for agents, with the same options and results.
namespace ftax::cli {

/// The forms of a result. The page is empty unless requested and supported by the command.
struct Result {
    std::string table, json, page;
};

inline constexpr const char* commands_in_process[] = {"predict",  "compare", "crossover", "headroom",
                                                      "generate", "serve",   "inspect",   "validate",
                                                      "models",   "devices", "frameworks"};

/// Runs the words of a command line, one call at a time; `graph` replaces the model that they name. Throws Error.
[[nodiscard]] Result run_in_process(const std::vector<std::string>& words, const Graph* graph, bool with_page);

/// Parses the options of a run, such as "--device=t4". Throws Error{usage}.
[[nodiscard]] scenario::RunArguments run_of(const std::vector<std::string>& options);

/// Returns a command's options, without dashes, with their descriptions.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> options_of(const std::string& command);

[[nodiscard]] std::string description_of(const std::string& command);

/// Returns the JSON schema of a command's arguments, without output files.
[[nodiscard]] nlohmann::json schema_of_arguments(const std::string& command);

/// Converts such an object to command-line words. Throws Error{usage} naming the argument.
[[nodiscard]] std::vector<std::string> words_of(const std::string& command, const nlohmann::json& arguments);

}  // namespace ftax::cli
