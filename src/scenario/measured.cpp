#include "src/scenario/measured.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "src/report/units.hpp"
#include "src/scenario/alternatives.hpp"

namespace ftax::scenario {
namespace {

/// Noise of a measured row. Source: framework_tax.csv, spread around the mean of a model on one host.
constexpr double row_log_stddev = 0.05;

/// Log density of residuals that share normal errors: a column of `shared` has an error's part in each row.
double log_density(const Eigen::VectorXd& residuals, const Eigen::MatrixXd& shared) {
    Eigen::MatrixXd covariance = shared * shared.transpose();
    covariance.diagonal().array() += row_log_stddev * row_log_stddev;
    const Eigen::LLT<Eigen::MatrixXd> root(covariance);
    const Eigen::MatrixXd factor = root.matrixL();
    return -residuals.dot(root.solve(residuals)) / 2 - factor.diagonal().array().log().sum();
}

/// How much of the host's error a latency has: the probability that the host takes longer than the device.
double host_share(const Prediction& prediction) {
    const double spread = std::hypot(prediction.host_relative_stddev, prediction.device_relative_stddev);
    const double ahead = std::log(prediction.host_s / prediction.device_s) / std::max(spread, row_log_stddev);
    return std::erfc(-ahead / std::numbers::sqrt2) / 2;
}

/// Of the row farthest from its prediction, and of the most likely cause.
std::string first_line(const report::PredictionReport& report, const std::vector<const report::PredictionRow*>& rows) {
    using report::duration;
    const auto ratio = [](const report::PredictionRow* row) {
        return row->measured->latency_s / row->prediction.latency_s;
    };
    const report::PredictionRow& row =
        **std::ranges::max_element(rows, {}, [&](const auto* one) { return std::abs(std::log(ratio(one))); });
    const Prediction& p = row.prediction;
    const double measured_s = row.measured->latency_s;
    return fmt::format(
        "measured {}{} is {} times the predicted {}, {} the 90 % interval of {} to {}; {} "
        "({:.0f} %): {}",
        duration(measured_s), rows.size() > 1 ? fmt::format(" at batch {}", *row.batch) : "",
        report::significant(ratio(&row)), duration(p.latency_s),
        measured_s >= p.low_s && measured_s <= p.high_s ? "inside" : "outside", duration(p.low_s), duration(p.high_s),
        report.diagnosis.front().share < 0.5 ? "possibly" : "most likely", 100 * report.diagnosis.front().share,
        report.diagnosis.front().sentence);
}

}  // namespace

void diagnose(const Graph& graph, const ModelArguments& model, const RunArguments& run,
              report::PredictionReport& report) {
    std::vector<const report::PredictionRow*> rows;
    for (const report::PredictionRow& row : report.rows)
        if (row.measured) rows.push_back(&row);
    if (rows.empty()) return;
    const auto items_of = [&](const auto& batch) {
        return static_cast<double>(batch.value_or(fixed_batch(graph).value_or(1)));
    };
    std::vector<double> weights;
    for (const Change& cause : changes_of(run.framework)) {
        if (cause.prior == 0) continue;
        std::optional<Alternative> changed = alternative(graph, model, run, cause);
        if (!changed) continue;
        const double spread = cause.effect("spread", 0);
        report::Hypothesis hypothesis{cause.name, cause.sentence};
        Eigen::VectorXd residuals(rows.size());
        Eigen::MatrixXd shared(rows.size(), 3);
        double change = 0, gain = 0;  // of the sum of squared errors
        for (Eigen::Index i = 0; i < residuals.size(); ++i) {
            const report::PredictionRow* const row = rows[static_cast<std::size_t>(i)];
            const Prediction predicted = changed->predictor.predict(with_batch(report.dims, row->batch));
            const double latency_s = predicted.latency_s * cause.effect("reading", 1) /
                                     (cause.effects.contains("per-item") ? items_of(row->batch) : 1);
            const double host = host_share(predicted);
            hypothesis.latency_s.push_back(latency_s);
            residuals[i] = std::log(row->measured->latency_s / latency_s);
            // One host and one card, whatever the cause: its errors are those of the run.
            shared.row(i) << host * row->prediction.host_relative_stddev,
                (1 - host) * row->prediction.device_relative_stddev, spread;
            const double own = std::log(row->measured->latency_s / row->prediction.latency_s);
            change = std::max(change, std::abs(own - residuals[i]));
            gain += own * own - residuals[i] * residuals[i];
        }
        // A cause moves the prediction towards the measurement, by more than its noise.
        const bool is_own = cause.name == "right" || cause.name == "unknown";
        if (!is_own && (change < row_log_stddev || gain <= 0)) continue;
        weights.push_back(std::log(cause.prior) + log_density(residuals, shared));
        report.diagnosis.push_back(std::move(hypothesis));
    }
    const double largest = *std::ranges::max_element(weights);
    double sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight - largest);
    for (std::size_t i = 0; i < weights.size(); ++i) report.diagnosis[i].share = weights[i] / sum;
    std::ranges::stable_sort(report.diagnosis, std::ranges::greater{}, &report::Hypothesis::share);
    report.measured = first_line(report, rows);
}

}  // namespace ftax::scenario
