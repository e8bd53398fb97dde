#pragma once

#include <string>

#include "tests/fuzz/generated_graph.hpp"

namespace ftax::fuzz {

/// An ONNX file of a few nodes that any bytes stand for: each an operator of the importer's table with any inputs,
/// shapes, constants and attributes, whether or not they make sense.
[[nodiscard]] std::string generate_onnx(Choices& choices);

}  // namespace ftax::fuzz
