#include "graphs/files/file.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "ftax/error.hpp"

using namespace ftax;
namespace fs = std::filesystem;

namespace {

/// A folder of its own for a test, removed behind it.
class Folder {
  public:
    Folder() {
        std::string name = (fs::temp_directory_path() / "ftax-test-XXXXXX").string();
        path_ = ::mkdtemp(name.data());
    }
    ~Folder() { fs::remove_all(path_); }
    [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }
    [[nodiscard]] std::ptrdiff_t entries() const {
        return std::distance(fs::directory_iterator(path_), fs::directory_iterator{});
    }

  private:
    fs::path path_;
};

ErrorCode code_of_write(const std::string& path, std::string_view content) {
    try {
        write_file(path, content);
    } catch (const Error& error) {
        CHECK(std::string(error.what()).find("cannot write") == 0);
        return error.code();
    }
    return ErrorCode{0};
}

}  // namespace

TEST_CASE("a file is written whole and read back, and keeps its permissions") {
    const Folder folder;
    const std::string path = folder / "out.json";
    const std::string content(300'000, 'x');
    write_file(path, "old");
    ::chmod(path.c_str(), 0640);
    write_file(path, content);
    CHECK(read_file(path) == content);
    CHECK(fs::status(path).permissions() == fs::perms(0640));
    CHECK(folder.entries() == 1);
    CHECK_THROWS_AS(static_cast<void>(read_file(path, 1000)), Error);
    CHECK(read_file(path, content.size()) == content);
    CHECK(read_file(path).capacity() < content.size() + 100);  // the end is found without another allocation
    CHECK_FALSE(read_file("/proc/self/status").empty());       // whose size is stated as 0
}

TEST_CASE("a link stays a link, and a device is written to") {
    const Folder folder;
    write_file(folder / "real", "old");
    fs::create_symlink(folder / "real", folder / "link");
    write_file(folder / "link", "new");
    CHECK(fs::is_symlink(folder / "link"));
    CHECK(read_file(folder / "real") == "new");
    CHECK_NOTHROW(write_file("/dev/null", "gone"));
}

TEST_CASE("files that cannot be read are usage errors that name the reason") {
    const Folder folder;
    for (const std::string& path : {folder / "absent", folder / ""}) {
        try {
            static_cast<void>(read_file(path));
            FAIL("read");
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::usage);
        }
    }
}

TEST_CASE("BAD_INPUTS 47: an unwritable output is an error") {
    const Folder folder;
    CHECK(code_of_write(folder / "absent/out", "x") == ErrorCode::usage);
    CHECK(code_of_write(folder / "", "x") == ErrorCode::usage);
    CHECK(code_of_write("/dev/full", "x") == ErrorCode::usage);
    CHECK(folder.entries() == 0);
}

TEST_CASE("BAD_INPUTS 47: when the disk is full the old file stays and no temporary is left") {
    const Folder folder;
    const std::string path = folder / "out";
    write_file(path, "old");
    // A limit on the file size makes write() fail half-way, as a full disk does.
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{1000, before.rlim_max};
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &small);
    const ErrorCode code = code_of_write(path, std::string(5000, 'x'));
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    CHECK(code == ErrorCode::usage);
    CHECK(read_file(path) == "old");
    CHECK(folder.entries() == 1);
}

TEST_CASE("BAD_INPUTS 47: of two writers one wins whole") {
    const Folder folder;
    const std::string path = folder / "out";
    const auto write = [&](char c) {
        for (int i = 0; i < 50; ++i) write_file(path, std::string(100'000, c));
    };
    {
        const std::jthread a(write, 'a');
        const std::jthread b(write, 'b');
    }
    const std::string content = read_file(path);
    CHECK(content.size() == 100'000);
    CHECK(content.find_first_not_of(content[0]) == std::string::npos);
    CHECK(folder.entries() == 1);
}

TEST_CASE("BAD_INPUTS 47: a file is whole whenever its writer is killed") {
    const Folder folder;
    const std::string path = folder / "out";
    const std::string contents[]{std::string(200'000, 'a'), std::string(100'000, 'b')};
    write_file(path, contents[0]);
    int changed = 0;
    for (int kill_after_us = 0; kill_after_us < 20'000; kill_after_us += 397) {
        const pid_t writer = ::fork();
        REQUIRE(writer >= 0);
        if (writer == 0) {
            for (int i = 1;; ++i) write_file(path, contents[i % 2]);
        }
        ::usleep(static_cast<useconds_t>(kill_after_us));
        ::kill(writer, SIGKILL);
        ::waitpid(writer, nullptr, 0);
        const std::string content = read_file(path);
        CHECK((content == contents[0] || content == contents[1]));
        changed += content == contents[1];
    }
    CHECK(changed > 0);  // the writers did get to write
}

TEST_CASE("BAD_INPUTS 48: a path that is not UTF-8 is passed through") {
    const Folder folder;
    const std::string path = folder / "\xff\xfe.json";
    write_file(path, "content");
    CHECK(read_file(path) == "content");
    try {
        static_cast<void>(read_file(folder / "\xff"));
        FAIL("read");
    } catch (const Error& error) {
        CHECK(std::string(error.what()).find("\\xff: No such file") != std::string::npos);
    }
}
