#include "graphs/files/child_process.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "ftax/error.hpp"
#include "graphs/files/file.hpp"
#include "graphs/files/machine.hpp"
#include "tests/temporary_folder.hpp"

using namespace ftax;

namespace {

constexpr ChildLimits roomy{std::uint64_t{1} << 30, 20};

}  // namespace

TEST_CASE("what a child returns arrives whole, however long") {
    const std::string text(3'000'000, 'x');
    const ChildResult result = run_in_child(roomy, [&] { return text + "end"; });
    CHECK_FALSE(result.died());
    CHECK(result.output == text + "end");
}

TEST_CASE("a child that crashes, throws, or takes more than its memory or time dies alone") {
    const ChildResult crashed = run_in_child(roomy, []() -> std::string {
        std::signal(SIGSEGV, SIG_DFL);
        ::raise(SIGSEGV);
        return {};
    });
    CHECK(crashed.died());
    CHECK(crashed.signal == "Segmentation fault");
    const ChildResult threw = run_in_child(roomy, []() -> std::string { throw Error(ErrorCode::model, "no"); });
    CHECK(threw.beyond);
    CHECK(threw.signal.empty());
    const ChildResult large = run_in_child({std::uint64_t{64} << 20, 20}, [] {
        return std::to_string(std::vector<char>(std::size_t{1} << 28, 'x').size());
    });
    CHECK(large.beyond);
    CHECK(large.output.empty());
    const ChildResult slow = run_in_child({std::uint64_t{1} << 30, 1}, []() -> std::string {
        for (;;) ::pause();
    });
    CHECK(slow.beyond);
}

TEST_CASE("files outside of a confinement are refused, whichever path leads to them") {
    const test::TemporaryFolder folder;
    std::filesystem::create_directory(folder.path / "in");
    const std::string outside = folder.write("out.txt", "secret"), inside = folder.write("in/in.txt", "model");
    std::filesystem::create_symlink(outside, folder.path / "in/link.txt");
    const auto read_confined = [&](const std::string& path) {
        return run_in_child(roomy,
                            [&]() -> std::string {
                                confine_files((folder.path / "in").string());
                                try {
                                    return read_file(path);
                                } catch (const Error& error) {
                                    return error.what();
                                }
                            })
            .output;
    };
    CHECK(read_confined(inside) == "model");
    CHECK(read_confined("in.txt") == "model");
    for (const std::string& path : {outside, std::string("../out.txt"), std::string("link.txt")})
        CHECK(read_confined(path) == path + " is outside of the folder --root");
}

TEST_CASE("a program is found in absolute folders of PATH alone") {
    const test::TemporaryFolder folder;
    const std::string program = folder.write("some-program", "#!/bin/sh\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    const auto found_in = [&](const std::string& path) {
        return run_in_child(roomy,
                            [&] {
                                ::setenv("PATH", path.c_str(), 1);
                                std::filesystem::current_path(folder.path);
                                return find_program("some-program");
                            })
            .output;
    };
    CHECK(found_in("/nonexistent:" + folder.path.string()) == program);
    CHECK(found_in(":.:./").empty());
    CHECK(found_in("").empty());
    CHECK(find_program("/bin/sh") == "/bin/sh");
}

TEST_CASE("one word of a shell command is quoted") {
    CHECK(run_command("printf %s " + shell_quoted("a'b $HOME\n")).output == "a'b $HOME\n");
}
