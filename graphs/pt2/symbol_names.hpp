#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ftax {

/// Renames the symbols of a torch.export file for users. torch does not store the names of dimensions but numbers them
/// (s77): the first dimension of an input is called `batch`, the second of a two-dimensional integer input `seq`, the
/// tokens in a cache of keys or values `past`, any other one by input and axis, `mask.1`. Symbols not used by inputs
/// keep their number.
class SymbolNames {
  public:
    /// Processes one input; `dims` are its sizes as printed in the file.
    void add_input(const std::string& input, const std::vector<std::string>& dims, bool integers);

    /// Replaces the symbols in an expression.
    [[nodiscard]] std::string rename(std::string_view expression) const;

    [[nodiscard]] std::vector<std::string>& warnings() noexcept { return warnings_; }

  private:
    void name(const std::string& symbol, const std::string& replacement, const std::string& where);

    std::map<std::string, std::string, std::less<>> names_;
    std::vector<std::string> warnings_;
};

}  // namespace ftax
