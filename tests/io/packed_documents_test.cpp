#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "src/core/embedded.hpp"
#include "src/io/file.hpp"
#include "src/io/json_document.hpp"

using namespace ftax;

TEST_CASE("the built-in documents are the files of data/, and no others") {
    namespace fs = std::filesystem;
    const fs::path root = FTAX_SOURCE_DIR;
    std::size_t files = 0;
    for (const char* folder : {"devices", "profiles", "stacks"}) {
        for (const auto& entry : fs::recursive_directory_iterator(root / "data" / folder)) {
            if (entry.path().extension() != ".json") continue;
            ++files;
            const std::string path = entry.path().lexically_relative(root).generic_string();
            CAPTURE(path);
            CHECK(packed_document(path) == pack(parse_json(read_file(entry.path().string()), path)));
        }
    }
    std::size_t architectures = 0;
    for (const EmbeddedFile& file : packed_files()) architectures += file.path.starts_with("data/architectures/");
    CHECK(files + architectures == packed_files().size());
    CHECK(packed_document("data/devices/none.json").empty());
}

TEST_CASE("a packed document is read as the JSON that it was") {
    const auto json = nlohmann::json::parse(
        R"({"a": [1, 2.5, -3e-3, true, false, null, "", "x", {}, []], "b": {"c": {"d": "deep"}}, "e": 7})");
    const JsonField root(json, "origin");
    CHECK(root["b"]["c"]["d"].text() == "deep");
    CHECK(root["e"].positive_count() == 7);
    CHECK_FALSE(root.find("f"));
    const auto elements = root["a"].elements();
    REQUIRE(elements.size() == 10);
    CHECK(elements[1].positive() == 2.5);
    CHECK(elements[3].flag());
    CHECK_FALSE(elements[4].flag());
    CHECK(elements[7].text() == "x");
    CHECK(elements[8].elements().empty());
    CHECK_THROWS_WITH(static_cast<void>(elements[2].not_negative()),
                      "origin: a[2]: must be a number that is not negative");
    CHECK_THROWS_WITH(static_cast<void>(elements[5].positive()), "origin: a[5]: must be a positive number");
    CHECK_THROWS_WITH(static_cast<void>(elements[6].text()), "origin: a[6]: must be a text that is not empty");
    CHECK_THROWS_WITH(static_cast<void>(root["b"]["c"]["x"]), "origin: b.c.x: is missing");
    CHECK_THROWS_WITH(static_cast<void>(root["e"].elements()), "origin: e: must be an array or an object");
}
