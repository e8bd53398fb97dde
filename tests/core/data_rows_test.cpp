#include "src/core/data_rows.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace ftax;

TEST_CASE("a cell of a table is a text, a number or one of several names") {
    std::string read;
    for_each_data_row("name\tsize\tcolour\na\t3\tred\nb\t\tblue\n", [&](DataRow row) {
        read += std::string(row.text()) + " " + std::to_string(static_cast<int>(row.number(7))) + " ";
        read += std::to_string(row.choice<int>("red green blue")) + ";";
    });
    CHECK(read == "a 3 0;b 7 2;");
    CHECK_THROWS_AS(static_cast<void>(DataRow("yellow").choice<int>("red green blue")), std::logic_error);
}
