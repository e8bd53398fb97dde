#pragma once

#include <string>

namespace ftax::scenario {

/// Finds the model that a row of a measurement file names; returns what load_graph() reads. In this order:
///  1. a path of a file, or of a folder with config.json; "zoo:NAME" as it stands;
///  2. below `folder`: NAME as a file or folder with config.json, NAME.pt2, .onnx, .pt, .pth, .txt, .json; for a name
///  on
///     Hugging Face also without its owner, for one without owner also in any folder of an owner;
///  3. a zoo model, also by the names that public measurements give it.
[[nodiscard]] std::string locate_model(const std::string& folder, const std::string& model);

/// Whether two names of models lead to one.
[[nodiscard]] bool is_same_model(const std::string& folder, const std::string& a, const std::string& b);

}  // namespace ftax::scenario
