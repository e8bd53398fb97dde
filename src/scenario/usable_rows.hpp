#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "calibration/rows/measurement_file.hpp"
#include "graphs/base/throw_error.hpp"

namespace ftax::scenario {

using Warn = std::function<void(const std::vector<std::string>&)>;

/// Reads a file of anchor rows. Throws Error{limit} for more than a machine needs: each is predicted or simulated.
inline CsvTable read_anchors(const std::string& path) {
    constexpr std::size_t most = 20'000;
    CsvTable table = read_csv(path);
    if (table.rows() > most) throw_error(ErrorCode::limit, "{}: more than {} anchor rows", table.origin(), most);
    return table;
}

/// Returns the usable rows of a file; warns of the others, if told whom.
template <class Row>
std::vector<Row> usable_rows(const MeasurementFile<Row>& file, const Warn& warn = {}) {
    std::vector<Row> rows;
    for (std::size_t i = 0; i < file.rows.size(); ++i) {
        if (file.problems[i].empty()) {
            rows.push_back(file.rows[i]);
        } else if (warn) {
            warn({fmt::format("{}:{}: {}", file.table.origin(), file.rows[i].line, file.problems[i])});
        }
    }
    return rows;
}

/// Returns true if two rows are the same measurement, ignoring their lines.
template <class Row>
bool is_same_run(Row a, const Row& b) {
    a.line = b.line;
    return a == b;
}

}  // namespace ftax::scenario
