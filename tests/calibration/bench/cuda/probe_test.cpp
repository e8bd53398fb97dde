#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/cli/command.hpp"

TEST_CASE("BAD_INPUTS 46: the probe says that there is no GPU, or that its driver is too old") {
    const auto folder = std::filesystem::path(FTAX_PROGRAM).parent_path();
    const ftax::test::TemporaryFolder output;
    const std::string command =
        "CUDA_VISIBLE_DEVICES= '" + (folder / "ftax_cuda_probe").string() + "' 2>'" + output.file("errors") + "'";
    CHECK(WEXITSTATUS(std::system(command.c_str())) == 5);
    CHECK(ftax::test::read_text(output.file("errors")).starts_with("ftax_cuda_probe: no "));
}
