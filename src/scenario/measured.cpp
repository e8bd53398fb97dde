#include "src/scenario/measured.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include "src/report/table.hpp"

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

std::vector<report::Hypothesis> rank_causes(std::span<const MeasuredRun> runs, std::string_view framework,
                                            const PredictUnder& predict_under) {
    const auto rows = static_cast<Eigen::Index>(runs.size());
    std::map<std::string, Eigen::Index> columns{{"spread", 0}};  // of errors that runs share
    for (const MeasuredRun& run : runs)
        for (const std::string& shared : {run.machine, run.network}) columns.try_emplace(shared, std::ssize(columns));
    std::vector<report::Hypothesis> ranked;
    for (const Change& cause : changes_of(framework)) {
        if (cause.prior == 0) continue;
        const std::vector<std::optional<Prediction>> changed = predict_under(cause);
        if (std::ranges::none_of(changed, [](const auto& prediction) { return prediction.has_value(); })) continue;
        report::Hypothesis hypothesis{cause.name, cause.sentence};
        Eigen::VectorXd residuals(rows);
        Eigen::MatrixXd shared = Eigen::MatrixXd::Zero(rows, std::ssize(columns));
        double change = 0, gain = 0;  // of the sum of squared errors
        for (Eigen::Index i = 0; i < rows; ++i) {
            const MeasuredRun& run = runs[static_cast<std::size_t>(i)];
            const Prediction& predicted = changed[static_cast<std::size_t>(i)].value_or(run.own);
            const double latency_s =
                predicted.latency_s * cause.effect("reading", 1) / (cause.effects.contains("per-item") ? run.items : 1);
            const double host = host_share(predicted);
            hypothesis.latency_s.push_back(latency_s);
            residuals[i] = std::log(run.latency_s / latency_s);
            // One host and one card, whatever the cause: its errors are those of the run.
            shared(i, columns[run.machine]) = host * run.own.host_relative_stddev;
            shared(i, columns[run.network]) = (1 - host) * run.own.device_relative_stddev;
            shared(i, 0) = cause.effect("spread", 0);
            const double own = std::log(run.latency_s / run.own.latency_s);
            change = std::max(change, std::abs(own - residuals[i]));
            gain += own * own - residuals[i] * residuals[i];
        }
        // A cause moves the prediction towards the measurement, by more than its noise.
        const bool is_own = cause.name == "right" || cause.name == "unknown";
        if (!is_own && (change < row_log_stddev || gain <= 0)) continue;
        hypothesis.share = std::log(cause.prior) + log_density(residuals, shared);
        ranked.push_back(std::move(hypothesis));
    }
    std::ranges::stable_sort(ranked, std::ranges::greater{}, &report::Hypothesis::share);
    double sum = 0;
    const double largest = ranked.front().share;
    for (report::Hypothesis& one : ranked) sum += one.share = std::exp(one.share - largest);
    for (report::Hypothesis& one : ranked) one.share /= sum;
    return ranked;
}

void diagnose(const Graph& graph, const ModelArguments& model, const RunArguments& run,
              report::PredictionReport& report) {
    std::vector<const report::PredictionRow*> rows;
    std::vector<MeasuredRun> runs;
    for (const report::PredictionRow& row : report.rows) {
        if (!row.measured) continue;
        const auto items = static_cast<double>(row.batch.value_or(fixed_batch(graph).value_or(1)));
        runs.push_back({row.measured->latency_s, items, row.prediction});
        rows.push_back(&row);
    }
    if (rows.empty()) return;
    report.diagnosis = rank_causes(runs, run.framework, [&](const Change& cause) {
        std::vector<std::optional<Prediction>> predictions(rows.size());
        std::optional<Alternative> changed = alternative(graph, model, run, cause);
        for (std::size_t i = 0; changed && i < rows.size(); ++i)
            predictions[i] = changed->predictor.predict(with_batch(report.dims, rows[i]->batch));
        return predictions;
    });
    report.measured = first_line(report, rows);
}

}  // namespace ftax::scenario
