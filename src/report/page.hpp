#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ftax::report {

/// Warnings as a list; nothing without any.
[[nodiscard]] std::string warning_list(const std::vector<std::string>& warnings);

/// A heading with what stands below it.
[[nodiscard]] std::string section(std::string_view title, std::string_view markup);

/// What a reader opens to see; closed on paper.
[[nodiscard]] std::string folded(std::string_view title, std::string_view markup);

/// One self-contained HTML page: the stylesheet for screen (light and dark, wide and narrow) and paper, the script of
/// tables and charts with that of this page behind it, and nothing from elsewhere.
[[nodiscard]] std::string page(std::string_view title, std::string_view markup, std::string_view script = "");

/// JSON as a script of a page may hold it.
[[nodiscard]] std::string script_text(const std::string& json);

/// Makes text safe inside HTML and SVG; control characters become visible escapes.
[[nodiscard]] std::string escape_markup(std::string_view text);

}  // namespace ftax::report
