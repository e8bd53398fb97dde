#include "graphs/base/data_rows.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "ftax/graph.hpp"
#include "graphs/base/embedded.hpp"

using namespace ftax;

TEST_CASE("a cell of a table is a text, a number or one of several names") {
    std::string read;
    for_each_data_row("name\tsize\tcolour\na\t3\tred\nb\t\tblue\n", [&](DataRow row) {
        read += row.text();
        read += " " + std::to_string(static_cast<int>(row.number(7)));
        read += " " + std::to_string(row.choice<int>("red green blue")) + ";";
    });
    CHECK(read == "a 3 0;b 7 2;");
    CHECK_THROWS_AS(static_cast<void>(DataRow("yellow").choice<int>("red green blue")), std::logic_error);
}

TEST_CASE("each kind of operator has one row of its work and launch") {
    std::vector<std::string_view> kinds;
    for_each_data_row(embedded_text("data/operator_kinds.tsv"), [&](DataRow row) {
        kinds.push_back(row.text());
        for (int column = 0; column < 5; ++column) CHECK_MESSAGE(!row.text().empty(), kinds.back());
        CHECK(row.ends());
    });
    REQUIRE(kinds.size() == static_cast<std::size_t>(op_kind_count));
    for (int i = 0; i < op_kind_count; ++i)
        CHECK(kinds[static_cast<std::size_t>(i)] == name_of(static_cast<OpKind>(i)));
}
