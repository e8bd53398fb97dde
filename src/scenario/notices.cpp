#include "src/scenario/notices.hpp"

#include <algorithm>
#include <mutex>

#include "src/io/escape.hpp"
#include "src/report/quantities.hpp"

namespace ftax::scenario {
namespace {

std::FILE*& notice_stream() {
    static std::FILE* stream = stderr;
    return stream;
}

std::vector<std::string>& printed_warnings() {
    static std::vector<std::string> printed;
    return printed;
}

std::mutex& printing() {
    static std::mutex mutex;
    return mutex;
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
    const std::lock_guard guard(printing());
    for (const std::string& warning : warnings) {
        if (std::find(printed_warnings().begin(), printed_warnings().end(), warning) != printed_warnings().end())
            continue;
        printed_warnings().push_back(warning);
        std::fprintf(notices(), "warning: %s\n", escape_terminal(warning).c_str());
    }
}

std::vector<std::string> warnings_besides(const std::set<std::string>& told) {
    const std::lock_guard guard(printing());
    std::vector<std::string> others = printed_warnings();
    std::erase_if(others, [&](const std::string& warning) { return told.contains(warning); });
    return others;
}

void warn_of_memory(Prediction& prediction, const MemoryUse& memory) {
    if (!memory.fits()) prediction.warnings.push_back(report::describe(memory));
}

}  // namespace ftax::scenario
