// What happens to a TorchScript file before LibTorch sees it, the same in builds with and without.
#include <doctest/doctest.h>

#include "ftax/import.hpp"
#include "tests/failure.hpp"
#include "tests/graphs/pt2/archives.hpp"

using namespace ftax;
using namespace ftax::test;

namespace {

Failure failure_of_file(const std::string& bytes, const ImportOptions& options = {}) {
    const TemporaryFile file("script.pt", bytes);
    return failure_of([&] { return load_graph(file.path(), options); });
}

std::string script(const std::string& weights = "....") {
    return zip_bytes(
        {{"m/code/__torch__.py", "class M(Module):\n"}, {"m/data.pkl", "\x80\x02N."}, {"m/data/0", weights}});
}

}  // namespace

TEST_CASE("BAD_INPUTS 35: a TorchScript archive whose code is damaged is an invalid model") {
    std::string bytes = script();
    const std::size_t code = bytes.find("class M");
    REQUIRE(code != std::string::npos);
    bytes[code] = 'k';
    CHECK(failure_of_file(bytes).code == ErrorCode::model);
}

TEST_CASE("BAD_INPUTS 36: TorchScript code that unpacks beyond the limit is refused, and so are packed tensors") {
    ImportOptions small;
    small.max_bytes = 100'000;
    const std::string bomb = zip_bytes({{"m/code/__torch__.py", std::string(10'000'000, ' ')}, {"m/data.pkl", "N."}});
    REQUIRE(bomb.size() < small.max_bytes);
    CHECK(failure_of_file(bomb, small).code == ErrorCode::limit);
    const Failure packed = failure_of_file(script(std::string(1'000'000, '\0')));
    CHECK(packed.code == ErrorCode::model);
    CHECK(packed.message.find("compressed") != std::string::npos);
}

#ifndef FTAX_WITH_TORCH
TEST_CASE("a build without LibTorch names the option that reads TorchScript") {
    const Failure failure =
        failure_of_file(zip_bytes({{"m/code/__torch__.py", "class M(Module):\n"}, {"m/data.pkl", "N."}}));
    CHECK(failure.code == ErrorCode::model);
    CHECK(failure.message.find("FTAX_BUILD_TORCH") != std::string::npos);
    CHECK(failure.message.find("torch.export") != std::string::npos);
}
#endif
