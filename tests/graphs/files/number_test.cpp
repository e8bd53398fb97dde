#include "graphs/files/number.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <clocale>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>

#include "graphs/files/json_document.hpp"

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

namespace {

/// Switches to a German locale, made on the spot where the system has its sources; back again when destroyed.
class GermanLocale {
  public:
    GermanLocale() : before_(std::setlocale(LC_ALL, nullptr)) {
        const auto folder = std::filesystem::temp_directory_path() / ("ftax-locale-" + std::to_string(::getpid()));
        std::filesystem::create_directory(folder);
        const std::string make = "localedef -i de_DE -f UTF-8 " + (folder / "de_DE.UTF-8").string() + " 2>/dev/null";
        if (std::system(make.c_str()) == 0) ::setenv("LOCPATH", folder.c_str(), 1);
        active_ = std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
        ::unsetenv("LOCPATH");
        std::filesystem::remove_all(folder);
    }
    ~GermanLocale() { std::setlocale(LC_ALL, before_.c_str()); }
    [[nodiscard]] bool active() const { return active_; }

  private:
    std::string before_;
    bool active_ = false;
};

}  // namespace

TEST_CASE("BAD_INPUTS 48: a locale with a decimal comma changes nothing") {
    const GermanLocale german;
    if (german.active()) {
        CHECK(std::string(std::localeconv()->decimal_point) == ",");
    } else {
        MESSAGE("this system cannot make a German locale; only the C locale was checked");
    }
    CHECK(format_number(1234.5) == "1234.5");
    CHECK(parse_number("1234.5") == 1234.5);
    CHECK_FALSE(parse_number("1234,5"));
    CHECK(parse_json("[1234.5]", "numbers.json")[0] == 1234.5);
    CHECK(to_text(nlohmann::ordered_json(1234.5)) == "1234.5\n");
}
