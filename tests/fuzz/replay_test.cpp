#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
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
