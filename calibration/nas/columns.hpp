#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ftax/device.hpp"
#include "ftax/nas.hpp"

/// Latencies of architectures that others measured (nas_*.csv): one file per space, one column per device and batch.
namespace ftax::nas_study {

struct Column {
    const nas::Space* space = nullptr;
    std::string name;  ///< "1080ti_32"
    DeviceProfile device;
    std::int64_t batch = 1;
    std::vector<nas::Sample> samples;
};

/// Reads nas_SPACE.csv of every space that has a file in `folder`, at most `limit` architectures evenly spread over
/// each. Throws what read_csv, Space::parse and device_profile throw, Error{profile} for a column that is not
/// DEVICE_BATCH.
[[nodiscard]] std::vector<Column> read_columns(const std::filesystem::path& folder, std::size_t limit,
                                               const std::string& device_profile_path = {});

}  // namespace ftax::nas_study
