#include "tests/recorded/reports/outcome.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "ftax/error.hpp"
#include "src/cli/in_process.hpp"
#include "src/cli/verbs.hpp"
#include "src/scenario/scenario.hpp"
#include "tests/recorded/recorded.hpp"
#include "tests/temporary_folder.hpp"

using nlohmann::json;

namespace ftax::test {
namespace {

/// Sums of the numbers of a result: of those in seconds, and of all others.
struct Sums {
    double seconds = 0, others = 0;
    std::size_t count = 0;

    void add(const json& value, const std::string& key) {
        if (value.is_structured()) {
            for (const auto& item : value.items()) add(item.value(), value.is_array() ? key : item.key());
        } else if (value.is_number()) {
            (key.ends_with("_s") && !key.ends_with("per_s") ? seconds : others) += value.get<double>();
            ++count;
        }
    }
};

/// Without what the style of a page and its script are made of, and without paths of this run.
Digest& add_text(Digest& digest, std::string text, const std::string& folder) {
    for (const auto& [from, to] :
         {std::pair<std::string, std::string>{"<style", "</style>"}, {"<script>", "</script>"}}) {
        for (std::size_t at; (at = text.find(from)) != std::string::npos;) {
            const std::size_t end = text.find(to, at);
            text.erase(at, end == std::string::npos ? end : end + to.size() - at);
        }
    }
    for (std::size_t at; (at = text.find(folder)) != std::string::npos;) text.replace(at, folder.size(), "OUT");
    return digest.add_printed(text);
}

}  // namespace

std::string read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> words_of_line(const std::string& line, const std::string& folder) {
    std::vector<std::string> words;
    bool quoted = false, open = false;
    for (const char c : line) {
        if (c == '\'') {
            quoted = !quoted;
            if (!open) words.emplace_back();
            open = true;
        } else if (c == ' ' && !quoted) {
            open = false;
        } else {
            if (!open) words.emplace_back();
            open = true;
            words.back() += c;
        }
    }
    for (std::string& word : words) {
        if (const std::size_t at = word.find("OUT/"); at != std::string::npos) word.replace(at, 4, folder + "/");
        if (const std::size_t at = word.find("IGNORED/"); at != std::string::npos)
            word.replace(at, 8, folder + ".ignored/");
    }
    return words;
}

namespace {

/// Runs the words as main() does; what they print goes to the files SAID.out and SAID.err. With a result, the result
/// gets the forms of the report in place of standard output. Returns the exit code, and the message of an error.
std::pair<int, std::string> run(const std::vector<std::string>& words, const std::string& said, cli::Result* result) {
    std::pair<int, std::string> ended{-1, ""};
    const Redirected standard_output(stdout, said + ".out"), standard_error(stderr, said + ".err");
    try {
        CLI::App app("", "ftax");
        cli::Action action;
        action.result = result, action.with_page = true;
        cli::setup_verbs(app, action, words);
        scenario::forget_warnings();
        if (!cli::parse(app, words)) throw Error(ErrorCode::usage, "no command");
        if (action) ended.first = action();
    } catch (const Error& error) {
        ended = {static_cast<int>(error.code()), error.what()};
    }
    scenario::flush_warnings();  // as main() does
    return ended;
}

std::set<std::filesystem::path> files_below(const std::string& folder) {
    std::set<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
        if (entry.is_regular_file()) files.insert(entry.path());
    return files;
}

}  // namespace

std::vector<std::string> outcome(const std::string& line) {
    const TemporaryFolder folder;
    const std::string out = folder.file("out"), said = folder.file("said");
    std::filesystem::create_directory(out);
    std::filesystem::create_directory(out + ".ignored");
    cli::Result result;
    const auto [code, error] = run(words_of_line(line, out), said, &result);
    result.table += read(said + ".out");
    Digest files, messages;
    messages.add(static_cast<double>(code));
    if (!error.empty()) add_text(messages, error, out);
    add_text(messages, read(said + ".err"), out);
    std::set<std::filesystem::path> written = files_below(out);
    written.insert(said + ".out");
    for (const auto& path : written) add_text(files, read(path), out);
    Sums sums;
    if (!result.json.empty()) sums.add(json::parse(result.json), "");
    Digest data, table, page;
    add_text(data, result.json, out);
    add_text(table, result.table, out);
    add_text(page, result.page, out);
    return {figure(sums.seconds), figure(sums.others), fmt::format("n{}", sums.count),
            data.text(),          table.text(),        page.text(),
            files.text(),         messages.text()};
}

std::string transcript(const std::string& line) {
    const TemporaryFolder folder;
    const std::string out = folder.file("out"), said = folder.file("said");
    std::filesystem::create_directory(out);
    const auto [code, error] = run(words_of_line(line, out), said, nullptr);
    std::string text = fmt::format("$ ftax {}\n{}{}{}exit {}\n", line, read(said + ".out"), read(said + ".err"),
                                   error.empty() ? "" : "error: " + error + "\n", code);
    for (const auto& path : files_below(out))
        text += fmt::format("--- OUT/{}\n{}\n", path.filename().string(), read(path));
    for (std::size_t at; (at = text.find(out)) != std::string::npos;) text.replace(at, out.size(), "OUT");
    return text;
}

}  // namespace ftax::test
