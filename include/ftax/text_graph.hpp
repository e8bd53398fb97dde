#pragma once

#include <string>
#include <string_view>

#include "ftax/graph.hpp"

namespace ftax {

/// Parses a graph in ftax's text format, with one statement per line: docs/formats.md. `origin` names the text in
/// errors (a file path). Throws Error{model} with line and column, and Error{limit}.
[[nodiscard]] Graph parse_text_graph(std::string_view text, std::string_view origin = "text graph");

/// Prints a graph in the format of parse_text_graph(); parsing the text gives an equal graph.
[[nodiscard]] std::string to_text(const Graph& graph);

}  // namespace ftax
