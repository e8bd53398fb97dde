#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "calibration/fit/framework_fit.hpp"
#include "ftax/device.hpp"
#include "ftax/framework.hpp"
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
/// each. Throws what read_csv, Space::parse and device_profile do, Error{profile} for columns not DEVICE_BATCH.
[[nodiscard]] std::vector<Column> read_columns(const std::filesystem::path& folder, std::size_t limit);

/// Spearman's rank correlation; ties get their mean rank.
[[nodiscard]] double spearman(std::span<const double> a, std::span<const double> b);

/// How well a column is predicted, without samples and with ten, and how two naive counts and the rows rank it.
struct Score {
    std::string space, device;
    std::int64_t batch = 1;
    double spearman_0 = 0, mape_0 = 0;
    double spearman_10 = 0, mape_10 = 0;  ///< means over draws of ten samples; the samples are not scored
    double spearman_operators = 0, spearman_flops = 0;
    double spearman_additive = 0;  ///< additive_spearman() with three quarters of the rows as samples
};

/// Scores one column with the profile that the device and the framework have.
[[nodiscard]] Score score(const Column& column, const FrameworkProfile& framework);

/// Scores every column with the costs fitted on all devices, then with those fitted without its own.
[[nodiscard]] std::string ledger_csv(std::span<const Column> columns, const FrameworkProfile& fitted);

/// How well the rows of a column rank each other: Spearman's correlation, on every fourth row, of a model that adds up
/// one number for each option of each choice and is fitted to the logarithms of the other rows. No device or operator
/// is modelled; what such a model cannot rank with so many samples is mostly the noise of the measurements.
[[nodiscard]] double additive_spearman(const Column& column);

/// Fits the host costs that the columns share, one scale per column: FBNet's networks cost 1.4 times what the others'
/// do per operation on either GPU, and batch 32 on one of them 1.2 times what batch 1 does. `left_out` names a device
/// whose columns are not used ("" for none). Throws Error{usage} when nothing is left.
[[nodiscard]] fit::FrameworkFit fit_host_costs(std::span<const Column> columns, std::string_view left_out);

}  // namespace ftax::nas_study
