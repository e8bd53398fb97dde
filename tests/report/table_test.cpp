#include "src/report/table.hpp"

#include <doctest/doctest.h>

#include "src/report/columns.hpp"

using namespace ftax::report;

TEST_CASE("columns are as wide as their widest cell, also beyond ASCII") {
    Table table({{"name", Align::left}, {"µs"}});
    table.add({{"a"}, {"12"}});
    table.add({{"größer"}, {"3"}});
    CHECK(table.print({}) ==
          "name    µs\n"
          "a       12\n"
          "größer   3\n");
}

TEST_CASE("no line ends with spaces, that of the titles neither") {
    Table table({{"name", Align::left}, {"", Align::left}});
    table.add({{"a long name"}, {""}});
    CHECK(table.print({}) == "name\na long name\n");
}

TEST_CASE("colour surrounds the text and leaves the widths alone") {
    Table table({{"x", Align::left}, {"y"}});
    table.add({{"a", Tone::warning}, {"b"}});
    CHECK(table.print({.colour = true}) == "\x1b[2mx\x1b[0m  \x1b[2my\x1b[0m\n\x1b[33ma\x1b[0m  b\n");
}

TEST_CASE("bars of host above device stand last where a terminal has room, and leave without a note where not") {
    const Columns<double> columns{{"share", "share", Unit::share, [](double share) { return share; }},
                                  {"bars", "host above device", Unit::bars, [](double share) {
                                       return Json{{"host", share}, {"device", 0.5}};
                                   }}};
    const Grid grid = columns.select(std::vector{1.0, 0.25}, "share bars");
    CHECK(grid.print({.width = 80}) ==
          " share  host above device\n"
          " 100 %  ████████▀▀▀▀▀▀▀▀\n"
          "25.0 %  ████▄▄▄▄\n");
    for (const std::size_t width : {0, 20}) CHECK(grid.print({.width = width}) == " share\n 100 %\n25.0 %\n");
}

TEST_CASE("BAD_INPUTS 6: control characters of a cell do not reach the terminal") {
    Table table({{"x", Align::left}});
    table.add({{"\x1b[31mred\nnew line"}});
    const std::string text = table.print({});
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(text.find("red\nnew") == std::string::npos);
}

TEST_CASE("a narrow terminal gets shorter text, then fewer columns") {
    Table table({{"first", Align::left}, {"number"}, {"last", Align::left}});
    table.add({{"a text of fifty characters, which no name needs ..."}, {"1"}, {"größe"}});
    const std::string whole = table.print({.width = 66});
    CHECK(whole == table.print({}));
    CHECK(table.print({.width = 53}) ==
          "first                                   number  last\n"
          "a text of fifty characters, which no …       1  größe\n");
    CHECK(table.print({.width = 45}) ==
          "first                                 number\n"
          "a text of fifty characters, which n…       1\n"
          "(1 more column: widen the terminal, or --csv)\n");
    CHECK(table.print({.width = 5}).find("2 more columns") != std::string::npos);
}

TEST_CASE("few rows continue below, each part under their names") {
    using Row = std::pair<const char*, int>;
    const auto number = [](const Row& row) { return row.second; };
    const Columns<Row> columns{{"device", "device", Unit::text, [](const Row& row) { return row.first; }},
                               {"batch", "batch", Unit::plain, number},
                               {"a", "first number", Unit::plain, number},
                               {"b", "second number", Unit::plain, number},
                               {"c", "third number", Unit::plain, number}};
    std::vector<Row> rows{{"l4", 1}, {"t4", 16}};
    CHECK(columns.select(rows).print({.width = 42}) ==
          "device  batch  first number  second number\n"
          "l4          1             1              1\n"
          "t4         16            16             16\n"
          "\n"
          "device  batch  third number\n"
          "l4          1             1\n"
          "t4         16            16\n");
    CHECK(columns.select(rows).print({.width = 30}).find("more column") == std::string::npos);
    CHECK(columns.select(rows).print({.width = 16}).find("3 more columns") != std::string::npos);
    rows.resize(11, {"a10", 8});
    CHECK(columns.select(rows).print({.width = 42}).find("1 more column:") != std::string::npos);
}

TEST_CASE("names in the first column stay whole on a narrow terminal, so that they can be told apart and typed") {
    Table table({{"device", Align::left}, {"architecture", Align::left}, {"memory"}, {"note", Align::left}});
    table.add({{"rtx-pro-6000-blackwell-server"},
               {"rtx-blackwell"},
               {"96 GiB"},
               {"a long note about this card, of which some"}});
    table.add({{"rtx-pro-6000-blackwell-workstation"}, {"rtx-blackwell"}, {"96 GiB"}, {"short"}});
    for (const std::size_t width : {80, 60, 40}) {
        const std::string text = table.print({.width = width});
        for (const char* name : {"rtx-pro-6000-blackwell-server", "rtx-pro-6000-blackwell-workstation"})
            CHECK(text.find(name) != std::string::npos);
    }
}
