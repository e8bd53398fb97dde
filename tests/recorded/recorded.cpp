#include "tests/recorded/recorded.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <optional>

#include "ftax/error.hpp"
#include "graphs/files/file.hpp"

namespace ftax::test {
namespace {

constexpr std::size_t shown_rows = 12;
constexpr std::size_t digest_digits = 10;
constexpr std::string_view refused = "-";
#if defined __SANITIZE_ADDRESS__
constexpr bool sanitized = true;
#elif defined __has_feature
constexpr bool sanitized = __has_feature(address_sanitizer);
#else
constexpr bool sanitized = false;
#endif

std::vector<std::string> cells_of(std::string_view line) {
    std::vector<std::string> cells{""};
    for (const char c : line) {
        if (c == '\t') {
            cells.emplace_back();
        } else {
            cells.back() += c;
        }
    }
    return cells;
}

struct Change {
    double relative = 0;
    std::string text;
};

/// The figure of a cell, and what follows it.
std::pair<std::optional<double>, std::string> parts_of(const std::string& cell) {
    const std::size_t at = std::min(cell.find('/'), cell.size());
    char* end = nullptr;
    const double value = std::strtod(cell.c_str(), &end);
    if (at == 0 || end != cell.c_str() + at) return {std::nullopt, cell};
    return {value, cell.substr(at)};
}

/// The cell that changed most; the last one is a digest.
std::optional<Change> change_of(std::span<const std::string> old, std::span<const std::string> now,
                                std::span<const std::string> names, double tolerance) {
    std::optional<Change> result;
    for (std::size_t i = 0; i < now.size(); ++i) {
        const std::string before = i < old.size() ? old[i] : "nothing";
        if (before == now[i]) continue;
        const auto [a, a_rest] = parts_of(before);
        const auto [b, b_rest] = parts_of(now[i]);
        const bool numbers = a && b && now[i].size() != digest_digits;
        const double relative = numbers && *a != *b ? std::abs(*b - *a) / std::max(std::abs(*a), std::abs(*b)) : 0;
        if (numbers && a_rest == b_rest && relative <= tolerance) continue;
        if (result && relative <= result->relative) continue;
        result = {relative, fmt::format("{} {} -> {}", i < names.size() ? names[i] : "?", before, now[i])};
    }
    return result;
}

}  // namespace

std::string read_source_file(const std::string& path) {
    std::ifstream file(std::string(FTAX_SOURCE_DIR) + "/" + path, std::ios::binary);
    REQUIRE_MESSAGE(file, path, " is missing");
    return {std::istreambuf_iterator<char>(file), {}};
}

Digest& Digest::add_printed(std::string_view text) {
    while (!text.empty()) {
        const auto begins = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
        const auto at = static_cast<std::size_t>(std::ranges::find_if(text, begins) - text.begin());
        add(text.substr(0, at));
        text.remove_prefix(at);
        if (text.empty()) break;
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const auto length = error == std::errc{} ? static_cast<std::size_t>(end - text.data()) : 1;
        add(value);
        text.remove_prefix(length);
    }
    return *this;
}

std::string Digest::text(int digits) const {
    return fmt::format("{:016x}", state_).substr(0, static_cast<std::size_t>(digits));
}

std::string figure(double value) {
    return fmt::format("{:.7g}", value);
}

void check_recorded(const std::string& file, std::size_t inputs,
                    const std::function<std::vector<std::string>(std::span<const std::string>)>& compute,
                    double tolerance, std::size_t sanitized_step) {
    const std::string path = std::string(FTAX_SOURCE_DIR) + "/tests/recorded/" + file;
    std::ifstream input(path, std::ios::binary);
    REQUIRE_MESSAGE(input, path, " is missing");
    std::string line, text;
    std::getline(input, line);
    const std::vector<std::string> names = cells_of(line);
    text = line + "\n";
    std::vector<std::pair<Change, std::string>> changed;
    std::size_t rows = 0;
    while (std::getline(input, line)) {
        if (rows++ % sanitized_step != 0 && sanitized && !std::getenv("FTAX_UPDATE_GOLDEN")) continue;
        std::vector<std::string> cells = cells_of(line);
        cells.resize(std::max(cells.size(), inputs));
        const std::span<const std::string> row = std::span(cells).first(inputs);
        std::vector<std::string> now;
        try {
            now = compute(row);
        } catch (const Error& error) {
            now.assign(names.size() - inputs, std::string(refused));
            now.back() = Digest().add(error.what()).text();
        }
        text += fmt::format("{}\t{}\n", fmt::join(row, "\t"), fmt::join(now, "\t"));
        const std::span<const std::string> old = std::span(cells).subspan(inputs);
        if (const auto change = change_of(old, now, std::span(names).subspan(inputs), tolerance)) {
            changed.emplace_back(*change, fmt::format("{}", fmt::join(row, " ")));
            if (std::getenv("FTAX_MUTANT")) break;  // one row is enough to notice a planted fault
        }
    }
    CHECK(rows > 0);
    if (std::getenv("FTAX_UPDATE_GOLDEN")) write_file(path, text);
    std::ranges::stable_sort(changed, std::greater{}, [](const auto& change) { return change.first.relative; });
    std::string report;
    for (const auto& [change, row] : std::span(changed).first(std::min(changed.size(), shown_rows))) {
        report += fmt::format("\n  {:+.3g} % {}: {}", 100 * change.relative, row, change.text);
    }
    if (std::getenv("FTAX_UPDATE_GOLDEN")) {
        if (!changed.empty()) MESSAGE(fmt::format("{}: {} of {} rows changed{}", file, changed.size(), rows, report));
        return;
    }
    CHECK_MESSAGE(changed.empty(), fmt::format("{}: {} of {} rows changed; `make golden` records them{}", file,
                                               changed.size(), rows, report));
}

}  // namespace ftax::test
