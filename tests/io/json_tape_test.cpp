#include "src/io/json_tape.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace ftax;

namespace {

/// Reads the text in parts of `step` characters.
JsonTape read(std::string_view text, std::size_t step, const JsonRules& rules = {}) {
    return {[text, step]() mutable {
                const std::string_view part = text.substr(0, step);
                text.remove_prefix(part.size());
                return part;
            },
            "a.json", rules};
}

std::string failure(std::string_view text, const JsonRules& rules = {}) {
    try {
        static_cast<void>(read(text, 3, rules));
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

}  // namespace

TEST_CASE("a document reads the same however its text is cut") {
    const std::string text =
        "\xef\xbb\xbf {\"a\": [1, -2, 0, 3000000000, -9223372036854775808, 2.5e-1, true, null],\n"
        " \"t\\u00e9\\ud83d\\ude00\\n\": \"x\\\"y\", \"empty\": {}, \"none\": []}";
    for (const std::size_t step : {1, 2, 3, 7, 1000}) {
        const JsonTape tape = read(text, step);
        const JsonValue root = tape.root();
        REQUIRE(root.size() == 4);
        JsonValue item = root.at("a").begin();
        CHECK(root.at("a").size() == 8);
        for (const std::int64_t number : {1l, -2l, 0l, 3000000000l, -9223372036854775807l - 1}) {
            CHECK((*item).integer() == number);
            CHECK((*item).is_integer());
            ++item;
        }
        CHECK((*item).real() == 0.25);
        CHECK((*++item).integer() == 1);
        CHECK_FALSE(*++item);
        CHECK(root.at("t\u00e9\U0001F600\n").text() == "x\"y");
        CHECK(root.at("empty").size() == 0);
        CHECK_FALSE(root.find("missing"));
    }
}

TEST_CASE("large objects are searched in any order, and refuse a key that occurs twice") {
    std::string text = "{";
    for (int i = 0; i < 1000; ++i) text += (i ? ", \"k" : "\"k") + std::to_string(i) + "\": " + std::to_string(7 * i);
    const JsonTape tape = read(text + "}", 64);
    for (int i = 0; i < 1000; ++i) {
        CHECK(tape.root().at("k" + std::to_string(i)).integer() == 7 * i);
        CHECK(tape.root().at("k" + std::to_string(i * 37 % 1000)).integer() == 7 * (i * 37 % 1000));
    }
    CHECK(failure(text + ", \"k7\": 1}") == "a.json: k7: occurs twice");
}

TEST_CASE("what is not JSON is refused where it stands") {
    CHECK(failure("[1, 02]") == "a.json:1:5: [1]: not valid JSON");
    CHECK(failure("{\"a\": [1,\n 2 3]}") == "a.json:2:4: a[2]: not valid JSON");
    for (const char* text : {"", "{", "[1,]", "{\"a\"}", "{\"a\": 1,}", "\"a", "\"\\x\"", "\"\\ud800\"", "nul", "1.",
                             "[1] 2", "NaN", "\"a\nb\"", "+1", "--1", "\xef\xbb 1"})
        CHECK_MESSAGE(failure(text).find("not valid JSON") != std::string::npos, text);
    CHECK(failure("[NaN, -Infinity, 1]", {.non_finite = true}).empty());
    CHECK(failure("[[[1]]]", {.deepest_level = 2}).find("nested deeper than 2 levels") != std::string::npos);
}

TEST_CASE("members that the rules do not name are read and dropped") {
    std::uint64_t nodes = 0;
    const JsonRules rules{.known_keys = "nodes name",
                          .open_objects = "values",
                          .keeps_node = [&](const JsonValue& node) { return ++nodes, !node.find("other"); },
                          .most_values = 16};
    const JsonTape tape =
        read(R"({"nodes": [{"name": "a", "x": [1, 2, {}]}, {"y": 1}], "values": {"q": {"x": 1, "name": 2}}, "x": {}})",
             5, rules);
    CHECK(nodes == 2);
    CHECK(tape.root().size() == 2);
    CHECK(tape.root().at("nodes").size() == 2);
    CHECK((*tape.root().at("nodes").begin()).size() == 1);
    CHECK(tape.root().at("values").at("q").size() == 1);
    std::string many = "{\"x\": [1";
    for (int i = 0; i < 100; ++i) many += ", {}";
    CHECK(failure(many + "]}", rules).empty());
    CHECK(failure("{\"nodes\"" + many.substr(4) + "]}", rules) ==
          "a.json: nodes[14]: more than 16 values (--max-nodes)");
}
