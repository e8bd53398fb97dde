#include "tests/recorded/transcripts.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "tests/recorded/reports/outcome.hpp"

// Whole commands with all that they print: tests/recorded/transcripts has one file for each. The first line of a file
// is the command; to add one, write this line and run `make golden`. The folder `made` has reports that tests made.

using namespace ftax::test;

TEST_CASE("numbers of transcripts are equal to a unit of their last digit, text to the letter") {
    CHECK(is_same("latency 1.23 ms (±4 %)", "latency 1.24 ms (±4 %)"));
    CHECK_FALSE(is_same("latency 1.23 ms", "latency 1.25 ms"));
    CHECK_FALSE(is_same("latency 1.23 ms", "latency 1.23 us"));
    CHECK_FALSE(is_same("batch 16", "batch 17"));
    CHECK_FALSE(is_same("1.5 ms", "1.5 ms and more"));
    CHECK(is_same("1.234567e-05", "1.234568e-05"));
    CHECK_FALSE(is_same("1.234567e-05", "1.234567e-06"));
    CHECK(differences("a\nb 1\n", "a\nb 2\n", Numbers::close) == "\n  2 - b 1\n  2 + b 2");
    CHECK(differences("a\n", "a\n", Numbers::exact).empty());
    CHECK_FALSE(differences("1.23\n", "1.24\n", Numbers::exact).empty());
}

TEST_CASE("commands print what their transcripts have") {
    const std::string folder = std::string(FTAX_SOURCE_DIR) + "/tests/recorded/transcripts";
    std::set<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (entry.is_regular_file()) files.insert(entry.path());
    CHECK(files.size() >= 50);
    for (const std::filesystem::path& path : files) {
        const std::string recorded = read(path);
        const std::string first = recorded.substr(0, recorded.find('\n'));
        REQUIRE(first.starts_with("$ ftax "));
        check_transcript(path, transcript(first.substr(7)), Numbers::close);
    }
}
