#include "src/scenario/branches.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ftax::scenario {
namespace {

constexpr std::size_t most_branches = 16;  ///< each needs a separate import

std::vector<UndecidedBranch> first_branches(std::vector<UndecidedBranch> undecided) {
    if (undecided.size() > most_branches) {
        print_warnings({fmt::format("{} conditions depend on data; the range covers the branches of the first {}",
                                    undecided.size(), most_branches)});
        undecided.resize(most_branches);
    }
    return undecided;
}

}  // namespace

BranchRange::BranchRange(const Graph& graph, const ModelArguments& model, const RunArguments& run)
    : undecided_(first_branches(graph.undecided)), model_(model), run_(run) {}

Prediction BranchRange::predict(const Choice& choice, const ShapeBindings& bindings) {
    std::unique_ptr<Variant>& variant = variants_[choice];
    if (!variant) {
        ModelArguments arguments = model_;
        for (std::size_t i = 0; i < choice.size(); ++i) {
            const bool then = undecided_[i].then_taken != choice[i];
            arguments.limits.branches[undecided_[i].name] = then;  // an If within a branch that is not taken is not met
        }
        variant = std::make_unique<Variant>(arguments, run_);
    }
    return variant->predictor.predict(bindings);
}

std::optional<report::LatencyRange> BranchRange::widen(Prediction& loaded, const ShapeBindings& bindings) {
    if (undecided_.empty()) return std::nullopt;
    Choice shortest(undecided_.size()), longest(undecided_.size());
    for (std::size_t i = 0; i < undecided_.size(); ++i) {
        Choice flipped(undecided_.size());
        flipped[i] = true;
        const double latency_s = predict(flipped, bindings).latency_s;
        shortest[i] = latency_s < loaded.latency_s;
        longest[i] = latency_s > loaded.latency_s;
    }
    const Prediction low = predict(shortest, bindings), high = predict(longest, bindings);
    loaded.low_s = std::min(low.low_s, loaded.low_s);
    loaded.high_s = std::max(high.high_s, loaded.high_s);
    return report::LatencyRange{low.latency_s, high.latency_s};
}

}  // namespace ftax::scenario
