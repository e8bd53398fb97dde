#include <doctest/doctest.h>

#include <filesystem>

#include "calibration/bench/bench_device.hpp"
#include "tests/failure.hpp"
#include "tests/temporary_folder.hpp"

using namespace ftax::bench;
using ftax::ErrorCode;

namespace {

std::string program(const ftax::test::TemporaryFolder& folder, const std::string& body) {
    const std::string path = folder.write("pro'be", "#!/bin/sh\n" + body);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
}

}  // namespace

TEST_CASE("the probe's output is its CSV, for any path") {
    const ftax::test::TemporaryFolder folder;
    const std::string csv = "quantity,value,unit,samples,source\nlaunch_host,2.1e-06,s,21,host clock\n";
    CHECK(run_cuda_probe(program(folder, "printf '" + csv + "'\n")) == csv);
}

TEST_CASE("BAD_INPUTS 46: a probe that finds no GPU or dies is refused") {
    const ftax::test::TemporaryFolder folder;
    for (const char* end : {"exit 5\n", "kill -9 $$\n"}) {
        const auto probe = [&] { return run_cuda_probe(program(folder, std::string("echo quantity\n") + end)); };
        CHECK(ftax::test::failure_of(probe).code == ErrorCode::refused);
    }
}
