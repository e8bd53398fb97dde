#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "ftax/anchor.hpp"
#include "ftax/graph.hpp"
#include "ftax/measurement.hpp"
#include "ftax/predict.hpp"
#include "predictors/lowering/kernel_list.hpp"
#include "src/report/validation_report.hpp"

namespace ftax::scenario {

/// Predicts rows of model measurement files. Graphs and predictors are kept, so that thousands of rows of a few models
/// cost little more than the predictions themselves.
class RowPredictor {
  public:
    /// `models_folder`: where models are files (NAME.pt2, .onnx, .pt, .txt); other names are zoo models.
    /// `device_profile_path`: fitted device parameters instead of the built-in ones.
    explicit RowPredictor(std::string models_folder = {}, std::string device_profile_path = {})
        : models_folder_(std::move(models_folder)), device_profile_path_(std::move(device_profile_path)) {}

    /// Predicts one row, on the host its anchor rows describe where there are any.
    /// Throws Error for what the row asks for and ftax does not have: device, framework, model, shape, training.
    [[nodiscard]] Prediction predict(const Measurement& row);

    /// The profiles that predict() has used.
    [[nodiscard]] std::set<report::UsedProfile> profiles() const;

    /// Pairs a measured row with its prediction on a host that nobody has measured. Throws what predict() throws.
    [[nodiscard]] AnchorRow anchor_row_of(const Measurement& row);
    /// Lists the kernels that a row's forward pass launches.
    [[nodiscard]] std::vector<CountedKernel> kernels(const Measurement& row);

    /// Calibrates hosts from measured rows; to be called before predict(). Returns what the rows leave in doubt.
    /// Throws Error{usage} when there is no row.
    std::vector<std::string> anchor(std::span<const Measurement> rows);

  private:
    /// What a predictor depends on: model, host (with framework and device), precision, channels_last, versions of
    /// cuDNN and TensorRT, synchronized.
    using Key = std::tuple<std::string, HostKey, Precision, bool, std::pair<int, int>, bool>;

    /// The row with the names that the tables have. Throws Error{usage} for what is not predicted.
    [[nodiscard]] static Measurement predictable(const Measurement& row);
    [[nodiscard]] const Graph& graph(const std::string& model);
    [[nodiscard]] Predictor& predictor(const Measurement& row);
    [[nodiscard]] const HostScalars* host_of(const Measurement& row) const;

    std::string models_folder_;
    std::string device_profile_path_;
    std::map<std::string, Graph> graphs_;
    std::map<Key, Predictor> predictors_;
    std::map<HostKey, HostScalars> hosts_;
};

/// Calibrates the host of a profile on the rows that were measured with its framework on one device, whatever their
/// run. Throws Error{usage} when there is no such row.
[[nodiscard]] FrameworkProfile anchored_on(FrameworkProfile profile, const std::string& device_slug,
                                           std::span<const Measurement> rows);

}  // namespace ftax::scenario
