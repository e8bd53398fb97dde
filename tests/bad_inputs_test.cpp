#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

constexpr int bad_inputs = 50;

std::string read_text(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Everything that defines tests: sources, scripts and build files below tests/.
std::string test_sources() {
    std::string text;
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(FTAX_SOURCE_DIR) / "tests")) {
        const std::string extension = entry.path().extension();
        if (extension == ".cpp" || extension == ".py" || entry.path().filename() == "CMakeLists.txt") {
            text += read_text(entry.path());
        }
    }
    return text;
}

std::vector<std::string> quoted(const std::string& line) {
    std::vector<std::string> names;
    for (std::size_t begin = line.find('`'); begin != std::string::npos;) {
        const std::size_t end = line.find('`', begin + 1);
        names.push_back(line.substr(begin + 1, end - begin - 1));
        begin = end == std::string::npos ? end : line.find('`', end + 1);
    }
    return names;
}

}  // namespace

TEST_CASE("tests/BAD_INPUTS.md maps every bad input to tests that exist") {
    const std::string sources = test_sources();
    std::array<bool, bad_inputs> seen{};
    std::ifstream table(fs::path(FTAX_SOURCE_DIR) / "tests/BAD_INPUTS.md");
    for (std::string line; std::getline(table, line);) {
        if (!line.starts_with("| ") || line.starts_with("| #")) continue;
        const int number = std::stoi(line.substr(2));
        REQUIRE(number >= 1);
        REQUIRE(number <= bad_inputs);
        CHECK_FALSE(seen[static_cast<std::size_t>(number - 1)]);
        seen[static_cast<std::size_t>(number - 1)] = true;
        const std::string tests = line.substr(line.rfind(" | ") + 3);
        CHECK_MESSAGE(!quoted(tests).empty(), line);
        for (const std::string& name : quoted(tests)) {
            CHECK_MESSAGE((sources.find("\"" + name + "\"") != std::string::npos ||
                           sources.find("def " + name + "(") != std::string::npos),
                          name);
        }
    }
    for (int i = 0; i < bad_inputs; ++i) CHECK_MESSAGE(seen[static_cast<std::size_t>(i)], "row ", i + 1, " is missing");
}
