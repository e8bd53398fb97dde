#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ftax/predict.hpp"
#include "tests/fuzz/generated_graph.hpp"

/// Readers of untrusted bytes, as functions that libFuzzer can drive. Each returns normally for whatever bytes it gets:
/// an Error is a valid outcome, and its message is returned; a crash, a hang, another exception or a failed check is a
/// finding.
namespace ftax::fuzz {

struct Target {
    std::string_view name;  ///< also the folder of its crashes in tests/fuzz/crashes
    std::string (*run)(std::string_view bytes);
};

[[nodiscard]] std::span<const Target> targets();

/// What the target generated_graph predicts.
struct PredictedGraph {
    const DeviceProfile* device = nullptr;
    const FrameworkProfile* framework = nullptr;
    PredictOptions options;
    ShapeBindings sizes;
    Graph graph;
};
[[nodiscard]] PredictedGraph generate_prediction(Choices& choices);

}  // namespace ftax::fuzz
