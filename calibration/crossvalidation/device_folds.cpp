#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "calibration/crossvalidation/folds.hpp"
#include "calibration/fit/model_fit.hpp"
#include "ftax/factors.hpp"
#include "graphs/files/csv.hpp"
#include "graphs/files/file.hpp"
#include "predictors/kernels/kernel_models.hpp"
#include "predictors/profiles/profile_file.hpp"
#include "src/scenario/machine_rows.hpp"

namespace ftax::folds {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// What classes without rows would have, and how many cards that guess weighs as.
constexpr double guessed_stddev = 0.15;
constexpr double guess_weight = 1;
constexpr double guessed_noise = 0.08;
constexpr int rounds = 200;

/// Sums over rows of one model on one card that the fit has not seen: they share its error.
struct Residuals {
    VectorXd share = VectorXd::Zero(factor_count);  ///< of the device time by kernel class; 1 for the card
    double log_error = 0;                           ///< log(measured / predicted)
    double rows = 0;
};
using ResidualsOfCards = std::map<std::string, std::map<std::string, Residuals>>;  // by card and model

/// The rows of one card, those of a model averaged.
struct Card {
    MatrixXd shares;
    VectorXd errors;
};

std::vector<Card> cards_of(const ResidualsOfCards& residuals) {
    std::vector<Card> cards;
    for (const auto& [_, models] : residuals) {
        Card& card = cards.emplace_back();
        card.shares.resize(static_cast<Index>(models.size()), factor_count);
        card.errors.resize(static_cast<Index>(models.size()));
        Index row = 0;
        for (const auto& [model, sum] : models) {
            card.shares.row(row) = sum.share.transpose() / sum.rows;
            card.errors[row++] = sum.log_error / sum.rows;
        }
    }
    return cards;
}

using fit::ModelRow;

std::string precision_class(const ModelRow& row) {
    if (row.precision == Precision::fp32) return "fp32";
    return row.device->peak(MathPath::fp16_tensor) ? "fp16 tensor cores" : "fp16 Pascal";
}

void add_error(const std::string& fold, const ModelRow& row, const DeviceProfile& profile, LogErrors& errors) {
    const KernelModels models(*row.device, kernel_parameters(profile));
    const double error = std::log(fit::device_seconds(row, models) / row.latency_s);
    for (const std::string& group : {std::string("all"), row.device->slug, "model " + row.model})
        errors[{fold, precision_class(row), "", 0, group}].push_back(error);
}

DeviceProfileFile refit(std::span<const ModelRow> rows, const DeviceProfileFile& start, std::string only = {}) {
    DeviceProfileFile fitted;
    (void)fit::fit_models(
        rows, start, {.fit = {.starts = 1, .iterations = 12, .row_log_stddev = 0.05}, .only = std::move(only)}, fitted);
    return fitted;
}

std::map<std::string, const ModelRow*> anchors_of(std::span<const ModelRow> rows) {
    std::map<std::string, const ModelRow*> longest;
    for (const ModelRow& row : rows) {
        if (row.model != "resnet50") continue;
        const ModelRow*& best = longest[precision_class(row)];
        if (best == nullptr || row.latency_s > best->latency_s) best = &row;
    }
    return longest;
}

/// Predicts the rows of each group with a profile that was refitted on the others.
void for_each_fold(std::span<const ModelRow> rows, const DeviceProfileFile& start,
                   const std::function<std::string(const ModelRow&)>& group_of,
                   const std::function<void(const DeviceProfileFile&, std::span<const ModelRow>)>& visit) {
    std::set<std::string> groups;
    for (const ModelRow& row : rows) groups.insert(group_of(row));
    for (const std::string& group : groups) {
        std::vector<ModelRow> own, others;
        std::ranges::partition_copy(rows, std::back_inserter(own), std::back_inserter(others),
                                    [&](const ModelRow& row) { return group_of(row) == group; });
        if (!others.empty()) visit(refit(others, start), own);
    }
}

/// A device left out is predicted from its datasheet, then with its clocks fitted to the longest resnet50 row of each
/// precision, which is not scored.
void leave_devices_out(std::span<const ModelRow> rows, const DeviceProfileFile& start, LogErrors& errors) {
    const auto device_of = [](const ModelRow& row) { return row.device->slug; };
    for_each_fold(rows, start, device_of, [&](const DeviceProfileFile& fitted, std::span<const ModelRow> own) {
        const std::map<std::string, const ModelRow*> anchors = anchors_of(own);
        std::vector<ModelRow> known;
        for (const auto& [_, anchor] : anchors) known.push_back(*anchor);
        const DeviceProfileFile measured = known.empty() ? fitted : refit(known, fitted, "clock.");
        const DeviceSpec& device = *own.front().device;
        const DeviceProfile datasheet = compose(fitted, device);
        const DeviceProfile with_clock = compose(measured, device);
        for (const ModelRow& row : own) {
            add_error("leave one GPU out, datasheet", row, datasheet, errors);
            const bool is_anchor =
                std::ranges::any_of(anchors, [&](const auto& known_row) { return known_row.second == &row; });
            if (!known.empty() && !is_anchor)
                add_error("leave one GPU out, its longest resnet50 row known", row, with_clock, errors);
        }
    });
}

/// Adds what is off about one row, and which classes of kernels its device time consists of.
void add_residual(const ModelRow& row, const DeviceProfile& profile, ResidualsOfCards& residuals) {
    const KernelModels models(*row.device, kernel_parameters(profile));
    VectorXd seconds_of = VectorXd::Zero(factor_count);
    double total_s = 0;
    for (const CountedKernel& kernel : row.kernels) {
        const auto plan = std::visit([&](const auto& shape) { return models.plan(shape, kernel.path); }, kernel.shape);
        const double seconds = kernel.count * plan.seconds;
        seconds_of[static_cast<Index>(factor_of(kernel.shape, kernel.path))] += seconds;
        total_s += seconds;
    }
    Residuals& sum = residuals[row.device->slug][row.model + " " + precision_class(row)];
    seconds_of /= total_s;
    seconds_of[static_cast<Index>(Factor::card)] = 1;
    sum.share += seconds_of;
    sum.log_error += std::log(row.latency_s / fit::device_seconds(row, models));
    sum.rows += 1;
}

/// Standard deviations of the log-factors of the classes between cards: log_error = Σ share · factor(card) + noise,
/// where a refit has not seen the rows of a model. Source: empirical Bayes by expectation maximisation; Dempster, Laird
/// and Rubin, J. Royal Stat. Soc. B 39 (1977), section 4.5. Classes with few cards stay near the prior guess of 0.15.
VectorXd class_spreads(std::span<const ModelRow> rows, const DeviceProfileFile& start) {
    ResidualsOfCards residuals;
    for_each_fold(rows, start, &ModelRow::model, [&](const DeviceProfileFile& fitted, std::span<const ModelRow> own) {
        for (const ModelRow& row : own) add_residual(row, compose(fitted, *row.device), residuals);
    });
    const std::vector<Card> cards = cards_of(residuals);
    VectorXd variance = VectorXd::Constant(factor_count, guessed_stddev * guessed_stddev);
    double noise = guessed_noise * guessed_noise;
    for (int round = 0; round < rounds && !cards.empty(); ++round) {
        VectorXd squares = VectorXd::Constant(factor_count, guess_weight * guessed_stddev * guessed_stddev);
        double noise_squares = guessed_noise * guessed_noise;
        double count = 1;
        for (const Card& card : cards) {
            MatrixXd information = card.shares.transpose() * card.shares / noise;
            information.diagonal() += variance.cwiseInverse();
            const MatrixXd covariance = information.llt().solve(MatrixXd::Identity(factor_count, factor_count));
            const VectorXd mean = covariance * (card.shares.transpose() * card.errors) / noise;
            squares += mean.cwiseAbs2() + covariance.diagonal();
            noise_squares += (card.errors - card.shares * mean).squaredNorm() +
                             (card.shares * covariance).cwiseProduct(card.shares).sum();
            count += static_cast<double>(card.errors.size());
        }
        variance = squares / (static_cast<double>(cards.size()) + guess_weight);
        noise = noise_squares / count;
    }
    return variance.cwiseSqrt();
}

std::vector<ModelRow> device_rows(const std::string& rows_path) {
    return scenario::model_rows(read_model_measurements(read_csv(rows_path)),
                                {.left_out_runs = {fmt::format("{}:{}", unsound_gpu, unsound_run)}});
}

}  // namespace

