#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/expression.hpp"

namespace ftax {

/// Returns the symbol if an expression is nothing else; empty for numbers and compound expressions.
[[nodiscard]] std::string bare_symbol(const ExpressionPool& pool, Expression e);

/// Renames the symbols of a file that torch exported. torch does not store the names of dimensions but numbers them
/// (s77): the first dimension of an input is called `batch`, the second of a two-dimensional integer input `seq`, the
/// tokens in a cache of keys or values `past`, another by input and axis, `mask.1`. Symbols no input uses keep numbers.
class SymbolNames {
  public:
    /// Processes one input; `dims` are its sizes as printed in the file.
    void add_input(const std::string& input, const std::vector<std::string>& dims, bool integers);

    /// Keeps a name from being given to a symbol.
    void reserve(const std::string& name) { taken_.insert(name); }

    [[nodiscard]] std::string rename(std::string_view expression) const;

    [[nodiscard]] const std::map<std::string, std::string, std::less<>>& names() const noexcept { return names_; }
    [[nodiscard]] std::vector<std::string> warnings() const;  ///< the names given, in one line

  private:
    void name(const std::string& symbol, const std::string& replacement);

    std::map<std::string, std::string, std::less<>> names_;
    std::set<std::string> taken_;
    std::string called_;  ///< the names given, in order
};

}  // namespace ftax
