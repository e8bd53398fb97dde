#include "calibration/nas/columns.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ftax/error.hpp"
#include "src/io/csv.hpp"
#include "src/io/number.hpp"

namespace ftax::nas_study {
namespace {

Column empty_column(const nas::Space& space, std::string_view name, const std::string& profile_path) {
    const std::size_t underscore = name.rfind('_');
    const auto batch = underscore == std::string_view::npos ? std::nullopt : parse_integer(name.substr(underscore + 1));
    if (!batch) throw Error(ErrorCode::profile, fmt::format("column {} is not DEVICE_BATCH", name));
    return {&space, std::string(name), device_profile(name.substr(0, underscore), profile_path), *batch, {}};
}

void read_space(const nas::Space& space, const std::string& path, std::size_t limit, const std::string& profile_path,
                std::vector<Column>& columns) {
    const CsvTable table = read_csv(path);
    const std::size_t first = columns.size();
    for (const std::string_view name : table.header().subspan(1)) {
        columns.push_back(empty_column(space, name, profile_path));
    }
    const std::size_t count = std::min(limit, table.rows());
    for (std::size_t i = 0; i < count; ++i) {
        const auto row = table.row(i * table.rows() / count);
        std::vector<int> choices;
        space.parse(row[0], choices);
        for (std::size_t c = 1; c < row.size(); ++c) {
            const auto latency_ms = parse_number(row[c]);
            if (!latency_ms) continue;
            Column& column = columns[first + c - 1];
            column.samples.push_back({choices, column.batch, *latency_ms * 1e-3});
        }
    }
}

}  // namespace

std::vector<Column> read_columns(const std::filesystem::path& folder, std::size_t limit,
                                 const std::string& device_profile_path) {
    std::vector<Column> columns;
    for (const std::string& name : nas::space_names()) {
        // Cards that were measured later have files of their own.
        for (const std::string& file : {fmt::format("nas_{}.csv", name), fmt::format("nas_{}_2080ti.csv", name)}) {
            const std::filesystem::path path = folder / file;
            if (!std::filesystem::exists(path)) continue;
            read_space(nas::space(name), path.string(), limit, device_profile_path, columns);
        }
    }
    return columns;
}

}  // namespace ftax::nas_study
