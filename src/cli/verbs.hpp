#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/graph.hpp"
#include "graphs/files/number.hpp"
#include "src/report/columns.hpp"

namespace ftax::cli {

struct Result;  // src/cli/in_process.hpp
/// Action of the program after parsing its arguments; returns the exit code. A caller in the same process (Python, MCP)
/// may give the graph, and take the result.
struct Action : std::function<int()> {
    using function::operator=;
    const Graph* graph = nullptr;  ///< replaces the model that the words name
    Result* result = nullptr;      ///< takes what standard output would get
    bool with_page = false;        ///< and the page
};

/// Returns the exit code of --max-mape: 1, with a message, if the error exceeds it; 0 disables the gate. Without an
/// error (no row could be predicted): that of unusable rows.
[[nodiscard]] int gate(std::optional<double> mape_percent, double max_mape_percent);
inline constexpr int interrupted = 1;  ///< exit code

using Setup = void(CLI::App& verb, Action& action);

/// Each function sets up one verb of the program; parsing the verb sets `action`. One file per verb.
Setup setup_predict, setup_crossover, setup_compare, setup_explore, setup_headroom, setup_generate, setup_serve,
    setup_inspect, setup_convert, setup_validate, setup_models, setup_devices, setup_frameworks, setup_profiles,
    setup_doctor, setup_nas, setup_measure, setup_mcp, setup_schema, setup_completion, setup_manual;
#ifdef FTAX_WITH_FIT  // otherwise verbs.cpp defines two stand-ins
Setup setup_calibrate, setup_fit;
#endif

/// Makes an action of a verb's arguments, which get the caller's graph and place for the result.
template <class Arguments>
void set_action(Action& action, const std::shared_ptr<Arguments>& arguments, int (*run)(const Arguments&)) {
    if constexpr (requires { arguments->model.graph; }) arguments->model.graph = action.graph;
    if constexpr (requires { arguments->output.caller; }) arguments->output.caller = &action;
    if constexpr (requires { arguments->caller; }) arguments->caller = &action;
    action = [arguments, run] { return run(*arguments); };
}

/// Returns the arguments that the verb's options fill; they live as long as the verb and are passed to `run`.
template <class Arguments>
Arguments& run_with(CLI::App& verb, Action& action, int (*run)(const Arguments&)) {
    const auto arguments = std::make_shared<Arguments>();
    verb.callback([arguments, run, &action] { set_action(action, arguments, run); });
    return *arguments;
}

/// Adds a part of a verb whose parts share their arguments; the part without a name is what the verb does alone.
template <class Arguments>
CLI::App& add_part(CLI::App& verb, Action& action, const std::shared_ptr<Arguments>& arguments, const std::string& name,
                   const std::string& description, int (*run)(const Arguments&)) {
    CLI::App& part = name.empty() ? verb : *verb.add_subcommand(name, description);
    part.callback([arguments, run, &action] {
        if (!action) set_action(action, arguments, run);
    });
    return part;
}

/// Adds an option whose value has a name in the help.
template <class T>
CLI::Option* add_option(CLI::App& verb, const char* name, const char* value_name, T& value, const std::string& text) {
    return verb.add_option(name, value, text)->type_name(value_name);
}
/// Returns a check of an option, or with transform() what turns its value into the plain number.
[[nodiscard]] CLI::Validator is_quantity(Quantity quantity);
/// Returns a check of an option: "X is not WHAT" unless it is a number of the range.
[[nodiscard]] CLI::Validator within(double least, double most, const std::string& what);
[[nodiscard]] CLI::Validator is_share(double least = 0);

/// Returns true for a command line that needs no other verb than its first word: not for verbs that describe others (as
/// `manual` does). A single word that is no verb (--help, --version, one misspelled) needs the verbs' names alone.
[[nodiscard]] bool stands_alone(std::span<const std::string> words);

void add_verb(CLI::App& app, Action& action, const std::string& name);

/// Adds the verb that the words name, to avoid the startup cost of the other verbs' options. Adds all verbs, in help
/// order, if they name none or one that describes all; without options if stands_alone(words).
void setup_verbs(CLI::App& app, Action& action, std::span<const std::string> words);

/// Parses the words after the program's name and runs the callbacks of the verb; returns false if help or version were
/// printed. Throws Error{usage} naming an unknown command or option, with similar names.
[[nodiscard]] bool parse(CLI::App& app, std::vector<std::string> words);

/// Destinations of a result's forms other than the table: a path, "-" for standard output, or empty for none.
struct OutputArguments {
    std::string json, csv, html, svg, trace, predictions;
    const Action* caller = nullptr;
};

void add_json_option(CLI::App& verb, OutputArguments& arguments);
void add_data_options(CLI::App& verb, OutputArguments& arguments);  ///< JSON and CSV
/// `what`: contents of the page, for the help text.
CLI::Option* add_html_option(CLI::App& verb, OutputArguments& arguments, const std::string& what);

/// Output forms of a result, produced on demand in this order, the table last.
struct Forms {
    std::function<std::string(report::Style)> table;
    std::function<std::string()> json, csv{}, trace{}, html{}, svg{}, predictions{};
};

/// Returns the forms that the report supports and its page; they keep a reference to it.
template <class Report>
[[nodiscard]] Forms forms_of(const Report& report, std::function<std::string()> page = nullptr) {
    Forms forms{.table = [&](report::Style style) { return to_table(report, style); },
                .json = [&] { return to_json(report); },
                .html = std::move(page)};
    if constexpr (requires { to_csv(report); }) forms.csv = [&] { return to_csv(report); };
    return forms;
}

/// Returns the forms of a list, called `name` in JSON; `below` follows the table. They keep references to both.
[[nodiscard]] Forms forms_of(const report::Grid& list, const char* name, const std::string& below);

/// Writes the requested forms; the table goes to standard output unless another form does. Returns the exit code 0.
/// Throws Error{usage} if a file cannot be written or two forms have the same destination.
int write_result(const OutputArguments& arguments, const Forms& forms);

/// Writes to a file, or to standard output if the path is "-".
void write_output(const std::string& path, std::string_view text);

void write_standard_output(std::string_view text);

/// Progress line on a terminal, rewritten in place: done, total, time left. Silent elsewhere, and during `patience`.
class Progress {
  public:
    explicit Progress(const std::string& what, std::chrono::milliseconds patience = std::chrono::seconds(1));
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void show(std::size_t done, std::size_t total);

  private:
    using Clock = std::chrono::steady_clock;

    std::string what_;
    bool terminal_;
    std::chrono::milliseconds patience_;
    Clock::time_point start_ = Clock::now();
    std::size_t percent_ = 0;  ///< last value shown
};

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
