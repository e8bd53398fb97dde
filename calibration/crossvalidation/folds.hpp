#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/fit/framework_fit.hpp"
#include "ftax/graph.hpp"
#include "ftax/measurement.hpp"

/// Scores the framework models on rows of models, families and GPUs that the fit has not seen.
namespace ftax::folds {

/// A row with the prediction made without it.
struct Scored {
    const Measurement* row = nullptr;
    double predicted_s = 0, low_s = 0, high_s = 0;
    double host_s = 0, device_s = 0;
};

/// A campaign that something else on the machine slowed 2 to 3 × (all CNNs, and transformers at small batches): no
/// score and no fit counts its rows of eager PyTorch.
inline constexpr std::string_view unsound_gpu = "A100";
inline constexpr std::string_view unsound_run = "2022_1025_pretrained-fp32@2022-10-26";

enum class LeaveOut { model, family, gpu, gpu_but_batch_1 };

using LinesByReason = std::map<std::string, std::vector<std::size_t>>;

/// Rows with what the predictor counts on the host and times on the device for each; both are found once.
class Folds {
  public:
    /// Rows whose model, device or framework is unknown are left out, as are rows above `largest_batch`, and those of
    /// unsound_run.
    Folds(std::vector<Measurement> rows, std::int64_t largest_batch = 128);

    /// Lines of the file that are not among the rows, by reason.
    [[nodiscard]] const LinesByReason& left_out() const { return left_out_; }
    [[nodiscard]] const std::vector<Measurement>& rows() const { return rows_; }
    [[nodiscard]] const std::vector<fit::HostRow>& host_rows() const { return host_rows_; }

    /// Fits without each member of the class in turn and predicts its rows. Hosts are anchored by the other rows of the
    /// same (framework, run, gpu); a left-out GPU by its resnet18 rows at batch 1 alone, or by the rows of all models
    /// at batch 1, which are not scored.
    [[nodiscard]] std::vector<Scored> score(LeaveOut leave_out) const;

    /// Fits every framework on all rows; the noise of host and device is that of `left_out`, rows predicted unseen.
    [[nodiscard]] std::vector<fit::FrameworkFit> fit_all(const std::vector<Scored>& left_out) const;

  private:
    [[nodiscard]] Predictor predictor(const Measurement& row, FrameworkProfile profile) const;

    std::vector<Measurement> rows_;
    std::vector<fit::HostRow> host_rows_;  ///< one per row
    LinesByReason left_out_;
    std::map<std::string, std::unique_ptr<Graph>> graphs_;
};

/// One way of leaving rows out, with the rows that it scores.
struct Section {
    std::string title;
    std::vector<Scored> rows;
};

/// Scored rows point to rows of `folds`.
[[nodiscard]] std::vector<Section> score(const Folds& folds);

/// Every scored row with its prediction; then, without a fold, the lines that the first section does not score, and
/// why.
[[nodiscard]] std::string scored_csv(const std::vector<Section>& sections, const Folds& folds);

}  // namespace ftax::folds
