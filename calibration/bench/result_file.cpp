#include "calibration/bench/result_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "ftax/error.hpp"
#include "src/core/statistics.hpp"
#include "src/io/csv.hpp"
#include "src/io/file.hpp"
#include "src/io/json_document.hpp"
#include "src/io/number.hpp"

namespace ftax::bench {
namespace {

[[noreturn]] void fail(const char* verb, const std::string& path, int reason) {
    throw Error(ErrorCode::usage, fmt::format("cannot {} {}: {}", verb, path, std::strerror(reason)));
}

}  // namespace

ResultFile::ResultFile(std::string path, std::vector<std::string> columns, bool resume)
    : path_(std::move(path)), columns_(std::move(columns)) {
    const int flags = O_RDWR | O_APPEND | O_CLOEXEC | O_CREAT | (resume ? 0 : O_EXCL);
    file_ = ::open(path_.c_str(), flags, 0666);
    if (file_ < 0 && errno == EEXIST) {
        throw Error(ErrorCode::usage, fmt::format("{} exists; --resume continues it", path_));
    }
    if (file_ < 0) fail("write", path_, errno);
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
        ::close(file_);
        throw Error(ErrorCode::refused, fmt::format("{}: another process is writing to it", path_));
    }
    try {
        read_done();
    } catch (...) {
        ::close(file_);
        throw;
    }
}

ResultFile::~ResultFile() {
    ::close(file_);
}

void ResultFile::read_done() {
    std::string text = read_file(path_);
    const std::size_t complete = text.rfind('\n') + 1;  // 0 when there is no line end
    if (complete < text.size()) {
        if (::ftruncate(file_, static_cast<off_t>(complete)) != 0) fail("write", path_, errno);
        text.resize(complete);
    }
    if (text.empty()) {
        std::string header;
        append_csv_row(header, columns_);
        return write(header);
    }
    const CsvTable table(text, path_);
    if (!std::equal(columns_.begin(), columns_.end(), table.header().begin(), table.header().end())) {
        throw Error(ErrorCode::profile, fmt::format("{}: other columns than this program writes", path_));
    }
    const std::size_t id = *table.column("case");
    const std::size_t repetition = *table.column("repetition");
    const std::size_t problem = *table.column("problem");
    for (std::size_t i = 0; i < table.rows(); ++i) {
        const auto row = table.row(i);
        if (!row[problem].empty()) continue;
        done_.emplace(row[id], static_cast<int>(parse_integer(row[repetition]).value_or(0)));
    }
}

void ResultFile::write(const std::string& text) {
    const off_t end = ::lseek(file_, 0, SEEK_END);
    std::size_t written = 0;
    while (written < text.size()) {
        const ssize_t count = ::write(file_, text.data() + written, text.size() - written);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) {
            const int reason = count == 0 ? ENOSPC : errno;
            if (end >= 0 && ::ftruncate(file_, end) != 0) fail("mend", path_, errno);
            fail("write", path_, reason);
        }
        written += static_cast<std::size_t>(count);
    }
}

void ResultFile::append(const std::vector<std::string>& cells) {
    std::string line;
    append_csv_row(line, cells);
    write(line);
}

std::vector<std::string> result_columns() {
    return {"latency_ms",  "mode",     "case",   "repetition", "samples", "relative_stddev", "discarded",
            "clock_ratio", "slowdown", "source", "stopped",    "problem", "samples_ms"};
}

std::vector<std::string> result_cells(const BenchCase& bench_case, const CaseResult& result) {
    std::string samples;
    for (const double seconds : result.samples_s) {
        samples += fmt::format("{}{:.5g}", samples.empty() ? "" : " ", seconds * 1e3);
    }
    const bool valid = result.problem.empty();
    return {valid ? fmt::format("{:.6g}", median(result.samples_s) * 1e3) : "",
            std::string(name_of(bench_case.mode)),
            bench_case.id,
            fmt::format("{}", result.repetition),
            fmt::format("{}", result.samples_s.size()),
            valid ? fmt::format("{:.3g}", relative_stddev(result.samples_s)) : "",
            fmt::format("{}", result.discarded),
            result.clock_ratio ? fmt::format("{:.3f}", *result.clock_ratio) : "",
            result.slowdown,
            result.source,
            result.stopped,
            result.problem,
            samples};
}

void write_environment(const std::string& path, const Environment& environment) {
    nlohmann::ordered_json json{{"schema_version", 1}, {"environment", nlohmann::ordered_json::object()}};
    for (const auto& [key, value] : environment) json["environment"][key] = value;
    write_file(path, to_text(json));
}

}  // namespace ftax::bench
