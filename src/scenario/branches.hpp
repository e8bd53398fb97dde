#pragma once

#include <map>
#include <memory>
#include <vector>

#include "ftax/predict.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::scenario {

/// Predicts a model whose If nodes depend on data under both branches of each.
class BranchRange {
  public:
    /// `graph` is the model as loaded, with the longer branch of every If.
    BranchRange(const Graph& graph, const ModelArguments& model, const RunArguments& run);

    /// Finds for each If the branch that costs less and the one that costs more, the others as loaded, and predicts the
    /// model with all of the one and all of the other. Widens the interval of `loaded` over both.
    /// Returns nullopt when no condition depends on data.
    std::optional<report::LatencyRange> widen(Prediction& loaded, const ShapeBindings& bindings);

  private:
    /// true where the branch is not the loaded one, per undecided If.
    using Choice = std::vector<bool>;
    struct Variant {
        explicit Variant(const ModelArguments& model, const RunArguments& run)
            : graph(load_graph(model)), predictor(make_predictor(graph, model, run)) {}
        Graph graph;
        Predictor predictor;  ///< of this very graph
    };
    Prediction predict(const Choice& choice, const ShapeBindings& bindings);

    const std::vector<UndecidedBranch> undecided_;
    const ModelArguments& model_;
    const RunArguments& run_;
    std::map<Choice, std::unique_ptr<Variant>> variants_;
};

}  // namespace ftax::scenario
