#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "src/cli/options.hpp"
#include "src/report/table.hpp"

namespace ftax::cli {

/// Where the forms of a result go besides the table: a path, "-" for standard output, or empty for nowhere.
struct OutputArguments {
    std::string json, csv, html, svg, trace, predictions;
};

void add_json_option(Verb verb, OutputArguments& arguments);
void add_csv_option(Verb verb, OutputArguments& arguments);
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

/// Writes to a file, or to standard output when the path is "-".
void write_output(const std::string& path, std::string_view text);

void write_standard_output(std::string_view text);

}  // namespace ftax::cli
