#include "graphs/files/csv.hpp"

#include <doctest/doctest.h>

#include "ftax/error.hpp"

using namespace ftax;

namespace {

std::vector<std::string> row_of(const CsvTable& table, std::size_t row) {
    const auto cells = table.row(row);
    return {cells.begin(), cells.end()};
}

std::string failure(std::string_view text) {
    try {
        CsvTable(text, "rows.csv");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::profile);
        return error.what();
    }
    return "accepted";
}

std::string written(const std::vector<std::string>& cells) {
    std::string text;
    append_csv_row(text, cells);
    return text;
}

}  // namespace

TEST_CASE("CSV is read as RFC 4180 says, and with the line ends and gaps that occur in practice") {
    const CsvTable table("\xef\xbb\xbfname,\"a \"\"b\"\"\",c\r\n\n1,\"x,y\nz\",\r\nlast,\"\",3", "rows.csv");
    CHECK(row_of(table, 0) == std::vector<std::string>{"1", "x,y\nz", ""});
    CHECK(row_of(table, 1) == std::vector<std::string>{"last", "", "3"});
    CHECK(table.rows() == 2);
    CHECK(table.column("a \"b\"") == 1);
    CHECK_FALSE(table.column("missing"));
    CHECK(table.line(0) == 3);
    CHECK(table.line(1) == 5);
    const CsvTable trailing("a,b\n1,", "rows.csv");
    CHECK(row_of(trailing, 0) == std::vector<std::string>{"1", ""});
    CsvTable first("a\nshort\n", "rows.csv");
    const CsvTable moved = std::move(first);
    CHECK(row_of(moved, 0) == std::vector<std::string>{"short"});
}

TEST_CASE("a malformed CSV names its line") {
    CHECK(failure("a,b\n1,2\n3\n") == "rows.csv:3: 1 cells where the header has 2");
    CHECK(failure("a,b\n1,2,3,4,") == "rows.csv:2: 5 cells where the header has 2");
    CHECK(failure("a,b\n1,\"2\n3,4\n") == "rows.csv:2: unclosed quote");
    CHECK(failure("a,b\n1,\"2\"3\n") == "rows.csv:2: text after a closing quote");
    CHECK(failure("a,b,a\n") == "rows.csv:1: the column a occurs twice");
    CHECK(failure("") == "rows.csv: no header line");
    CHECK(failure("\n\r\n") == "rows.csv: no header line");
    CHECK(failure("a,b\n") == "accepted");
    for (const char* other : {"gpu;batch;latency_ms\nT4;1;6,1\n", "gpu\tbatch\nT4\t1\n"})
        CHECK(failure(other) == "rows.csv:1: separate columns by commas, and write decimals with a point: 8,2.5");
}

TEST_CASE("a header has a limited number of columns") {
    std::string header = "c0";
    for (int i = 1; i < 100'000; ++i) header += ",c" + std::to_string(i);
    CHECK(CsvTable(header, "rows.csv").header().size() == 100'000);
    try {
        CsvTable(header + ",more", "rows.csv");
        FAIL("accepted");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::limit);
        CHECK(std::string(error.what()) == "rows.csv: more than 100000 columns");
    }
}

TEST_CASE("written files read back unchanged") {
    const std::vector<std::string> cells{"plain", "with,comma", "with \"quotes\"", "", "-1.5", "größer"};
    const std::string text = written(cells) + written(cells);
    CHECK(row_of(CsvTable(text, "rows.csv"), 0) == cells);
}

TEST_CASE("BAD_INPUTS 7: a cell that a spreadsheet would run is text") {
    CHECK(written({"=1+1", "+x", "-y", "@z", "\t=1"}) == "'=1+1,'+x,'-y,'@z,'\\t=1\n");
    CHECK(written({"-1.5", "-2e-3", "a=b"}) == "-1.5,-2e-3,a=b\n");
    CHECK(written({"=HYPERLINK(\"x\",\"y\")"}) == "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\"\n");
}

TEST_CASE("BAD_INPUTS 6: control characters and broken UTF-8 never reach a CSV file") {
    CHECK(written({"a\x1b[31mb", "c\nd", "e\xff", std::string("f\0g", 3)}) == "a\\x1b[31mb,c\\nd,e\\xff,f\\x00g\n");
}
