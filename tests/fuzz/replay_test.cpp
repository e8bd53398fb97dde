#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "tests/fuzz/targets.hpp"

namespace {

namespace fs = std::filesystem;

/// Runs every file of a folder through the target of that name; returns how many there were.
std::size_t replay(const ftax::fuzz::Target& target, const fs::path& folder) {
    std::size_t files = 0;
    if (!fs::is_directory(folder)) return files;
    for (const auto& entry : fs::directory_iterator(folder)) {
        CAPTURE(entry.path().string());
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(file), {}};
        CHECK_NOTHROW(static_cast<void>(target.run(bytes)));
        ++files;
    }
    return files;
}

}  // namespace

TEST_CASE("what fuzzing once found, and the seeds of fuzzing, harm no reader") {
    const fs::path folder = fs::path(FTAX_SOURCE_DIR) / "tests/fuzz";
    for (const ftax::fuzz::Target& target : ftax::fuzz::targets()) {
        CAPTURE(target.name);
        static_cast<void>(target.run(""));
        static_cast<void>(replay(target, folder / "crashes" / target.name));
        static_cast<void>(replay(target, folder / "seeds" / target.name));
    }
    for (const char* kind : {"crashes", "seeds"}) {
        if (!fs::is_directory(folder / kind)) continue;
        for (const auto& entry : fs::directory_iterator(folder / kind)) {
            bool known = false;
            for (const auto& target : ftax::fuzz::targets()) known = known || entry.path().filename() == target.name;
            CHECK_MESSAGE(known, entry.path().string(), " belongs to no target");
        }
    }
}

TEST_CASE("ONNX nodes of any operator with any inputs and attributes are read or refused") {
    const auto targets = ftax::fuzz::targets();
    const auto target =
        std::find_if(targets.begin(), targets.end(), [](const auto& t) { return t.name == "onnx_operator"; });
    REQUIRE(target != targets.end());
    std::mt19937 random(20261125);
    std::size_t read = 0;
    for (int i = 0; i < 4000; ++i) {
        std::string bytes(300, '\0');
        for (char& byte : bytes) byte = static_cast<char>(random());
        CAPTURE(i);
        std::string refusal;
        CHECK_NOTHROW(refusal = target->run(bytes));
        read += refusal.empty();
    }
    CHECK(read > 400);
}
