#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "calibration/bench/bench_device.hpp"
#include "calibration/bench/measurement_loop.hpp"

namespace ftax::bench {

/// A file of measured rows: CSV, opened for appending only, one complete line per write, so that whatever ends the
/// program leaves complete rows and at most one torn line at the end, which is cut off when the file is opened again.
class ResultFile {
  public:
    /// Opens `path`, with `columns` as its header. An existing file is continued when `resume` is set.
    /// Throws Error{usage} when it exists and `resume` is not set, or cannot be written; Error{refused} while another
    /// process writes to it; Error{profile} when it has other columns.
    ResultFile(std::string path, std::vector<std::string> columns, bool resume);
    ~ResultFile();
    ResultFile(const ResultFile&) = delete;
    ResultFile& operator=(const ResultFile&) = delete;

    /// Appends one row. Throws Error{usage} with the system's reason (disk full); the file then ends with the row
    /// before.
    void append(const std::vector<std::string>& cells);

    /// Whether an earlier run has measured this; rows with a problem are measured again.
    [[nodiscard]] bool has(const std::string& id, int repetition) const { return done_.contains({id, repetition}); }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    void read_done();
    void write(const std::string& text);

    std::string path_;
    std::vector<std::string> columns_;
    int file_ = -1;
    std::set<std::pair<std::string, int>> done_;
};

/// Columns every result file ends with, and their cells.
[[nodiscard]] std::vector<std::string> result_columns();
[[nodiscard]] std::vector<std::string> result_cells(const BenchCase& bench_case, const CaseResult& result);

/// Writes the environment next to the rows: {"schema_version": 1, "environment": {…}}.
void write_environment(const std::string& path, const Environment& environment);

}  // namespace ftax::bench
