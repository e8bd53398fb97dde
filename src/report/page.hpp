#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ftax::report {

enum class CellKind : std::uint8_t { number, text, bars };

/// A column of a table on a page. `key` is what --json calls its values; empty where it has none.
struct PageColumn {
    std::string title;
    std::string key{};
    CellKind kind = CellKind::number;
};

/// A table on a page that sorts by a click on a heading. Cells are added from left to right.
class PageTable {
  public:
    PageTable(std::string_view id, const std::vector<PageColumn>& columns);

    void row();
    void text(std::string_view shown);
    /// Shows a rounded quantity and keeps the exact one, in the units of --json, for sorting and for programs.
    void number(double value, std::string_view shown);
    void empty();
    void batch(std::optional<std::int64_t> batch);  ///< nullopt where the model fixes it
    /// Bars one below the other, each as long as its share (0 to 1); sorts by the first.
    void bars(const std::vector<std::pair<std::string_view, double>>& look_and_share);

    [[nodiscard]] std::string html() const;

  private:
    std::string html_;
};

/// Warnings as a list; nothing without any.
[[nodiscard]] std::string warning_list(const std::vector<std::string>& warnings);

/// A heading with what stands below it.
[[nodiscard]] std::string section(std::string_view title, std::string_view markup);

/// What a reader opens to see; closed on paper.
[[nodiscard]] std::string folded(std::string_view title, std::string_view markup);

/// One self-contained HTML page: the stylesheet for screen (light and dark, wide and narrow) and paper, the script of
/// tables and charts with that of this page behind it, and nothing from elsewhere.
[[nodiscard]] std::string page(std::string_view title, std::string_view markup, std::string_view script = "");

}  // namespace ftax::report
