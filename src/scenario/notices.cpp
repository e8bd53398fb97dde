#include "src/scenario/notices.hpp"

#include <set>

#include "src/io/escape.hpp"
#include "src/report/memory_report.hpp"

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

void warn_of_memory(const MemoryUse& memory) {
    if (!memory.fits()) print_warnings({report::describe(memory)});
}

}  // namespace ftax::scenario
