#pragma once

#include <string>
#include <vector>

#include "src/cli/options.hpp"

/// The program's commands as its man page and shell completions list them.
namespace ftax::cli {

struct OptionOfCommand {
    std::vector<std::string> names;  ///< "-q", "--quiet"; empty for a positional
    std::string value;               ///< "FILE", "MODEL"; empty for a flag
    std::string description;
    std::vector<std::string> values;  ///< all that it takes, where they can be listed
    bool required = false;
    bool repeatable = false;  ///< each time with one value
};

struct Command {
    std::string words;  ///< "devices show"; empty for the program itself
    std::string description;
    std::vector<OptionOfCommand> options;  ///< those of option groups among them
    std::vector<OptionOfCommand> positionals;
    std::vector<std::string> subcommands;
};

/// All commands of a program, each before its subcommands.
[[nodiscard]] std::vector<Command> command_tree(Verb app);

}  // namespace ftax::cli
