#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "ftax/error.hpp"
#include "src/cli/in_process.hpp"
#include "src/cli/verbs.hpp"
#include "src/scenario/scenario.hpp"
#include "tests/recorded/recorded.hpp"
#include "tests/temporary_folder.hpp"

// Whole commands, run in this process: every form of their results, and what they print.

using namespace ftax;
using namespace ftax::test;
using nlohmann::json;

namespace {

std::string read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// What a stream of the process gets during the object's lifetime goes to a file.
class Redirected {
  public:
    Redirected(std::FILE* stream, const std::string& path)
        : stream_(stream), kept_(::dup(::fileno(stream))), path_(path) {
        std::fflush(stream_);
        const int file = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
        ::dup2(file, ::fileno(stream_));
        ::close(file);
    }
    ~Redirected() {
        std::fflush(stream_);
        ::dup2(kept_, ::fileno(stream_));
        ::close(kept_);
    }
    Redirected(const Redirected&) = delete;
    Redirected& operator=(const Redirected&) = delete;

  private:
    std::FILE* stream_;
    int kept_;
    std::string path_;
};

/// Words of a command line; quotes hold a word together, "OUT/" is the folder for files, "IGNORED/" for those whose
/// content does not count.
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

std::vector<std::string> outcome(const std::string& line) {
    const TemporaryFolder folder;
    const std::string out = folder.file("out"), said = folder.file("said");
    std::filesystem::create_directory(out);
    std::filesystem::create_directory(out + ".ignored");
    const std::vector<std::string> words = words_of_line(line, out);
    cli::Result result;
    Digest files, messages;
    {
        const Redirected standard_output(stdout, said + ".out"), standard_error(stderr, said + ".err");
        try {
            CLI::App app("", "ftax");
            cli::Action action;
            cli::setup_verbs(app, action, words.front());
            scenario::forget_warnings();
            if (!cli::parse(app, words)) throw Error(ErrorCode::usage, "no command");
            const cli::Capture capture(result, true);
            messages.add(action ? action() : -1);
        } catch (const Error& error) {
            add_text(messages.add(static_cast<double>(error.code())), error.what(), out);
        }
    }
    add_text(messages, read(said + ".err"), out);
    std::set<std::filesystem::path> written;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(out)) written.insert(entry.path());
    written.insert(said + ".out");
    for (const auto& path : written) {
        if (std::filesystem::is_regular_file(path)) add_text(files, read(path), out);
    }
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

/// The parameters of a profile that a fit has written, if any: how many, what they are called, and a weighted sum of
/// their values and of their uncertainties.
std::vector<std::string> parameters_of(const std::string& path) {
    Digest names;
    double values = 0, deviations = 0;
    std::size_t count = 0;
    const std::string text = read(path);
    const json document = text.empty() ? json::object() : json::parse(text);
    const std::function<void(const json&, const std::string&)> add = [&](const json& value, const std::string& key) {
        if (value.is_structured()) {
            for (const auto& item : value.items()) add(item.value(), value.is_array() ? key : item.key());
        } else if (value.is_number()) {
            const double weight = 1 + static_cast<double>(count++ % 7) / 10, number = value.get<double>();
            names.add(key);
            (key.find("stddev") == std::string::npos ? values : deviations) +=
                weight * std::copysign(std::log1p(std::abs(number) * 1e9), number);
        } else if (key != "source" && value.is_string()) {
            names.add(value.get<std::string>());
        }
    };
    add(document, "");
    return {fmt::format("n{}", count), figure(values), figure(deviations), names.text(6)};
}

}  // namespace

TEST_CASE("commands give the reports that are recorded") {
    check_recorded("reports.tsv", 1, [](std::span<const std::string> row) { return outcome(row[0]); });
}

TEST_CASE("every option of every verb, with values that hold and that do not, gives what is recorded") {
    check_recorded(
        "options.tsv", 1, [](std::span<const std::string> row) { return outcome(row[0]); }, 1e-6, 9);
}

TEST_CASE("random combinations of options give what is recorded") {
    check_recorded(
        "combined.tsv", 1, [](std::span<const std::string> row) { return outcome(row[0]); }, 1e-6, 9);
}

TEST_CASE("fits write the parameters that are recorded") {
    const auto fit = [](std::span<const std::string> row) {
        const TemporaryFolder folder;
        cli::Result result;
        const std::string line = "fit " + row[0] + " -o OUT/d.json -q";
        const Redirected standard_output(stdout, folder.file("out")), standard_error(stderr, folder.file("err"));
        CLI::App app("", "ftax");
        cli::Action action;
        cli::setup_verbs(app, action, "fit");
        scenario::forget_warnings();
        const std::vector<std::string> words = words_of_line(line, folder.file("."));
        if (!cli::parse(app, words)) throw Error(ErrorCode::usage, "no command");
        static_cast<void>(action());
        std::vector<std::string> cells = parameters_of(folder.file("d.json"));
        for (std::string& cell : parameters_of(folder.file("h.json"))) cells.push_back(std::move(cell));
        return cells;
    };
    check_recorded("fits.tsv", 1, fit, 1e-4);
}
