#include "calibration/bench/python_device.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>

#include "calibration/bench/operator_cases.hpp"
#include "ftax/error.hpp"
#include "tests/temporary_folder.hpp"

using namespace ftax::bench;
using ftax::Error;
using ftax::ErrorCode;
using ftax::test::TemporaryFolder;

namespace {

/// A shell script in place of Python: answers each request by the word after "do".
struct FakePython {
    TemporaryFolder folder;

    PythonOptions options(const std::string& answers) const {
        const std::string path =
            folder.write("python", "#!/bin/sh\nwhile read -r line; do\n  case $line in\n" + answers + "  esac\ndone\n");
        std::filesystem::permissions(path, std::filesystem::perms::owner_all);
        PythonOptions result;
        result.python = path;
        result.answer_limit_s = 5;
        return result;
    }
};

const std::string starts =
    "    *'\"do\":\"start\"'*) echo '{\"environment\": {\"framework_version\": \"1\", \"threads\": 2}}' ;;\n";

BenchCase bench_case() {
    return {.id = "relu",
            .model = {},
            .graph = std::make_shared<const ftax::Graph>(operator_graph({"relu", {{"b", 1}, {"h", 8}}})),
            .bindings = {}};
}

ErrorCode code_of(const PythonOptions& options) {
    try {
        static_cast<void>(open_python(options));
    } catch (const Error& error) {
        return error.code();
    }
    FAIL("no error");
    return {};
}

}  // namespace

TEST_CASE("a worker's answers become environment, samples and failures") {
    const FakePython python;
    const auto device =
        open_python(python.options(
            starts + "    *prepare*) echo '{\"note\": \"\"}' ;;\n"
                     "    *sample*) echo '{\"seconds\": 0.25, \"clock_ratio\": 0.9, \"disturbed\": true}' ;;\n"));
    CHECK(device->environment() == Environment{{"framework_version", "1"}, {"threads", "2"}});
    CHECK_FALSE(device->prepare(bench_case()));
    const auto sample = std::get<Sample>(device->sample());
    CHECK(sample.seconds == 0.25);
    CHECK(sample.clock_ratio == 0.9);
    CHECK(sample.disturbed);
}

TEST_CASE("BAD_INPUTS 46: out of memory in the framework is a failure of the case") {
    const FakePython python;
    const auto device = open_python(
        python.options(starts + "    *prepare*) echo '{\"error\": \"out_of_memory\", \"message\": \"20 GiB\"}' ;;\n"));
    const auto failure = device->prepare(bench_case());
    REQUIRE(failure);
    CHECK(failure->kind == FailureKind::out_of_memory);
    CHECK(failure->message == "20 GiB");
}

TEST_CASE("BAD_INPUTS 46: a worker that is killed half-way is lost, and another one can be started") {
    const FakePython python;
    const auto device = open_python(python.options(starts + "    *prepare*) kill -9 $$ ;;\n"));
    const auto failure = device->prepare(bench_case());
    REQUIRE(failure);
    CHECK(failure->kind == FailureKind::device_lost);
    CHECK(device->restart());
    CHECK(device->environment().size() == 2);
}

TEST_CASE("BAD_INPUTS 46: a worker that stalls is lost after its limit, and another one can be started") {
    const FakePython python;
    PythonOptions options = python.options(starts + "    *prepare*) exec sleep 60 ;;\n");
    options.answer_limit_s = 0.5;
    const auto device = open_python(options);
    const auto begin = std::chrono::steady_clock::now();
    const auto failure = device->prepare(bench_case());
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
    REQUIRE(failure);
    CHECK(failure->kind == FailureKind::device_lost);
    CHECK(device->restart());
}

TEST_CASE("BAD_INPUTS 46: an answer that is not JSON is a lost device, not a crash") {
    const FakePython python;
    const auto device = open_python(python.options(starts + "    *prepare*) echo 'Segmentation fault' ;;\n"));
    const auto failure = device->prepare(bench_case());
    REQUIRE(failure);
    CHECK(failure->kind == FailureKind::device_lost);
}

TEST_CASE("BAD_INPUTS 46: no GPU or a driver too old is refused with the framework's words") {
    const FakePython python;
    CHECK(code_of(
              python.options("    *start*) echo '{\"error\": \"failed\", \"message\": \"torch sees no GPU\"}' ;;\n")) ==
          ErrorCode::refused);
    CHECK(code_of(python.options(
              "    *start*) echo '{\"error\": \"unsupported\", \"message\": \"No module named torch\"}' ;;\n")) ==
          ErrorCode::usage);
    PythonOptions absent;
    absent.python = "/nowhere/python";
    CHECK(code_of(absent) == ErrorCode::usage);
}
