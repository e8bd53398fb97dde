#include <doctest/doctest.h>

#include "src/report/table.hpp"

using namespace ftax::report;

TEST_CASE("quantities print with three digits and a fitting unit") {
    CHECK(duration(0.01423) == "14.2 ms");
    CHECK(duration(2.5e-6) == "2.50 µs");
    CHECK(duration(0.0009996) == "1.00 ms");
    CHECK(duration(123) == "123 s");
    CHECK(duration(0) == "0 s");
    CHECK(milliseconds(0.01423) == "14.2");
    CHECK(milliseconds(1.2345) == "1234");
    CHECK(byte_size(1.25e6) == "1.25 MB");
    CHECK(byte_size(12) == "12 B");
    CHECK(count(4.089e9) == "4.09 G");
    CHECK(count(999) == "999");
    CHECK(count(1000) == "1.00 k");
    CHECK(count(9.9e20) == "990 E");
}

TEST_CASE("a share short of all never prints as all") {
    CHECK(percent(1) == "100 %");
    CHECK(percent(0.9999) == "99.9 %");
    CHECK(percent(0) == "0.0 %");
}
