#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/fit/framework_fit.hpp"
#include "calibration/fit/model_fit.hpp"
#include "calibration/fit/operator_fit.hpp"
#include "calibration/fit/scoped_fit.hpp"
#include "ftax/factors.hpp"
#include "ftax/framework.hpp"
#include "ftax/graph.hpp"
#include "ftax/measurement.hpp"
#include "src/io/csv.hpp"
#include "src/io/measurement_file.hpp"
#include "src/io/profile_file.hpp"
#include "src/io/uncertainty_file.hpp"

/// Scores on rows that a fit has not seen, as ledger.py reads them.
namespace ftax::folds {

/// Errors of one class of rows in one fold.
struct Figures {
    std::string fold;
    std::string op_class;      ///< class of operators, or precision of whole models
    std::string region;        ///< one dimension and the range it lies in, as "512 < k <= 4096"; empty: all shapes
    fit::ErrorSummary of_gpu;  ///< of a GPU, or of another group of rows
};

/// Log errors of rows that are summed up together, in the order of the ledger.
struct Group {
    std::string fold, op_class, dimension{};
    std::int64_t high = 0;  ///< end of the range that the dimension lies in
    std::string of{};       ///< a GPU, or another group of rows
    auto operator<=>(const Group&) const = default;
};
using LogErrors = std::map<Group, std::vector<double>>;
void append_figures(LogErrors errors, std::vector<Figures>& figures);

/// fold,class,region,gpu,rows,mape,median,p90,bias, below a header where wanted; errors as fractions.
[[nodiscard]] std::string figures_csv(std::span<const Figures> figures, bool has_header = true);

/// Predicts every row as `ftax validate` does, with the built-in device and host profiles: all rows, those under usual
/// conditions, these by region of shapes, and each kind of the others.
[[nodiscard]] std::vector<Figures> validate(std::span<const fit::OperatorRow> rows);

/// The folds of fits of operators.
[[nodiscard]] std::vector<Figures> folds_of(std::span<const fit::FitReport> reports);

/// Fits the kernels of language models' layers, then refits without a fifth of the shapes and without each GPU: its
/// matrix products are left out with it, from which the others take bandwidths, rates and energy. What rows do not tell
/// comes from `profile`.
[[nodiscard]] std::vector<fit::FitReport> fit_layers(std::span<const fit::OperatorRow> rows,
                                                     const DeviceProfileFile& profile);

/// Error of one row that the fit has not seen.
struct Residual {
    std::string card;
    std::string model;                         ///< rows of one are averaged: they share what is wrong about it
    std::array<double, factor_count> share{};  ///< of its device time by class of kernels; that of the card is 1
    double log_error = 0;                      ///< log(measured / predicted)
};

/// Standard deviations of the log-factors of the classes between cards: log_error = Σ share · factor(card) + noise.
/// Source: empirical Bayes by expectation maximisation; Dempster, Laird and Rubin, J. Royal Stat. Soc. B 39 (1977),
/// section 4.5. Classes that few cards tell about stay near the prior guess of 0.15.
[[nodiscard]] std::array<double, factor_count> class_spreads(std::span<const Residual> rows);

// Scores the kernel models on whole forward passes that the device decides.

/// Predicts every row with the built-in device profile.
[[nodiscard]] std::vector<Figures> validate_devices(std::span<const fit::ModelRow> rows);

/// Refits the profile from `start` (a fit of operators) without each model, then without each device; a device left out
/// is predicted from its datasheet, then with its clocks fitted to the longest resnet50 row of each precision, which is
/// not scored.
[[nodiscard]] std::vector<Figures> device_folds(std::span<const fit::ModelRow> rows, const DeviceProfileFile& start);

/// Estimates how far the device factors of cards spread from rows whose model, card or generation a refit has not seen.
[[nodiscard]] VarianceComponents variance_components(std::span<const fit::ModelRow> rows,
                                                     const DeviceProfileFile& start);

/// One run as predicted without the rows of its model.
struct ScoredRun {
    LanguageMeasurement row;
    double predicted_s = 0;
    double low_s = 0, high_s = 0;  ///< 90 % interval
    bool waits = false;            ///< the batch does not fit at once: sequences wait for others
};

struct ServingScore {
    std::vector<ScoredRun> runs;
    /// The same with one run of the model as an anchor, that which is measured fastest: batch 1, the fewest tokens.
    /// That run itself is left out.
    std::vector<ScoredRun> anchored;
    std::vector<FrameworkProfile> profiles;  ///< fitted on all rows, with the noise of the runs left out
};

/// Fits the hosts of the frameworks that serve language models, each model left out in turn, then on all rows.
/// Rows of a framework at batch 1 only do not tell its two host costs apart: they are predicted with start values. Rows
/// of other frameworks and models are passed over.
[[nodiscard]] ServingScore score_serving(const std::vector<LanguageMeasurement>& rows, const std::string& source);

/// The runs of both folds as rows, and in the fold "costs" what was fitted for each framework: host_s of a pass,
/// device_s of a sequence.
[[nodiscard]] std::string serving_csv(const ServingScore& score);

// Scores the framework models on rows of models, families and GPUs that the fit has not seen.

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

/// Composes one profile per GPU of framework_tax.csv, the machine of the run with the median scale among those that
/// were measured with it: what `--host framework-tax-v100` names. The host differs by a factor of 2 between machines,
/// and users know theirs by its GPU.
[[nodiscard]] std::vector<FrameworkProfile> host_profiles(const fit::FrameworkFit& fitted);

}  // namespace ftax::folds
