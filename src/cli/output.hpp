#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

namespace ftax::cli {

/// Where machine-readable results go: a path, "-" for standard output, or empty for nowhere.
struct OutputArguments {
    std::string json;
    std::string csv;
};

void add_json_option(CLI::App& verb, OutputArguments& arguments);
void add_csv_option(CLI::App& verb, OutputArguments& arguments);

/// The forms one result can be written in; each is produced only when it is asked for.
struct Forms {
    std::function<std::string()> table, json, csv;
};

/// Writes what was asked for; the table goes to standard output unless one of the others does.
/// Throws Error{usage} when a file cannot be written or both would go to standard output.
void write_result(const OutputArguments& arguments, const Forms& forms);

void write_standard_output(std::string_view text);

/// Where warnings and progress go: standard error, or nowhere after silence_notices() (--quiet).
[[nodiscard]] std::FILE* notices();
void silence_notices();

}  // namespace ftax::cli
