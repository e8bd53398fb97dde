#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "calibration/rows/measurement_file.hpp"

namespace ftax::scenario {

using Warn = std::function<void(const std::vector<std::string>&)>;

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
