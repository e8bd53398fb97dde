#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <tuple>
#include <vector>

#include "calibration/crossvalidation/folds.hpp"
#include "ftax/equations.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/files/csv.hpp"
#include "graphs/files/file.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/profiles/profile_file.hpp"
#include "predictors/steps/evidence.hpp"
#include "predictors/steps/steps.hpp"
#include "predictors/timeline/launch_costs.hpp"
#include "src/scenario/row_predictor.hpp"

namespace ftax::folds {
namespace {

/// Files behind fits of kernels, where errors are those of the fit, and others that a ledger scores.
constexpr std::string_view fitted_files = "framework_tax framework_tax_more timm_infer";
constexpr std::string_view scored_files = "edge_models kernelbench models_2x neusight_models";

struct PredictedRow {
    std::string framework, model;
    MeasuredSet set;
    std::array<double, factor_count> class_s{};
    Prediction prediction;
    double log_error = 0;  ///< of the measured time
    bool fitted = false;
    bool shows_kernels = false;  ///< the device decides
    Distance distance{};         ///< from the other files
};

/// The variance of a row's device time if all of it was measured.
double variance_where_measured(const Prediction& p) {
    return std::pow(p.device_relative_stddev, 2) - std::pow(p.evidence_relative_stddev, 2);
}

void predict(const std::string& path, scenario::RowPredictor& predictors, std::vector<PredictedRow>& rows) {
    const auto file = read_model_measurements(read_csv(path));
    const std::string name = std::filesystem::path(path).stem().string();
    for (const Measurement& row : file.rows) try {
            if (!file.problems[&row - file.rows.data()].empty() || (row.gpu == unsound_gpu && row.run == unsound_run))
                continue;
            const auto [predictor, bindings] = predictors.bound(row);
            const DeviceSpec& device = predictor.device().device;
            const PredictOptions& options = predictor.options();
            std::vector<LaunchCosts> launches;
            PredictedRow added{std::string(kernels_of(predictor.framework().framework)),
                               row.model,
                               {name, deciding_version(model_of(predictor.framework()), options.libraries),
                                options.precision, device.slug, device.architecture},
                               {},
                               predictor.predict(bindings, launches)};
            for (const LaunchCosts& launch : launches)
                added.class_s[static_cast<std::size_t>(launch.factor)] += launch.device_s;
            constexpr double least_share = 0.05;
            for (std::size_t f = 0; f < factor_count; ++f)
                added.set.kernels[f] = added.class_s[f] >= least_share * added.prediction.device_s;
            added.log_error = std::log(row.latency_s / added.prediction.latency_s);
            added.fitted = has_word(fitted_files, name) || row.run.starts_with("TensorRT demo/BERT");
            constexpr double least_device_share = 0.9;
            added.shows_kernels =
                equations::decisive_share(added.prediction.device_s, added.prediction.host_s) > least_device_share;
            if (added.prediction.evidence != Evidence::unrated) rows.push_back(std::move(added));
        } catch (const Error&) {  // no file of the model, or a request that ftax refuses
        }
}

/// By framework, file, card, precision and version.
using Sets = std::map<std::tuple<std::string, std::string, std::string, Precision, int>, MeasuredSet>;

Sets sets_of(std::span<const PredictedRow> rows) {
    Sets sets;
    for (const PredictedRow& row : rows) {
        const MeasuredSet& own = row.set;
        if (!row.shows_kernels) continue;
        if (!row.fitted && !has_word(scored_files, own.rows)) continue;
        FactorSet& all = sets.try_emplace({row.framework, own.rows, own.card, own.precision, own.version}, own)
                             .first->second.kernels;
        std::ranges::transform(all, own.kernels, all.begin(), std::logical_or<>());
    }
    return sets;
}

std::string to_csv(const Sets& sets) {
    std::string csv = "framework,rows,version,precision,card,architecture,kernels\n";
    for (const auto& [key, set] : sets) {
        std::vector<std::string_view> kernels;
        for (std::size_t f = 0; f < factor_count; ++f)
            if (set.kernels[f]) kernels.push_back(name_of(static_cast<Factor>(f)));
        csv += fmt::format("{},{},{},{},{},{},{}\n", std::get<0>(key), set.rows, set.version, name_of(set.precision),
                           set.card, name_of(set.architecture), fmt::join(kernels, " "));
    }
    return csv;
}

/// What each kind of difference adds to the spread, without rows of the file `left_out`: the maximum of the likelihood
/// of normal errors, by coordinate descent. The rows of a file count as much as those of any other.
EvidenceSpread spread_without(const std::string& left_out, std::span<const PredictedRow> rows) {
    std::vector<const PredictedRow*> counted;
    std::map<std::string, double> rows_of;
    for (const PredictedRow& row : rows) {
        constexpr double largest_log_error = 1;  // beyond: another network or unit
        if (row.fitted || row.set.rows == left_out || !row.shows_kernels || row.prediction.coverage.flops < 1 ||
            std::abs(row.log_error) > largest_log_error)
            continue;
        counted.push_back(&row);
        ++rows_of[row.set.rows];
    }
    std::array<double, 3> variance{0.01, 0.01, 0.01};
    for (int step = 0; step < 200; ++step) {
        double slope = 0, curvature = 0;
        double& changed = variance[static_cast<std::size_t>(step) % 3];
        for (const PredictedRow* row : counted) {
            const Distance& d = row->distance;
            const double differs[] = {d.kernels_share * d.kernels_share, d.card * 1.0, d.set == nullptr ? 1.0 : 0.0};
            const double total =
                std::inner_product(variance.begin(), variance.end(), differs, variance_where_measured(row->prediction));
            const double own = differs[step % 3], weight = own / (total * total * rows_of[row->set.rows]);
            slope += weight * (row->log_error * row->log_error - total);
            curvature += weight * own;
        }
        if (curvature > 0) changed = std::max(0.0, changed + slope / curvature);
    }
    return {std::sqrt(variance[0]), std::sqrt(variance[1]), std::sqrt(variance[2])};
}

}  // namespace

/// What was measured under each framework, as a file of evidence. Rows of whole networks that took part in no fit of a
/// kernel, each predicted as if only the other files were known.
std::string evidence(Arguments a) {
    scenario::RunArguments run;
    run.models = a[0];
    scenario::RowPredictor predictors(run);
    std::vector<PredictedRow> rows;
    for (const std::string& path : a.subspan(2)) predict(path, predictors, rows);
    const Sets sets = sets_of(rows);
    write_file(std::filesystem::path(a[1]) / "profiles/evidence.csv", to_csv(sets));
    std::map<std::pair<std::string, std::string>, std::vector<MeasuredSet>> others;
    std::map<std::string, EvidenceSpread> spreads{{"", {}}};
    for (PredictedRow& row : rows) {
        const auto [of, added] = others.try_emplace({row.framework, row.set.rows});
        for (const auto& [key, set] : sets)
            if (added && std::get<0>(key) == row.framework && set.rows != row.set.rows) of->second.push_back(set);
        row.distance = distance_from(of->second, row.set, row.class_s);
        spreads[row.set.rows];
    }
    for (auto& [file, spread] : spreads) {
        spread = spread_without(file, rows);
        fmt::print(stderr, "without {}: kernels {:.3f}, card {:.3f}, framework {:.3f}\n", file.empty() ? "none" : file,
                   spread.kernels, spread.card, spread.framework);
    }
    std::string csv = "fold,framework,evidence,model,measured,predicted,low,high\n";
    for (const PredictedRow& row : rows) {
        if (row.fitted) continue;
        Prediction p = row.prediction;
        p.device_relative_stddev =
            std::hypot(std::sqrt(variance_where_measured(p)), row.distance.log_stddev(spreads.at(row.set.rows)));
        set_interval(p);
        const double host_log_stddev = equations::decisive_share(p.host_s, p.device_s) * p.host_relative_stddev;
        const std::string word(name_of(grade(row.distance, host_log_stddev)));
        const double measured_s = p.latency_s * std::exp(row.log_error);
        append_scored(csv, {"all files", "all", word, row.model}, {measured_s, p.latency_s, p.low_s, p.high_s}, 0);
        append_scored(csv, {row.set.rows, row.framework, word, row.model}, {measured_s, p.latency_s, p.low_s, p.high_s},
                      0);
    }
    return csv;
}

}  // namespace ftax::folds
