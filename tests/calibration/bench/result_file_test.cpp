#include "calibration/bench/result_file.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/command.hpp"
#include "tests/failure.hpp"

using namespace ftax::bench;
using ftax::ErrorCode;
using ftax::test::failure_of;
using ftax::test::read_text;
using ftax::test::TemporaryFolder;

namespace {

std::vector<std::string> columns() {
    std::vector<std::string> all{"op"};
    for (std::string& column : result_columns()) all.push_back(std::move(column));
    return all;
}

std::vector<std::string> row(const std::string& id, const CaseResult& result) {
    std::vector<std::string> cells{"relu"};
    for (std::string& cell : result_cells(BenchCase{.id = id}, result)) cells.push_back(std::move(cell));
    return cells;
}

CaseResult timed(double seconds) {
    return {.samples_s = {seconds, seconds}, .clock_ratio = {}, .stopped = "converged", .problem = {}};
}

}  // namespace

TEST_CASE("a result file is continued where it ended: header once, rows appended, done rows known") {
    const TemporaryFolder folder;
    const std::string path = folder.file("rows.csv");
    {
        ResultFile file(path, columns(), false);
        file.append(row("x", timed(2e-3)));
    }
    const std::string first = read_text(path);
    CHECK(failure_of([&] { ResultFile(path, columns(), false); }).code == ErrorCode::usage);
    CHECK(read_text(path) == first);
    ResultFile file(path, columns(), true);
    CHECK(file.has("x", 0));
    CHECK_FALSE(file.has("x", 1));
    file.append(row("y", timed(3e-3)));
    CHECK(read_text(path) == first + "relu,3,device_hot,y,0,2,0,0,,,,converged,,3 3\n");
}

TEST_CASE("BAD_INPUTS 46: a row with a problem has no latency and is measured again") {
    const TemporaryFolder folder;
    const std::string path = folder.file("rows.csv");
    CaseResult failed;
    failed.problem = "out of memory: 20 GiB";
    {
        ResultFile file(path, columns(), false);
        file.append(row("x", failed));
    }
    CHECK(read_text(path).find("relu,,device_hot,x,0,0,,0,,,,,out of memory: 20 GiB,\n") != std::string::npos);
    CHECK_FALSE(ResultFile(path, columns(), true).has("x", 0));
}

TEST_CASE("BAD_INPUTS 46: a program killed half-way leaves complete rows, and the torn one is cut off") {
    const TemporaryFolder folder;
    const std::string path = folder.file("rows.csv");
    {
        ResultFile file(path, columns(), false);
        file.append(row("x", timed(2e-3)));
    }
    const std::string complete = read_text(path);
    std::ofstream(path, std::ios::app) << "relu,3,end_to_e";
    ResultFile file(path, columns(), true);
    CHECK(read_text(path) == complete);
    CHECK(file.has("x", 0));
}

TEST_CASE("BAD_INPUTS 47: a full disk is an error with its reason, and the file keeps whole rows") {
    const TemporaryFolder folder;
    const std::string path = folder.file("rows.csv");
    ResultFile file(path, columns(), false);
    file.append(row("x", timed(2e-3)));
    const std::string before = read_text(path);
    // The same as a full disk for write(): it takes part of the row, then fails.
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    rlimit full = limit;
    full.rlim_cur = before.size() + 10;
    ::setrlimit(RLIMIT_FSIZE, &full);
    const ErrorCode code = failure_of([&] { file.append(row("y", timed(3e-3))); }).code;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, handler);
    CHECK(code == ErrorCode::usage);
    CHECK(read_text(path) == before);
    file.append(row("y", timed(3e-3)));
    CHECK(read_text(path).size() > before.size());
}

TEST_CASE("BAD_INPUTS 47: two writers of one file, and a folder that cannot be written") {
    const TemporaryFolder folder;
    const std::string path = folder.file("rows.csv");
    const ResultFile first(path, columns(), false);
    CHECK(failure_of([&] { ResultFile(path, columns(), true); }).code == ErrorCode::refused);
    CHECK(failure_of([&] { ResultFile(folder.file("absent/rows.csv"), columns(), false); }).code == ErrorCode::usage);
}

TEST_CASE("BAD_INPUTS 46: a file with other columns is not continued") {
    const TemporaryFolder folder;
    const std::string path = folder.write("rows.csv", "gpu,latency_ms\nx,1\n");
    CHECK(failure_of([&] { ResultFile(path, columns(), true); }).code == ErrorCode::profile);
    CHECK(read_text(path) == "gpu,latency_ms\nx,1\n");
}

TEST_CASE("a row records the GPU's state: clock, limiting factor, origin of the network") {
    CaseResult result = timed(5e-3);
    result.clock_ratio = 0.95;
    result.slowdown = "power cap";
    result.source = std::string(graph_source);
    const std::vector<std::string> names = columns(), cells = row("x", result);
    const auto cell = [&](const char* name) {
        return cells[static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin())];
    };
    REQUIRE(cells.size() == names.size());
    CHECK(cell("clock_ratio") == "0.950");
    CHECK(cell("slowdown") == "power cap");
    CHECK(cell("source") == "ftax graph");
}

TEST_CASE("the environment is written with a schema version") {
    const TemporaryFolder folder;
    write_environment(folder.file("environment.json"), {{"cpu", "a \"CPU\""}, {"threads", "2"}});
    const auto json = nlohmann::json::parse(read_text(folder.file("environment.json")));
    CHECK(json["schema_version"] == 1);
    CHECK(json["environment"]["cpu"] == "a \"CPU\"");
    CHECK(json["environment"]["threads"] == "2");
}
