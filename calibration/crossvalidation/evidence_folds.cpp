#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <tuple>
#include <vector>

#include "calibration/crossvalidation/folds.hpp"
#include "ftax/equations.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/steps/evidence.hpp"
#include "predictors/timeline/launch_costs.hpp"
#include "src/io/csv.hpp"
#include "src/scenario/row_predictor.hpp"

namespace ftax::folds {
namespace {

/// A row that the device decides.
struct DeviceRow {
    std::string framework;
    MeasuredSet set;
    std::array<double, factor_count> class_s{};
    double excess = 0;  ///< squared log error less the variance predicted where all is measured
};

std::vector<DeviceRow> device_rows(Arguments files, scenario::RowPredictor& rows) {
    std::vector<DeviceRow> found;
    for (const std::string& path : files) {
        const auto file = read_model_measurements(read_csv(path));
        for (std::size_t i = 0; i < file.rows.size(); ++i) try {
                if (!file.problems[i].empty()) continue;
                const auto [predictor, bindings] = rows.bound(file.rows[i]);
                std::vector<LaunchCosts> launches;
                const Prediction p = predictor.predict(bindings, launches);
                const double log_error = std::log(file.rows[i].latency_s / p.latency_s);
                constexpr double least_device_share = 0.9, largest_log_error = 1;  // beyond: another network or unit
                if (equations::decisive_share(p.device_s, p.host_s) < least_device_share || p.coverage.flops < 1 ||
                    std::abs(log_error) > largest_log_error)
                    continue;
                DeviceRow row{predictor.framework().framework,
                              {std::filesystem::path(path).filename().string(),
                               deciding_version(model_of(predictor.framework()), predictor.options().libraries),
                               predictor.options().precision, predictor.device().device.architecture}};
                for (const LaunchCosts& launch : launches)
                    row.class_s[static_cast<std::size_t>(launch.factor)] += launch.device_s;
                constexpr double least_share = 0.05;
                for (std::size_t f = 0; f < factor_count; ++f)
                    row.set.kernels[f] = row.class_s[f] >= least_share * p.device_s;
                row.excess = log_error * log_error - std::pow(p.device_relative_stddev, 2) +
                             std::pow(p.evidence_relative_stddev, 2);
                found.push_back(std::move(row));
            } catch (const Error&) {  // no file of the model, or a request that ftax refuses
            }
    }
    return found;
}

using Sets = std::map<std::string, std::vector<MeasuredSet>>;  // by framework

Sets sets_of(std::span<const DeviceRow> rows) {
    std::map<std::tuple<std::string, std::string, int, Precision, Architecture>, FactorSet> kernels;
    for (const auto& [framework, set, class_s, excess] : rows) {
        FactorSet& all = kernels[{framework, set.rows, set.version, set.precision, set.architecture}];
        std::ranges::transform(all, set.kernels, all.begin(), std::logical_or<>());
    }
    Sets sets;
    for (const auto& [key, all] : kernels) {
        const auto& [framework, file, version, precision, architecture] = key;
        sets[framework].push_back({file, version, precision, architecture, all});
    }
    return sets;
}

/// Prints what each kind of difference adds to the spread: non-negative least squares by coordinate descent, on rows
/// whose own file is left out of the evidence. Files count alike, however many rows they have.
void print_spread(std::span<const DeviceRow> rows, const Sets& sets) {
    constexpr Eigen::Index kinds = 5;
    std::map<std::string, double> rows_of_file;
    for (const DeviceRow& row : rows) ++rows_of_file[row.set.rows];
    Eigen::Matrix<double, kinds, kinds> normal = Eigen::Matrix<double, kinds, kinds>::Zero();
    Eigen::Vector<double, kinds> right = Eigen::Vector<double, kinds>::Zero(), variance = right, differs;
    for (const DeviceRow& row : rows) {
        std::vector<MeasuredSet> others = sets.at(row.framework);
        std::erase_if(others, [&](const MeasuredSet& set) { return set.rows == row.set.rows; });
        const Distance d = distance_from(others, row.set, row.class_s);
        differs << d.version, d.precision, d.architecture, d.kernels_share * d.kernels_share, d.set == nullptr;
        const double weight = 1 / rows_of_file[row.set.rows];
        normal += weight * differs * differs.transpose();
        right += weight * row.excess * differs;
    }
    for (int sweep = 0; sweep < 200; ++sweep)
        for (Eigen::Index k = 0; k < kinds; ++k)
            if (normal(k, k) > 0)
                variance[k] = std::max(0.0, variance[k] + (right[k] - normal.row(k) * variance) / normal(k, k));
    const auto stddev = variance.cwiseSqrt();
    fmt::print(stderr, "version {:.3f}, precision {:.3f}, architecture {:.3f}, kernels {:.3f}, framework {:.3f}\n",
               stddev[0], stddev[1], stddev[2], stddev[3], stddev[4]);
}

}  // namespace

std::string evidence(Arguments a) {
    scenario::RunArguments run;
    run.models = a[0];
    scenario::RowPredictor predictor(run);
    const std::vector<DeviceRow> rows = device_rows(a.subspan(1), predictor);
    const Sets sets = sets_of(rows);
    print_spread(rows, sets);
    std::string csv = "framework,rows,version,precision,architecture,kernels\n";
    for (const auto& [framework, all] : sets) {
        for (const MeasuredSet& set : all) {
            std::string kernels;
            for (std::size_t f = 0; f < factor_count; ++f)
                if (set.kernels[f])
                    kernels += fmt::format("{}{}", kernels.empty() ? "" : " ", name_of(static_cast<Factor>(f)));
            append_csv_row(csv, std::vector<std::string>{framework, set.rows, std::to_string(set.version),
                                                         std::string(name_of(set.precision)),
                                                         std::string(name_of(set.architecture)), kernels});
        }
    }
    return csv;
}

}  // namespace ftax::folds
