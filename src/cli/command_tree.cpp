#include <algorithm>
#include <string_view>

#include "ftax/framework.hpp"
#include "ftax/import.hpp"
#include "ftax/nas.hpp"
#include "ftax/precision.hpp"
#include "predictors/profiles/device_file.hpp"
#include "src/cli/verbs.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::cli {
namespace {

/// Returns the values of an option or positional by its name, which has the same meaning in all commands.
std::vector<std::string> known_values(const std::string& name) {
    if (name == "--device" || name == "DEVICE") return device_slugs();
    if (name == "--framework") return framework_names();
    if (name == "--precision") return precision_names();
    if (name == "--space") return nas::space_names();
    if (name == "MODEL") return zoo_names();
    if (name == "SHELL") return {"bash", "zsh", "fish"};
    return {};
}

/// Returns CLI11's text for a value without appended checks: "PERCENT:POSITIVE", but "NAME:N" is the value itself.
std::string value_name(const std::string& type) {
    std::size_t end = type.size();
    for (const char* check : {":{", ":POSITIVE", ":FLOAT", ":INT", ":UINT"}) end = std::min(end, type.find(check));
    return type.substr(0, end);
}

/// Parses the list that CLI11 appends to a type for IsMember: "TEXT:{memory-bound,error}".
std::vector<std::string> listed_values(std::string_view type) {
    const std::size_t open = type.find(":{");
    if (open == std::string_view::npos || !type.ends_with('}')) return {};
    return scenario::split_list(type.substr(open + 2, type.size() - open - 3));
}

OptionOfCommand describe(const CLI::Option& option) {
    OptionOfCommand result{.description = option.get_description(),
                           .required = option.get_required(),
                           .repeatable = option.get_items_expected_max() > 1};
    for (const std::string& name : option.get_snames()) result.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) result.names.push_back("--" + name);
    const std::string type = option.get_type_name();
    if (result.names.empty()) {
        result.value = option.get_name(true);
    } else if (option.get_items_expected_max() > 0) {
        result.value = value_name(type);
    }
    result.values = known_values(result.names.empty() ? result.value : result.names.back());
    if (result.values.empty()) result.values = listed_values(type);
    return result;
}

void add_options(const CLI::App& app, Command& command) {
    for (const CLI::Option* option : app.get_options()) {
        const bool of_group = app.get_name().empty() && app.get_parent() != nullptr;
        if (of_group && option == app.get_help_ptr()) continue;
        (option->get_positional() ? command.positionals : command.options).push_back(describe(*option));
    }
}

void add_commands(const CLI::App& app, const std::string& words, std::vector<Command>& commands) {
    const std::size_t own = commands.size();
    commands.push_back({.words = words, .description = app.get_description()});
    add_options(app, commands[own]);
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
        if (sub->get_name().empty()) {  // an option group
            add_options(*sub, commands[own]);
            continue;
        }
        commands[own].subcommands.push_back(sub->get_name());
        add_commands(*sub, words.empty() ? sub->get_name() : words + " " + sub->get_name(), commands);
    }
}

}  // namespace

std::vector<Command> command_tree(const CLI::App& app) {
    std::vector<Command> commands;
    add_commands(app, "", commands);
    return commands;
}

}  // namespace ftax::cli
