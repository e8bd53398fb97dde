#include "src/cli/misuse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "src/cli/command_tree.hpp"
#include "src/core/near_names.hpp"

namespace ftax::cli {
namespace {

/// The innermost command that was recognised.
const CLI::App& innermost(const CLI::App& app) {
    const std::vector<CLI::App*> parsed = app.get_subcommands();
    const auto named =
        std::find_if(parsed.begin(), parsed.end(), [](const auto* sub) { return !sub->get_name().empty(); });
    return named == parsed.end() ? app : innermost(**named);
}

std::string words_of(const CLI::App& command) {
    const CLI::App* parent = command.get_parent();
    if (parent == nullptr) return "";
    const std::string before = words_of(*parent);
    return before.empty() ? command.get_name() : before + " " + command.get_name();
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& candidates) {
    const std::vector<std::string> near = near_names(name, candidates);
    return near.empty() ? "" : fmt::format("; did you mean {}?", fmt::join(near, " or "));
}

}  // namespace

std::string describe_misuse(const CLI::App& app, const CLI::ParseError& error) {
    const CLI::App& parsed = innermost(app);
    const std::string words = words_of(parsed);
    const std::vector<Command> commands = command_tree(app);
    const Command& command =
        *std::find_if(commands.begin(), commands.end(), [&](const Command& c) { return c.words == words; });
    const std::string where = words.empty() ? "" : words + ": ";
    const std::string all = fmt::format(" (`ftax{} --help` lists all)", words.empty() ? "" : " " + words);

    const std::vector<std::string> unknown = parsed.remaining();
    const auto option =
        std::find_if(unknown.begin(), unknown.end(), [](const std::string& word) { return word.starts_with('-'); });
    if (!command.subcommands.empty() && option != unknown.begin()) {
        return fmt::format("{}no command is called '{}'{}{}", where, unknown.front(),
                           did_you_mean(unknown.front(), command.subcommands), all);
    }
    if (option != unknown.end()) {
        std::vector<std::string> names;
        for (const OptionOfCommand& known : command.options) {
            names.insert(names.end(), known.names.begin(), known.names.end());
        }
        return fmt::format("{}no option is called {}{}{}", where, *option, did_you_mean(*option, names), all);
    }
    if (!unknown.empty()) return fmt::format("{}'{}' is a word too many", where, unknown.front());
    if (!command.subcommands.empty() && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
        return fmt::format("{}a command is missing: {}", where, fmt::join(command.subcommands, ", "));
    }
    return error.what();
}

}  // namespace ftax::cli
