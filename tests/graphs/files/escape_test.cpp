#include "graphs/files/escape.hpp"

#include <doctest/doctest.h>

#include "graphs/files/json_document.hpp"

using namespace ftax;

TEST_CASE("ordinary text is printed as it is") {
    for (const char* text : {"", "resnet50/conv1", "größer → 日本語 🙂", "<script>", "a\\n"}) {
        CHECK(escape_terminal(text) == text);
    }
}

TEST_CASE("BAD_INPUTS 6: names cannot steer the terminal") {
    CHECK(escape_terminal("a\x1b]0;title\x07") == "a\\x1b]0;title\\x07");
    CHECK(escape_terminal("line\r\nnext\t.") == "line\\r\\nnext\\t.");
    CHECK(escape_terminal(std::string_view("nul\0.", 5)) == "nul\\x00.");
    CHECK(escape_terminal("csi\xc2\x9b"
                          "31m") == "csi\\x9b31m");
    CHECK(escape_terminal("\xe2\x80\xae"
                          "drowssap") == "\\u{202e}drowssap");
    CHECK(escape_terminal("\x7f") == "\\x7f");
}

TEST_CASE("BAD_INPUTS 6: bytes that are not UTF-8 are shown one by one") {
    CHECK(escape_terminal("\xff") == "\\xff");
    CHECK(escape_terminal("\xc3") == "\\xc3");
    CHECK(escape_terminal("\xc0\xaf") == "\\xc0\\xaf");                    // overlong
    CHECK(escape_terminal("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // surrogate
    CHECK(escape_terminal("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
    CHECK(escape_terminal("\xe2\x28\xa1") == "\\xe2(\\xa1");
}

TEST_CASE("BAD_INPUTS 6: JSON holds control characters and bidirectional marks as escapes") {
    const std::string text = to_text(nlohmann::ordered_json("a\x1b\x7f\xc2\x9b\xe2\x80\xae\xff"));
    CHECK(text == "\"a\\u001b\\u007f\\u009b\\u202e\\ufffd\"\n");
}
