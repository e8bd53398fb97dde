#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>

namespace ftax::cli {

/// Where the forms of a result go besides the table: a path, "-" for standard output, or empty for nowhere.
struct OutputArguments {
    std::string json, csv, html, svg, trace, predictions;
};

void add_json_option(CLI::App& verb, OutputArguments& arguments);
void add_csv_option(CLI::App& verb, OutputArguments& arguments);
/// `what` the page holds, as the help says it.
CLI::Option* add_html_option(CLI::App& verb, OutputArguments& arguments, const std::string& what);

/// The forms one result can be written in; each is produced only when it is asked for, in this order, the table last.
struct Forms {
    std::function<std::string()> table, json, csv;
    std::function<std::string()> trace{}, html{}, svg{}, predictions{};
};

/// Writes what was asked for; the table goes to standard output unless one of the others does.
/// Throws Error{usage} when a file cannot be written or two forms would go to the same place.
void write_result(const OutputArguments& arguments, const Forms& forms);

/// Writes to a file, or to standard output when the path is "-".
void write_output(const std::string& path, std::string_view text);

void write_standard_output(std::string_view text);

}  // namespace ftax::cli
