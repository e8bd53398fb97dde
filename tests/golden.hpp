#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "graphs/files/file.hpp"

namespace ftax::test {

/// Compares a whole report with tests/golden/NAME; FTAX_UPDATE_GOLDEN=1 (`make golden`) rewrites it instead.
inline void check_golden(const std::string& name, const std::string& actual) {
    const std::string path = std::string(FTAX_SOURCE_DIR) + "/tests/golden/" + name;
    if (std::getenv("FTAX_UPDATE_GOLDEN")) {
        write_file(path, actual);
        return;
    }
    std::ifstream file(path, std::ios::binary);
    REQUIRE_MESSAGE(file, path, " is missing; `make golden` writes it");
    CHECK(actual == std::string(std::istreambuf_iterator<char>(file), {}));
}

}  // namespace ftax::test
