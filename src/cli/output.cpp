#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <span>

#include "graphs/base/throw_error.hpp"
#include "graphs/files/escape.hpp"
#include "graphs/files/file.hpp"
#include "src/cli/in_process.hpp"
#include "src/cli/verbs.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::cli {
namespace {

constexpr std::string_view standard_output = "-";

struct Form {
    std::string_view option;
    const std::string& path;
    const std::function<std::string()>& text;
};

void refuse_one_place_for_two(std::span<const Form> forms) {
    for (const Form& form : forms) {
        const auto other = std::ranges::find_if(forms, [&](const Form& f) { return f.path == form.path; });
        if (form.path.empty() || other->option == form.option) continue;
        throw_error(ErrorCode::usage, "only one of {} and {} can be written to {}", other->option, form.option,
                    form.path == standard_output ? "standard output" : escape_terminal(form.path));
    }
}

}  // namespace

void add_json_option(CLI::App& verb, OutputArguments& arguments) {
    add_option(verb, "--json", "FILE", arguments.json, "write JSON to a file, or to standard output (-)")
        ->expected(0, 1)
        ->default_str(std::string(standard_output));
}

void add_data_options(CLI::App& verb, OutputArguments& arguments) {
    add_json_option(verb, arguments);
    add_option(verb, "--csv", "FILE", arguments.csv, "write CSV to a file, or to standard output (-)")
        ->expected(0, 1)
        ->default_str(std::string(standard_output));
}

CLI::Option* add_html_option(CLI::App& verb, OutputArguments& arguments, const std::string& what) {
    return add_option(verb, "--html", "FILE", arguments.html, "write a page " + what);
}

int write_result(const OutputArguments& arguments, const Forms& forms) {
    const std::array all{
        Form{"--json", arguments.json, forms.json},    Form{"--csv", arguments.csv, forms.csv},
        Form{"--trace", arguments.trace, forms.trace}, Form{"--html", arguments.html, forms.html},
        Form{"--svg", arguments.svg, forms.svg},       Form{"--predictions", arguments.predictions, forms.predictions}};
    refuse_one_place_for_two(all);
    const report::Style style = report::standard_output_style();
    Result* const result = arguments.caller ? arguments.caller->result : nullptr;
    bool table = result == nullptr;
    if (result)
        *result = {forms.table(style), forms.json(), arguments.caller->with_page && forms.html ? forms.html() : ""};
    for (const Form& form : all) {
        if (form.path.empty()) continue;
        if (result && form.path == standard_output) {
            result->table += form.text();
        } else {
            write_output(form.path, form.text());
        }
        table = table && form.path != standard_output;
    }
    if (table) write_standard_output(forms.table(style));
    return 0;
}

Forms forms_of(const report::Grid& list, const char* name, const std::string& below) {
    return {.table = [&](report::Style style) { return list.print(style) + below; },
            .json =
                [&, name] {
                    return report::document({{name, list.json()}});
                },
            .csv = [&] { return list.csv(); }};
}

void write_output(const std::string& path, std::string_view text) {
    scenario::flush_warnings();
    path == standard_output ? write_standard_output(text) : write_file(path, text);
}

void write_standard_output(std::string_view text) {
    scenario::flush_warnings();
    std::fwrite(text.data(), 1, text.size(), stdout);
}

Progress::Progress(const std::string& what, std::chrono::milliseconds patience)
    : what_(escape_terminal(what)), terminal_(::isatty(STDERR_FILENO) == 1), patience_(patience) {}

Progress::~Progress() {
    if (percent_ > 0) fmt::print(scenario::notices(), "\r\033[K");
}

void Progress::show(std::size_t done, std::size_t total) {
    const Clock::time_point now = Clock::now();
    const std::size_t percent = 100 * done / total;
    if (!terminal_ || now - start_ < patience_ || percent == percent_) return;
    percent_ = percent;
    const std::chrono::duration<double> elapsed = now - start_;
    const double left_s = elapsed.count() / static_cast<double>(done) * static_cast<double>(total - done);
    fmt::print(scenario::notices(), "\r\033[K{} {}/{}, {:.0f} min {:02.0f} s left", what_, done, total,
               std::floor(left_s / 60), std::fmod(left_s, 60));
    std::fflush(scenario::notices());
}

}  // namespace ftax::cli
