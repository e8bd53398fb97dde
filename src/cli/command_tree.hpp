#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

/// The program's commands, for the man page and shell completions.
namespace ftax::cli {

struct OptionOfCommand {
    std::vector<std::string> names;  ///< "-q", "--quiet"; empty for a positional
    std::string value;               ///< "FILE", "MODEL"; empty for a flag
    std::string description;
    std::vector<std::string> values;  ///< accepted values, if they can be listed
    bool required = false;
    bool repeatable = false;  ///< one value per occurrence
};

struct Command {
    std::string words;  ///< "devices show"; empty for the program itself
    std::string description;
    std::vector<OptionOfCommand> options;  ///< including those of option groups
    std::vector<OptionOfCommand> positionals;
    std::vector<std::string> subcommands;
};

/// Returns all commands of a program, each before its subcommands.
[[nodiscard]] std::vector<Command> command_tree(const CLI::App& app);

}  // namespace ftax::cli
