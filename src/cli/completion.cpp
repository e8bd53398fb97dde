#include <algorithm>
#include <string>
#include <vector>

#include "graphs/base/embedded.hpp"
#include "src/cli/verbs.hpp"

namespace ftax::cli {
namespace {

struct CompletionArguments {
    std::string shell;
    std::vector<std::string> words;
};

std::string lines_of(const std::vector<std::string>& values, const std::string& before = "") {
    std::string text;
    for (const std::string& value : values) text += before + value + "\n";
    return text;
}

const Command* find_part(const std::vector<Command>& commands, const Command& of, const std::string& name) {
    const auto found = std::ranges::find(commands, of.words.empty() ? name : of.words + " " + name, &Command::words);
    return found == commands.end() ? nullptr : &*found;
}

/// Returns the candidates for the last word, one per line, some with a tab and a description.
std::string offers(const std::vector<Command>& commands, const std::vector<std::string>& words) {
    const Command* command = &commands.front();
    const OptionOfCommand* asks = nullptr;  // option that expects a value
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        if (const Command* next = find_part(commands, *command, words[i])) command = next;
        asks = nullptr;
        for (const OptionOfCommand& option : command->options)
            if (!option.value.empty() && std::ranges::find(option.names, words[i]) != option.names.end())
                asks = &option;
    }
    const std::string current = words.empty() ? "" : words.back();
    if (asks) return lines_of(asks->values, current.substr(0, current.rfind(',') + 1));
    std::string text;
    if (current.starts_with('-')) {
        for (const OptionOfCommand& option : command->options)
            for (const std::string& name : option.names) text += name + "\t" + option.description + "\n";
        return text;
    }
    for (const std::string& sub : command->subcommands)
        text += sub + "\t" + find_part(commands, *command, sub)->description + "\n";
    for (const OptionOfCommand& positional : command->positionals) text += lines_of(positional.values);
    return text;
}

}  // namespace

/// The shells call `ftax completion words -- WORDS` with an incomplete last word; without a result they list files.
void setup_completion(CLI::App& verb, Action& action) {
    const auto arguments = std::make_shared<CompletionArguments>();
    verb.add_option("SHELL", arguments->shell, "bash, zsh or fish")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish", "words"}));
    verb.add_option("WORDS", arguments->words, "words of an incomplete command: prints the candidates");
    const CLI::App& app = *verb.get_parent();
    verb.callback([&app, &action, arguments] {
        action = [&app, arguments] {
            const std::string& shell = arguments->shell;
            std::string text(embedded_text("src/cli/assets/completion." + shell));
            if (shell == "zsh") text += embedded_text("src/cli/assets/completion.bash");
            write_standard_output(shell == "words" ? offers(command_tree(app), arguments->words) : text);
            return 0;
        };
    });
}

}  // namespace ftax::cli
