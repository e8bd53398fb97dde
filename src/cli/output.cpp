#include "src/cli/output.hpp"

#include <cstdio>

#include "ftax/error.hpp"
#include "src/io/file.hpp"

namespace ftax::cli {
namespace {

constexpr std::string_view standard_output = "-";

std::FILE*& notice_stream() {
    static std::FILE* stream = stderr;
    return stream;
}

void write_form(const std::string& path, const std::function<std::string()>& form) {
    if (path.empty()) return;
    if (path == standard_output) {
        write_standard_output(form());
    } else {
        write_file(path, form());
    }
}

}  // namespace

void add_json_option(CLI::App& verb, OutputArguments& arguments) {
    verb.add_option("--json", arguments.json, "write JSON to a file, or to standard output (-)")
        ->type_name("FILE")
        ->expected(0, 1)
        ->default_str(std::string(standard_output));
}

void add_csv_option(CLI::App& verb, OutputArguments& arguments) {
    verb.add_option("--csv", arguments.csv, "write CSV to a file, or to standard output (-)")
        ->type_name("FILE")
        ->expected(0, 1)
        ->default_str(std::string(standard_output));
}

void write_result(const OutputArguments& arguments, const Forms& forms) {
    if (arguments.json == standard_output && arguments.csv == standard_output) {
        throw Error(ErrorCode::usage, "--json and --csv cannot both go to standard output");
    }
    write_form(arguments.json, forms.json);
    write_form(arguments.csv, forms.csv);
    if (arguments.json != standard_output && arguments.csv != standard_output) write_standard_output(forms.table());
}

std::FILE* notices() {
    return notice_stream();
}

void silence_notices() {
    std::FILE* const nowhere = std::fopen("/dev/null", "w");
    if (nowhere != nullptr) notice_stream() = nowhere;
}

void write_standard_output(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace ftax::cli
