#pragma once

#include <string>
#include <string_view>

#include "ftax/graph.hpp"
#include "ftax/import.hpp"

namespace ftax {

/// Builds the graph of a model from the text of its config.json, as Hugging Face's transformers describe models.
/// `origin` names the file in messages, `name` the graph; decoders keep keys and values and are cut into one
/// card's part as `options` say. Throws Error{model} naming file and field, Error{limit} for too many layers.
[[nodiscard]] Graph import_config(std::string_view text, const std::string& origin, const std::string& name,
                                  const ImportOptions& options = {});

/// Returns the hub name of the model of a config.json (`_name_or_path`); empty if missing.
[[nodiscard]] std::string hub_name(std::string_view text, const std::string& origin);

}  // namespace ftax
