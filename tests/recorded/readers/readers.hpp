#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ftax/graph.hpp"
#include "ftax/import.hpp"

/// Readers of files for recorded tables: what each reads, as a text.
namespace ftax::test {

[[nodiscard]] std::string described(const Graph& graph);
[[nodiscard]] ImportOptions import_options(const std::string& text);  ///< of the words "tp2", "paged" and "static"
[[nodiscard]] ImportOptions small_limits();
[[nodiscard]] std::string measured(const std::string& text);  ///< rows of a table of measurements

/// By name: "config", "device", "stack", ...
[[nodiscard]] const std::map<std::string, std::function<std::string(const std::string&)>>& readers();

/// A configuration of a family of language models.
[[nodiscard]] nlohmann::ordered_json family_document(const std::string& model_type);

/// Of what a reader gives, or of how it refuses.
[[nodiscard]] std::string digest(const std::function<std::string()>& read_it);

/// Other values for a field.
[[nodiscard]] std::vector<nlohmann::ordered_json> other_values(const nlohmann::ordered_json& value);

/// The places of a document, but for all entries of a list after the second.
void places_of(const nlohmann::ordered_json& value, const nlohmann::ordered_json::json_pointer& at,
               std::vector<nlohmann::ordered_json::json_pointer>& places);

/// The lines of a file of the repository; and the cells of one of a table without quotes.
[[nodiscard]] const std::vector<std::string>& lines_of(const std::string& path);
[[nodiscard]] std::vector<std::string> split(const std::string& line, char separator = ',');

}  // namespace ftax::test
