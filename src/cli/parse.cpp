#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/base/throw_error.hpp"
#include "src/cli/verbs.hpp"

namespace ftax::cli {
namespace {

const CLI::App& innermost(const CLI::App& app) {
    const std::vector<CLI::App*> parsed = app.get_subcommands();
    const auto named = std::ranges::find_if(parsed, [](const auto* sub) { return !sub->get_name().empty(); });
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

/// Names the unknown command or option and similar ones; returns CLI11's message for other errors.
std::string describe_misuse(const CLI::App& app, const CLI::ParseError& error) {
    const CLI::App& parsed = innermost(app);
    const std::string words = words_of(parsed);
    const std::vector<Command> commands = command_tree(app);
    const Command& command = *std::ranges::find(commands, words, &Command::words);
    const std::string where = words.empty() ? "" : words + ": ";
    const std::string all = fmt::format(" (`ftax{} --help` lists all)", words.empty() ? "" : " " + words);

    std::vector<std::string> unknown = parsed.remaining();
    std::erase(unknown, "--");
    const auto option = std::ranges::find_if(unknown, [](const std::string& word) { return word.starts_with('-'); });
    if (!command.subcommands.empty() && option != unknown.begin())
        return fmt::format("{}unknown command '{}'{}{}", where, unknown.front(),
                           did_you_mean(unknown.front(), command.subcommands), all);
    if (option != unknown.end()) {
        std::vector<std::string> names;
        for (const OptionOfCommand& known : command.options)
            names.insert(names.end(), known.names.begin(), known.names.end());
        return fmt::format("{}unknown option {}{}{}", where, *option, did_you_mean(*option, names), all);
    }
    if (!unknown.empty()) {
        const auto is_value = [&](const auto& known) { return std::ranges::count(known.values, unknown.front()) > 0; };
        return fmt::format("{}unexpected argument '{}'{}", where, unknown.front(),
                           std::ranges::any_of(command.options, is_value) ? "; lists have commas: A,B" : "");
    }
    if (!command.subcommands.empty() && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
        return fmt::format("{}missing command: {}", where, fmt::join(command.subcommands, ", "));
    const std::string text = error.what();  // CLI11: "Could not convert: --rate = 1,2"
    if (!text.starts_with("Could not convert: ")) return text;
    const auto [name, value] = split_at(std::string_view(text).substr(19), '=');
    const bool is_number = parse_number(value.substr(1)).has_value();
    return fmt::format("{}: {} is not a {}number", name.substr(0, name.size() - 1), value.substr(1),
                       is_number ? "whole " : "");
}

/// Parses the command line. CLI11 passes the word after a bare `--json` or `--csv` to that option, even if it is the
/// verb's required positional; in that case the option means standard output.
void parse_words(CLI::App& app, std::vector<std::string> words) {
    std::vector<std::string> reversed(words.rbegin(), words.rend());  // CLI11 expects reversed order
    try {
        return app.parse(std::move(reversed));
    } catch (const CLI::RequiredError&) {
        const auto bare =
            std::ranges::find_if(words, [](const auto& word) { return word == "--json" || word == "--csv"; });
        if (bare == words.end()) throw;
        words.insert(bare + 1, "-");
    }
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
}

/// Refuses empty values, such as those of unset variables in scripts.
void refuse_empty_values(const CLI::App& app) {
    for (const CLI::Option* option : app.get_options()) {
        const bool may_be_empty = option->get_items_expected_min() == 0 || option->get_name() == "WORDS";
        if (!may_be_empty && std::ranges::count(option->results(), "") > 0)
            throw_error(ErrorCode::usage, "{} is empty: give a value or leave it out", option->get_name());
    }
    for (const CLI::App* part : app.get_subcommands([](const CLI::App*) { return true; })) refuse_empty_values(*part);
}

}  // namespace

bool parse(CLI::App& app, std::vector<std::string> words) {
    if (!words.empty() && words.front() == "help") {
        words.erase(words.begin());
        words.emplace_back("--help");
    }
    try {
        parse_words(app, std::move(words));
        refuse_empty_values(app);
        return true;
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() != 0) throw Error(ErrorCode::usage, describe_misuse(app, error));
        app.exit(error);  // --help, --version
        return false;
    }
}

}  // namespace ftax::cli
