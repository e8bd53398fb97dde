#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command.hpp"

using namespace ftax;
using namespace ftax::test;

TEST_CASE("predict --html holds the numbers of --json and reads nothing from elsewhere") {
    const TemporaryFolder folder;
    const std::string page_path = folder.file("page.html");
    const ProgramRun run = run_ftax({"predict", "resnet18", "--device", "t4", "--batch", "1,8", "--json", "--html", page_path});
    REQUIRE(run.exit_code == 0);
    const std::string page = read_text(page_path);
    const auto json = nlohmann::json::parse(run.output);
    for (const auto& row : json["predictions"]) {
        for (const char* quantity : {"latency_s", "low_s", "high_s", "host_s", "device_s"}) {
            CHECK(page.find(fmt::format("data-v=\"{}\"", row[quantity].get<double>())) != std::string::npos);
        }
    }
    for (const char* outside : {"src=", "href=", "@import", "url("}) CHECK(page.find(outside) == std::string::npos);
    CHECK(page.find("Launches at batch 8") != std::string::npos);
}

TEST_CASE("BAD_INPUTS 6: names are text in a page, never markup") {
    const TemporaryFolder folder;
    const std::string copy = folder.write("<script>alert(1)<.txt", run_ftax({"inspect", "resnet18", "--text"}).output);
    const std::string page_path = folder.file("page.html");
    REQUIRE(run_ftax({"predict", copy, "--device", "t4", "--batch", "1", "--html", page_path}).exit_code == 0);
    const std::string page = read_text(page_path);
    CHECK(page.find("<script>alert") == std::string::npos);
    CHECK(page.find("&lt;script&gt;alert") != std::string::npos);
}

TEST_CASE("predict: a page that cannot be written is a usage error") {
    CHECK(run_ftax({"predict", "resnet18", "--device", "t4", "--batch", "1", "--html", "/nowhere/page.html"}).exit_code == 2);
}