/// Figures of passes that the device decides: under the committed profile, refitted without each model, each device.
std::string devices(Arguments a) {
    const std::vector<ModelRow> rows = device_rows(a[0]);
    LogErrors committed, models, cards;
    for (const ModelRow& row : rows)
        add_error("built-in profile, in the fit", row, device_profile(row.device->slug), committed);
    if (a.size() > 1) {
        const DeviceProfileFile start = parse_device_profile(read_file(a[1]), a[1]);
        for_each_fold(rows, start, &ModelRow::model,
                      [&](const DeviceProfileFile& fitted, std::span<const ModelRow> own) {
                          for (const ModelRow& row : own)
                              add_error("leave one model out", row, compose(fitted, *row.device), models);
                      });
        leave_devices_out(rows, start, cards);
    }
    return std::string(figures_header) + figures_csv(committed) + figures_csv(models) + figures_csv(cards);
}

/// The spread of the device factors between cards, as a file of uncertainty.
std::string uncertainty(Arguments a) {
    const std::vector<ModelRow> rows = device_rows(a[0]);
    const DeviceProfileFile start = parse_device_profile(read_file(a[1]), a[1]);
    VarianceComponents components;
    std::ranges::copy(class_spreads(rows, start), components.of.begin());
    components.source = fmt::format(
        "framework_tax.csv, {} forward passes that the device decides, kernel models refitted without the model",
        rows.size());
    return to_text(components);
}

}  // namespace ftax::folds
