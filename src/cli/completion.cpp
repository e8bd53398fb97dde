#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/cli/command_tree.hpp"
#include "src/cli/verbs.hpp"

namespace ftax::cli {
namespace {

/// A word in single quotes, for any of the shells.
std::string shell_word(std::string_view text) {
    std::string result = "'";
    for (const char c : text) result += c == '\'' ? std::string("’") : std::string(1, c);
    return result + "'";
}

std::string joined(const std::vector<std::string>& words) {
    return fmt::format("{}", fmt::join(words, " "));
}

std::vector<std::string> option_names(const Command& command) {
    std::vector<std::string> names;
    for (const OptionOfCommand& option : command.options)
        names.insert(names.end(), option.names.begin(), option.names.end());
    return names;
}

/// Options that take a value, and the values where they are known; those of one name take the same everywhere.
std::map<std::string, std::vector<std::string>> values_of_options(const std::vector<Command>& commands) {
    std::map<std::string, std::vector<std::string>> values;
    for (const Command& command : commands) {
        for (const OptionOfCommand& option : command.options) {
            if (option.value.empty()) continue;
            for (const std::string& name : option.names) values[name] = option.values;
        }
    }
    return values;
}

/// One function that follows the words to the command, then offers what may come next. Where it offers nothing the
/// shell completes files.
std::string bash_completion(const std::vector<Command>& commands) {
    std::vector<std::string> paths;
    for (const Command& command : commands) {
        if (!command.words.empty()) paths.push_back("'" + command.words + "'");
    }
    std::string text = fmt::format(R"(# Completes ftax in bash:  source <(ftax completion bash)
_ftax() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" command='' next options='' words='' i
    for ((i = 1; i < COMP_CWORD; i++)); do
        next="${{command:+$command }}${{COMP_WORDS[i]}}"
        case "$next" in {}) command="$next" ;; esac
    done
    case "$previous" in
)",
                                   fmt::join(paths, "|"));
    std::vector<std::string> unlisted;
    for (const auto& [name, values] : values_of_options(commands)) {
        if (values.empty()) {
            unlisted.push_back(name);
        } else {
            text += fmt::format("        {}) COMPREPLY=($(compgen -W '{}' -- \"$current\")); return ;;\n", name,
                                joined(values));
        }
    }
    text += fmt::format("        {}) COMPREPLY=(); return ;;\n    esac\n    case \"$command\" in\n",
                        fmt::join(unlisted, "|"));
    for (const Command& command : commands) {
        std::vector<std::string> words = command.subcommands;
        for (const OptionOfCommand& positional : command.positionals) {
            words.insert(words.end(), positional.values.begin(), positional.values.end());
        }
        text += fmt::format("        '{}') options='{}'; words='{}' ;;\n", command.words, joined(option_names(command)),
                            joined(words));
    }
    return text + R"(    esac
    case "$current" in
        -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
        *) COMPREPLY=($(compgen -W "$words" -- "$current") $([ -z "$command" ] || compgen -f -- "$current")) ;;
    esac
}
complete -o default -F _ftax ftax
)";
}

/// zsh runs the function of bash.
std::string zsh_completion(const std::vector<Command>& commands) {
    return "# Completes ftax in zsh:  source <(ftax completion zsh)\nautoload -U +X bashcompinit && bashcompinit\n" +
           bash_completion(commands);
}

/// One line for each word, option and list of values.
std::string fish_completion(const std::vector<Command>& commands) {
    std::string text = "# Completes ftax in fish:  ftax completion fish | source\n";
    for (const Command& command : commands) {
        std::string condition = "__fish_use_subcommand";
        if (!command.words.empty()) {
            std::string words = command.words;
            std::replace(words.begin(), words.end(), ' ', ';');
            const std::size_t separator = words.find(';');
            condition = "__fish_seen_subcommand_from " + words.substr(0, separator);
            if (separator != std::string::npos)
                condition += "; and __fish_seen_subcommand_from " + words.substr(separator + 1);
        }
        const std::string line = fmt::format("complete -c ftax -n {}", shell_word(condition));
        for (const Command& sub : commands) {
            const std::string path = (command.words.empty() ? "" : command.words + " ");
            if (sub.words.empty() || !sub.words.starts_with(path)) continue;
            const std::string word = sub.words.substr(path.size());
            if (word.empty() || word.find(' ') != std::string::npos) continue;
            text += fmt::format("{} {}-a {} -d {}\n", line, command.words.empty() ? "-f " : "", word,
                                shell_word(sub.description));
        }
        for (const OptionOfCommand& option : command.options) {
            text += line;
            for (const std::string& name : option.names) {
                text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
            }
            if (!option.value.empty())
                text += option.values.empty() ? " -r" : fmt::format(" -x -a {}", shell_word(joined(option.values)));
            text += fmt::format(" -d {}\n", shell_word(option.description));
        }
        for (const OptionOfCommand& positional : command.positionals) {
            if (!positional.values.empty())
                text += fmt::format("{} -a {}\n", line, shell_word(joined(positional.values)));
        }
    }
    return text;
}

}  // namespace

void setup_completion(Verb app, Action& action) {
    const Verb verb = app.add_subcommand("completion", "print a shell completion script: bash, zsh or fish");
    const auto shell = std::make_shared<std::string>();
    verb.add_option("SHELL", *shell, "bash, zsh or fish").required().one_of({"bash", "zsh", "fish"});
    verb.callback([app, &action, shell] {
        action = [app, shell] {
            const std::vector<Command> commands = command_tree(app);
            write_standard_output(*shell == "bash"  ? bash_completion(commands)
                                  : *shell == "zsh" ? zsh_completion(commands)
                                                    : fish_completion(commands));
            return 0;
        };
    });
}

}  // namespace ftax::cli
