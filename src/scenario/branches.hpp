#pragma once

#include <map>
#include <memory>
#include <vector>

#include "ftax/predict.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::scenario {

/// Predicts a model with data-dependent If nodes for both branches of each.
class BranchRange {
  public:
    /// `graph` is the model as loaded, with the longer branch of every If.
    BranchRange(const Graph& graph, const ModelArguments& model, const RunArguments& run);

    /// Determines the cheaper and the more expensive branch of each If, with the others as loaded, and predicts the
    /// model with all cheaper and with all more expensive branches. Widens the interval of `loaded` to cover both.
    /// Returns nullopt if no condition depends on data.
    std::optional<report::LatencyRange> widen(Prediction& loaded, const ShapeBindings& bindings);

  private:
    /// Per undecided If: true if the branch differs from the loaded one.
    using Choice = std::vector<bool>;
    struct Variant {
        explicit Variant(const ModelArguments& model, const RunArguments& run)
            : graph(load_graph(model)), predictor(make_predictor(graph, model, run)) {}
        Graph graph;
        Predictor predictor;  ///< predictor of this graph
    };
    Prediction predict(const Choice& choice, const ShapeBindings& bindings);

    const std::vector<UndecidedBranch> undecided_;
    const ModelArguments& model_;
    const RunArguments& run_;
    std::map<Choice, std::unique_ptr<Variant>> variants_;
};

}  // namespace ftax::scenario
