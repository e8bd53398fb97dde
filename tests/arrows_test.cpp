#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

// tests/arrows.txt lists the include dependencies between folders.

namespace {

namespace fs = std::filesystem;

const fs::path root = FTAX_SOURCE_DIR;

using Arrow = std::pair<std::string, std::string>;

struct ArrowList {
    std::vector<std::string> folders;  ///< as the lines follow one another
    std::set<Arrow> arrows;
};

ArrowList read_list() {
    ArrowList list;
    std::ifstream file(root / "tests/arrows.txt");
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line.substr(0, line.find('#')));
        std::string from, to;
        if (!(words >> from)) continue;
        list.folders.push_back(from);
        words >> to;
        CHECK_MESSAGE((words.eof() || to == "->"), line);
        while (words >> to)
            CHECK_MESSAGE(list.arrows.emplace(from, to).second, from << " -> " << to << " stands twice");
    }
    return list;
}

/// The folder of a file, the public headers' being "include" however they are named.
std::string folder_of(const fs::path& path) {
    const std::string folder = path.parent_path().generic_string();
    return folder == "ftax" || folder == "include/ftax" ? "include" : folder;
}

/// The file that a line `#include "…"` names; empty for other lines.
std::string included(std::string_view line) {
    const std::size_t hash = line.find_first_not_of(" \t");
    if (hash == std::string_view::npos || line[hash] != '#' || line.find("include", hash) == std::string_view::npos) {
        return "";
    }
    const std::size_t quote = line.find('"');
    if (quote == std::string_view::npos) return "";
    return std::string(line.substr(quote + 1, line.find('"', quote + 1) - quote - 1));
}

/// The arrows of the sources, each with the first include that makes it.
std::map<Arrow, std::string> read_sources() {
    std::map<Arrow, std::string> arrows;
    const std::set<std::string> extensions{".hpp", ".cpp", ".cu", ".h"};
    for (const char* top : {"src", "graphs", "predictors", "calibration", "include"}) {
        for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
            if (!extensions.contains(entry.path().extension().string())) continue;
            const fs::path path = fs::relative(entry.path(), root);
            std::ifstream file(entry.path());
            for (std::string line; std::getline(file, line);) {
                const std::string header = included(line);
                if (header.empty() || folder_of(header) == folder_of(path)) continue;
                arrows.try_emplace({folder_of(path), folder_of(header)}, path.generic_string() + " includes " + header);
            }
        }
    }
    return arrows;
}

}  // namespace

TEST_CASE("folders include what tests/arrows.txt lists and nothing else") {
    const ArrowList list = read_list();
    const std::map<Arrow, std::string> used = read_sources();
    CHECK(used.size() > 50);
    for (const auto& found : used) {
        CHECK_MESSAGE(list.arrows.contains(found.first),
                      found.first.first << " -> " << found.first.second << " is not listed: " << found.second);
    }
    for (const Arrow& arrow : list.arrows) {
        CHECK_MESSAGE(used.contains(arrow), arrow.first << " -> " << arrow.second << " is listed, but nothing uses it");
    }
}

TEST_CASE("every arrow of tests/arrows.txt points down") {
    const ArrowList list = read_list();
    const auto line_of = [&](const std::string& folder) {
        return std::find(list.folders.begin(), list.folders.end(), folder) - list.folders.begin();
    };
    for (const Arrow& arrow : list.arrows) {
        CHECK_MESSAGE(line_of(arrow.second) < std::ssize(list.folders), arrow.second << " has no line");
        CHECK_MESSAGE(line_of(arrow.first) < line_of(arrow.second),
                      arrow.first << " -> " << arrow.second << " points up");
    }
}

TEST_CASE("the five parts of the product depend on one another in one direction") {
    constexpr std::string_view parts[] = {"src", "calibration", "predictors", "graphs", "include"};
    const auto part_of = [&](const std::string& folder) {
        return std::find(std::begin(parts), std::end(parts), folder.substr(0, folder.find('/'))) - std::begin(parts);
    };
    for (const Arrow& arrow : read_list().arrows) {
        if (arrow.first == "calibration/crossvalidation")
            continue;  // a program, which predicts as the command line does
        CHECK_MESSAGE(part_of(arrow.first) <= part_of(arrow.second),
                      arrow.first << " -> " << arrow.second << " points up");
    }
}
