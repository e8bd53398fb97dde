#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>
#include <string>
#include <string_view>

#include "src/cli/verbs.hpp"

namespace ftax::cli {
namespace {

/// Escapes text for man's macros: no escapes, no macro at the start of a line, copyable hyphens.
std::string roff(std::string_view text) {
    std::string result;
    bool line_begins = true;
    for (const char& c : text) {
        if (line_begins && (c == '.' || c == '\'')) result += "\\&";
        line_begins = c == '\n';
        result += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string_view(&c, 1);
    }
    return result;
}

std::string synopsis(const Command& command) {
    std::string text = command.words.empty() ? ".B ftax" : fmt::format(".B ftax {}", roff(command.words));
    text += "\n";
    for (const OptionOfCommand& positional : command.positionals) {
        const std::string value = roff(positional.value);
        text += positional.required ? fmt::format(".I {}\n", value) : fmt::format(".RI [ {} ]\n", value);
    }
    if (!command.subcommands.empty()) text += ".I COMMAND\n";
    return text + ".RI [ OPTIONS ]\n";
}

std::string option_entry(const OptionOfCommand& option) {
    std::string text = ".TP\n";
    if (option.names.empty()) {
        text += fmt::format(".I {}\n", roff(option.value));
    } else {
        text += fmt::format(".BR \"{}\"", roff(fmt::format("{}", fmt::join(option.names, ", "))));
        if (!option.value.empty()) text += fmt::format(" \" \\fI{}\\fR\"", roff(option.value));
        text += "\n";
    }
    return text + roff(option.description) + "\n";
}

std::string manual(const CLI::App& app) {
    std::string text = fmt::format(
        ".TH FTAX 1 \"\" \"ftax {}\" \"User Commands\"\n.SH NAME\nftax \\- latency of neural "
        "networks on GPUs under a given framework\n.SH SYNOPSIS\n",
        FTAX_VERSION);
    const std::vector<Command> commands = command_tree(app);
    text += synopsis(commands.front()) + ".SH DESCRIPTION\n" + roff(app.get_description()) + "\n";
    for (const OptionOfCommand& option : commands.front().options) text += option_entry(option);
    text += ".SH COMMANDS\n";
    for (const Command& command : commands) {
        if (command.words.empty()) continue;
        text += fmt::format(".SS {}\n", roff(command.words)) + synopsis(command) + ".PP\n" + roff(command.description) +
                "\n";
        for (const OptionOfCommand& positional : command.positionals) text += option_entry(positional);
        for (const OptionOfCommand& option : command.options) text += option_entry(option);
    }
    // The footer of --help: sections of a title and indented lines.
    std::istringstream footer(app.get_footer());
    bool literal = false;
    for (std::string line; std::getline(footer, line);) {
        const bool indented = line.starts_with("  ");
        if (literal && !indented) text += ".EE\n";
        if (!literal && indented) text += ".EX\n";
        literal = indented;
        if (line.ends_with(':') && !indented) {
            text += fmt::format(".SH {}\n", roff(line.substr(0, line.size() - 1)));
        } else if (!line.empty()) {
            text += roff(line) + "\n";
        }
    }
    return text + (literal ? ".EE\n" : "");
}

}  // namespace

void setup_manual(CLI::App& verb, Action& action) {
    const CLI::App& app = *verb.get_parent();
    verb.callback([&app, &action] {
        action = [&app] {
            write_standard_output(manual(app));
            return 0;
        };
    });
}

}  // namespace ftax::cli
