#include "src/io/number.hpp"

#include <doctest/doctest.h>

#include <clocale>
#include <cstdint>
#include <limits>
#include <string>

using namespace ftax;

TEST_CASE("numbers fill their text or are none") {
    CHECK(parse_number("1.5") == 1.5);
    CHECK(parse_number("-2e-3") == -2e-3);
    for (const char* text : {"", " 1", "1 ", "1,5", "nan", "inf", "-inf", "1e400", "0x10", "1.5ms", "+1"}) {
        CHECK_FALSE(parse_number(text));
    }
    CHECK(parse_integer("128") == 128);
    CHECK(parse_integer("8.0") == 8);
    CHECK(parse_integer("-9223372036854775808") == std::numeric_limits<std::int64_t>::min());
    for (const char* text : {"", "8.5", "9223372036854775808", "1e300", "eight"}) CHECK_FALSE(parse_integer(text));
}

TEST_CASE("written numbers read back exactly") {
    for (const double value : {0.1, 1.0 / 3.0, 1e-300, 12345678.9, 5e-324, 8.0}) {
        CHECK(parse_number(format_number(value)) == value);
    }
    CHECK(format_number(0.1) == "0.1");
}

TEST_CASE("BAD_INPUTS 48: a locale with a decimal comma changes nothing") {
    const std::string before = std::setlocale(LC_ALL, nullptr);
    const char* const comma_locales[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8"};
    bool set = false;
    for (const char* name : comma_locales) set = set || std::setlocale(LC_ALL, name);
    if (!set) MESSAGE("no locale with a decimal comma is installed; only the C locale was checked");
    CHECK(format_number(1234.5) == "1234.5");
    CHECK(parse_number("1234.5") == 1234.5);
    CHECK_FALSE(parse_number("1234,5"));
    std::setlocale(LC_ALL, before.c_str());
}
