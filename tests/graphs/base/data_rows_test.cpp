#include "graphs/base/data_rows.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "ftax/factors.hpp"
#include "ftax/graph.hpp"
#include "graphs/base/embedded.hpp"
#include "graphs/loading.hpp"

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
    CHECK(name_of(OpKind::conv) == "conv");
    CHECK(name_of(OpKind::softmax) == "softmax");
    CHECK(name_of(OpKind::concat) == "concat");
    CHECK(name_of(OpKind::to_host) == "to_host");
    CHECK(name_of(OpKind::custom) == "custom");
}

TEST_CASE("tables of names have a row for each enumerator, in their order") {
    CHECK(data_column("data/factors.tsv", 0).size() == factor_count);
    CHECK(name_of(Factor::card) == "card");
    CHECK(factor_from_name("conv_grouped") == Factor::conv_grouped);
    CHECK(description_of(Factor::elementwise) == "elementwise kernels");
    CHECK_FALSE(factor_from_name("description"));
    CHECK(data_column("data/file_formats.tsv", 0).size() == static_cast<std::size_t>(FileFormat::unknown) + 1);
    CHECK(description_of(FileFormat::gguf) == "GGUF");
}
