#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include "tests/cli/command.hpp"

using namespace ftax::test;

namespace {

/// Where the loader, libc and glog (below Ceres; it asks for the user's name) look for themselves.
bool is_system(const std::string& path) {
    for (const char* folder :
         {"/lib", "/usr/lib", "/etc/ld.so", "/proc/self", "/proc/filesystems", "/sys/", "/usr/share/locale",
          "/usr/share/zoneinfo", "/etc/localtime", "/dev/null", "/etc/gai.conf", "/etc/nsswitch.conf", "/etc/passwd"}) {
        if (path.starts_with(folder)) return true;
    }
    return false;
}

}  // namespace

TEST_CASE("BAD_INPUTS 31, 37: only the files that the command names are opened, and no connection") {
    const TemporaryFolder folder;
    const std::string trace = folder.file("trace"), csv = folder.file("out.csv");
    const std::string model =
        folder.write("tiny.txt", "graph tiny\ninput %x f32[batch,64]\n%y f32[batch,64] = pointwise(%x)\n");
    if (std::system(("strace -o '" + trace + "' true 2>/dev/null").c_str()) != 0) {
        MESSAGE("SKIPPED: strace is not installed, or not allowed to trace");
        return;
    }
    const std::string command = "strace -f -e trace=open,openat,openat2,creat,execve,connect,socket,unlink,mkdir -o '" +
                                trace + "' " FTAX_PROGRAM " predict '" + model + "' --device t4 --batch 1 --csv '" +
                                csv + "' >/dev/null";
    REQUIRE(std::system(command.c_str()) == 0);
    std::ifstream lines(trace);
    std::set<std::string> opened;
    int executed = 0;
    for (std::string line; std::getline(lines, line);) {
        CHECK_MESSAGE((line.find("socket(") == std::string::npos || line.find("AF_UNIX") != std::string::npos), line);
        executed += line.find("execve(") != std::string::npos;
        const std::size_t begin = line.find('"');
        if (line.find("open") == std::string::npos || begin == std::string::npos) continue;
        const std::string path = line.substr(begin + 1, line.find('"', begin + 1) - begin - 1);
        if (is_system(path)) continue;
        const bool temporary = path.starts_with(csv + ".") && path.ends_with(".tmp");
        opened.insert(temporary ? csv : path);
    }
    CHECK(executed == 1);
    opened.erase(folder.path.string());  // synced after the rename
    CHECK(opened.contains(model));
    CHECK(opened.contains(csv));
    for (const std::string& path : opened) CHECK_MESSAGE((path == model || path == csv), path);
}
