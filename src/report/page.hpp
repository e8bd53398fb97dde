#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ftax::report {

/// Returns warnings as a list, each once; empty without warnings.
[[nodiscard]] std::string warning_list(const std::vector<std::string>& warnings);

/// The answer in one line; empty without one.
[[nodiscard]] std::string verdict_line(std::string_view text);

[[nodiscard]] std::string section(std::string_view title, std::string_view markup);

/// A collapsible section; collapsed in print.
[[nodiscard]] std::string folded(std::string_view title, std::string_view markup);

/// One self-contained HTML page: the stylesheet for screen (light and dark, wide and narrow) and paper, the script of
/// the page, which may fill tables, followed by that of tables and charts, and no external resources.
[[nodiscard]] std::string page(std::string_view title, std::string_view markup, std::string_view script = "");

/// Returns JSON that is safe inside a script element.
[[nodiscard]] std::string script_text(const std::string& json);

/// Makes text safe inside HTML and SVG; control characters become visible escapes.
[[nodiscard]] std::string escape_markup(std::string_view text);

}  // namespace ftax::report
