#include "src/scenario/notices.hpp"

#include <set>

#include "src/io/escape.hpp"

namespace ftax::scenario {
namespace {

std::FILE*& notice_stream() {
    static std::FILE* stream = stderr;
    return stream;
}

}  // namespace

std::FILE* notices() {
    return notice_stream();
}

void silence_notices() {
    std::FILE* const nowhere = std::fopen("/dev/null", "w");
    if (nowhere != nullptr) notice_stream() = nowhere;
}

void print_warnings(const std::vector<std::string>& warnings) {
    static std::set<std::string> printed;
    for (const std::string& warning : warnings) {
        if (printed.insert(warning).second) std::fprintf(notices(), "warning: %s\n", escape_terminal(warning).c_str());
    }
}

}  // namespace ftax::scenario
