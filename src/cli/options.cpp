#include "src/cli/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <optional>

#include "ftax/error.hpp"
#include "src/cli/command_tree.hpp"
#include "src/core/near_names.hpp"

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
std::string describe_misuse(CLI::App& app, const CLI::ParseError& error) {
    const CLI::App& parsed = innermost(app);
    const std::string words = words_of(parsed);
    const std::vector<Command> commands = command_tree(Verb(&app));
    const Command& command = *std::ranges::find(commands, words, &Command::words);
    const std::string where = words.empty() ? "" : words + ": ";
    const std::string all = fmt::format(" (`ftax{} --help` lists all)", words.empty() ? "" : " " + words);

    std::vector<std::string> unknown = parsed.remaining();
    std::erase(unknown, "--");
    const auto option = std::ranges::find_if(unknown, [](const std::string& word) { return word.starts_with('-'); });
    if (!command.subcommands.empty() && option != unknown.begin()) {
        return fmt::format("{}unknown command '{}'{}{}", where, unknown.front(),
                           did_you_mean(unknown.front(), command.subcommands), all);
    }
    if (option != unknown.end()) {
        std::vector<std::string> names;
        for (const OptionOfCommand& known : command.options) {
            names.insert(names.end(), known.names.begin(), known.names.end());
        }
        return fmt::format("{}unknown option {}{}{}", where, *option, did_you_mean(*option, names), all);
    }
    if (!unknown.empty()) {
        const auto is_value = [&](const auto& known) { return std::ranges::count(known.values, unknown.front()) > 0; };
        return fmt::format("{}unexpected argument '{}'{}", where, unknown.front(),
                           std::ranges::any_of(command.options, is_value) ? "; lists have commas: A,B" : "");
    }
    if (!command.subcommands.empty() && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
        return fmt::format("{}missing command: {}", where, fmt::join(command.subcommands, ", "));
    }
    const std::string text = error.what();  // CLI11: "Could not convert: --rate = 1,2"
    return text.starts_with("Could not convert: ") ? text.substr(19) + " is not a number" : text;
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

}  // namespace

Option Option::type_name(const std::string& name) const {
    return Option(option_->type_name(name));
}
Option Option::required(bool value) const {
    return Option(option_->required(value));
}
Option Option::expected(int count) const {
    return Option(option_->expected(count));
}
Option Option::expected(int fewest, int most) const {
    return Option(option_->expected(fewest, most));
}
Option Option::default_str(const std::string& text) const {
    return Option(option_->default_str(text));
}
Option Option::capture_default_str() const {
    return Option(option_->capture_default_str());
}
Option Option::allow_extra_args(bool value) const {
    return Option(option_->allow_extra_args(value));
}
Option Option::needs(Option other) const {
    return Option(option_->needs(other.option_));
}
Option Option::excludes(Option other) const {
    return Option(option_->excludes(other.option_));
}
Option Option::each(const std::function<void(const std::string&)>& visit) const {
    return Option(option_->each(visit));
}
Option Option::one_of(const std::vector<std::string>& values, bool ignores_case) const {
    return Option(option_->check(ignores_case ? CLI::IsMember(values, CLI::ignore_case) : CLI::IsMember(values)));
}
Option Option::positive() const {
    return Option(option_->check(CLI::PositiveNumber));
}
Option Option::range(int low, int high) const {
    return Option(option_->check(CLI::Range(low, high)));
}
Option Option::range(double low, double high) const {
    return Option(option_->check(CLI::Range(low, high)));
}
Option Option::with_unit(const std::map<std::string, double>& units) const {
    return Option(option_->transform(CLI::AsNumberWithUnit(units)));
}

Verb Verb::add_subcommand(const std::string& name, const std::string& description) const {
    return Verb(app_->add_subcommand(name, description));
}
Verb Verb::add_option_group(const std::string& name) const {
    return Verb(app_->add_option_group(name));
}
template <class T>
Option Verb::add_option(const std::string& name, T& value, const std::string& description,
                        const std::string& type_name) const {
    const Option option(app_->add_option(name, value, description));
    return type_name.empty() ? option : option.type_name(type_name);
}
#define FTAX_OPTION(T) \
    template Option Verb::add_option(const std::string&, T&, const std::string&, const std::string&) const
FTAX_OPTION(std::string);
FTAX_OPTION(std::vector<std::string>);
FTAX_OPTION(int);
FTAX_OPTION(unsigned);
FTAX_OPTION(std::int64_t);
FTAX_OPTION(std::uint64_t);
FTAX_OPTION(double);
FTAX_OPTION(std::optional<int>);
#undef FTAX_OPTION

Option Verb::add_flag(const std::string& name, bool& value, const std::string& description) const {
    return Option(app_->add_flag(name, value, description));
}
Option Verb::add_flag_callback(const std::string& name, const std::function<void()>& set,
                               const std::string& description) const {
    return Option(app_->add_flag_callback(name, set, description));
}
Option Verb::get_option(const std::string& name) const {
    return Option(app_->get_option(name));
}
std::vector<Option> Verb::get_options() const {
    std::vector<Option> options;
    for (CLI::Option* option : app_->get_options()) options.emplace_back(option);
    return options;
}
void Verb::remove_option(Option option) const {
    app_->remove_option(option.get());
}
void Verb::require_subcommand(int count) const {
    app_->require_subcommand(count);
}
void Verb::set_version_flag(const std::string& name, const std::string& version) const {
    app_->set_version_flag(name, version);
}
std::size_t Verb::count(const std::string& name) const {
    return app_->count(name);
}
std::vector<Verb> Verb::subcommands() const {
    std::vector<Verb> verbs;
    for (CLI::App* verb : app_->get_subcommands([](const CLI::App* sub) { return !sub->get_name().empty(); }))
        verbs.emplace_back(verb);
    return verbs;
}
std::string Verb::description() const {
    return app_->get_description();
}
void Verb::description(const std::string& text) const {
    app_->description(text);
}
std::string Verb::footer() const {
    return app_->get_footer();
}
void Verb::footer(const std::string& text) const {
    app_->footer(text);
}
void Verb::callback(const std::function<void()>& run) const {
    app_->callback(run);
}
void Verb::take_all(const std::function<void()>& run) const {
    app_->prefix_command();
    app_->parse_complete_callback(run);
}

CommandLine::CommandLine(const std::string& program) : app_(std::make_unique<CLI::App>("", program)) {}
CommandLine::~CommandLine() = default;

bool CommandLine::parse(std::vector<std::string> words) const {
    if (!words.empty() && words.front() == "help") {
        words.erase(words.begin());
        words.emplace_back("--help");
    }
    try {
        parse_words(*app_, std::move(words));
        return true;
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() != 0) throw Error(ErrorCode::usage, describe_misuse(*app_, error));
        app_->exit(error);  // --help, --version
        return false;
    }
}

}  // namespace ftax::cli
