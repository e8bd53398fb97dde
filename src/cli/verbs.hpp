#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "src/cli/options.hpp"
#include "src/report/table.hpp"

namespace ftax::cli {

/// What the program does once its arguments are parsed; returns the exit code.
using Action = std::function<int()>;

/// Exit code of --max-mape, 1 where the error exceeds it, and says so; nullopt: no row could be predicted. No gate at
/// 0.
[[nodiscard]] int gate(std::optional<double> mape_percent, double max_mape_percent);
inline constexpr int interrupted = 1;  ///< exit code

using Setup = void(Verb app, Action& action);

/// Each adds one verb to the program; parsing the verb sets `action`. One file per verb.
Setup setup_predict, setup_crossover, setup_compare, setup_explore, setup_headroom, setup_generate, setup_serve,
    setup_inspect, setup_convert, setup_validate, setup_models, setup_devices, setup_frameworks, setup_profiles,
    setup_doctor, setup_nas, setup_measure, setup_mcp, setup_schema, setup_completion, setup_manual;
#ifdef FTAX_WITH_FIT  // where it is not, two stand-ins in verbs.cpp say so
Setup setup_calibrate, setup_fit;
#endif

/// Returns what the verb's options fill; it lives as long as the verb, and `run` gets it.
template <class Arguments>
Arguments& run_with(Verb verb, Action& action, int (*run)(const Arguments&)) {
    const auto arguments = std::make_shared<Arguments>();
    verb.callback([arguments, run, &action] { action = [arguments, run] { return run(*arguments); }; });
    return *arguments;
}

/// True for a verb of this program that describes no others, as the manual does.
[[nodiscard]] bool stands_alone(std::string_view word);

/// Adds the verb that `first_word` of the command line names, so that a start does not pay for the options of the
/// others; all of them, in the order in which the help lists them, where it names none or one that describes all.
void setup_verbs(Verb app, Action& action, std::string_view first_word);

/// Where the forms of a result go besides the table: a path, "-" for standard output, or empty for nowhere.
struct OutputArguments {
    std::string json, csv, html, svg, trace, predictions;
};

void add_json_option(Verb verb, OutputArguments& arguments);
void add_data_options(Verb verb, OutputArguments& arguments);  ///< JSON and CSV
/// `what` the page holds, as the help says it.
Option add_html_option(Verb verb, OutputArguments& arguments, const std::string& what);

/// The forms one result can be written in; each is produced only when it is asked for, in this order, the table last.
struct Forms {
    std::function<std::string()> table, json, csv{}, trace{}, html{}, svg{}, predictions{};
};

/// Those that the report has functions for; they refer to the report.
template <class Report>
[[nodiscard]] Forms forms_of(const Report& report) {
    Forms forms{.table = [&] { return to_table(report, report::standard_output_style()); },
                .json = [&] { return to_json(report); }};
    if constexpr (requires { to_csv(report); }) forms.csv = [&] { return to_csv(report); };
    return forms;
}

/// Writes what was asked for; the table goes to standard output unless one of the others does.
/// Throws Error{usage} when a file cannot be written or two forms would go to the same place.
void write_result(const OutputArguments& arguments, const Forms& forms);

struct Result;  // src/cli/in_process.hpp
/// While it lives, write_result() of this thread fills in the forms of a result instead of writing them.
class Capture {
  public:
    Capture(Result& result, bool with_page);
    ~Capture();
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
};

/// Writes to a file, or to standard output when the path is "-".
void write_output(const std::string& path, std::string_view text);

void write_standard_output(std::string_view text);

/// One line on a terminal, rewritten in place: done, total, time left. Silent elsewhere, and until `patience` is over.
class Progress {
  public:
    explicit Progress(std::string what, std::chrono::milliseconds patience = std::chrono::seconds(1));
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
    std::size_t percent_ = 0;  ///< shown last
};

}  // namespace ftax::cli
