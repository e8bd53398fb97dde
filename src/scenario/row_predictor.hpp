#pragma once

#include <array>
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
    /// `models_folder`: where models are files, as locate_model() finds them.
    /// `device_profile_path`: fitted device parameters instead of the built-in ones.
    /// `dims`: values of symbols that rows have no column for.
    explicit RowPredictor(std::string models_folder = {}, std::string device_profile_path = {}, ShapeBindings dims = {})
        : models_folder_(std::move(models_folder)),
          device_profile_path_(std::move(device_profile_path)),
          dims_(std::move(dims)) {}

    /// Predicts one row, on the host and the card that anchor rows describe where there are any; the row itself is left
    /// out of them where its card has at most `most_left_out`.
    /// Throws Error for what the row asks for and ftax does not have: device, framework, model, shape, training.
    [[nodiscard]] Prediction predict(const Measurement& row);

    static constexpr std::size_t most_left_out = 200;

    /// The profiles that predict() has used.
    [[nodiscard]] std::set<report::UsedProfile> profiles() const;

    /// Lists the kernels that a row's forward pass launches.
    [[nodiscard]] std::vector<CountedKernel> kernels(const Measurement& row);

    /// Calibrates hosts and cards by measured rows; to be called before predict(). Returns what the rows leave in
    /// doubt. Rows of one run, or without one, are of one machine. Throws Error{usage} when there is no row.
    std::vector<std::string> anchor(std::span<const Measurement> rows);

    /// What the anchor rows of a card say, for a model of which rows may be among them; null without rows.
    [[nodiscard]] const Conditioned* conditioned(const std::string& device_slug, const std::string& model);

  private:
    /// What a predictor depends on: model, host (with framework and device), precision, channels_last, versions of
    /// cuDNN, TensorRT and the framework, synchronized, copies.
    using Key = std::tuple<std::string, HostKey, Precision, bool, std::array<int, 3>, bool, bool>;

    /// The row with the names that the tables have. Throws Error{usage} for what is not predicted.
    [[nodiscard]] static Measurement predictable(const Measurement& row);
    [[nodiscard]] const Graph& graph(const std::string& model);
    [[nodiscard]] Predictor& predictor(const Measurement& row);
    /// A predictor on the host and card as `known` has them; null: on those of the profiles.
    [[nodiscard]] Predictor build(const Measurement& row, const Conditioned* known);
    struct Anchor {
        Measurement measured;  ///< as the file has it
        AnchorRow row;
    };
    [[nodiscard]] std::optional<Conditioned> conditioned_on(const std::string& device_slug, const std::string& model,
                                                            const Anchor* left_out);
    [[nodiscard]] ShapeBindings bindings_of(const Measurement& row);
    [[nodiscard]] AnchorRow anchor_row_of(const Measurement& row);

    std::string models_folder_;
    std::string device_profile_path_;
    std::map<std::string, Graph> graphs_;
    std::map<Key, Predictor> predictors_;
    ShapeBindings dims_;
    std::map<std::string, std::vector<Anchor>> anchors_;                      ///< by card
    std::map<std::pair<std::string, std::string>, Conditioned> conditioned_;  ///< by card and anchored model
};

/// What anchor rows are read with beside the profiles.
struct AnchorContext {
    std::string model;          ///< the predicted one: rows that name it say what the predictor gets wrong about it
    std::string models_folder;  ///< where the models of rows are files
    ShapeBindings dims;         ///< of symbols that rows have no column for
};

/// Calibrates a card and the host of a framework by the rows that were measured on the card, all on one machine,
/// whatever their run. What the rows leave in doubt, and that none was measured on the card, goes into the warnings of
/// the framework profile. Throws Error{usage} when none of the card's rows can be predicted.
void anchor_on(FrameworkProfile& framework, DeviceProfile& device, std::span<const Measurement> rows,
               const AnchorContext& context);

}  // namespace ftax::scenario
