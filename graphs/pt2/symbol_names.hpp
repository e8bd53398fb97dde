#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ftax {

/// Gives the symbols of a torch.export file names that a user can write. torch forgets the names of its dimensions and
/// numbers them (s77): the first dimension of an input is called `batch`, the second of a two-dimensional integer input
/// `seq`, that of the tokens in a cache of keys or values `past`, any other one by input and place, `mask.1`. Symbols
/// of no input keep their number.
class SymbolNames {
  public:
    /// Looks at one input; `dims` are its sizes as the file prints them.
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
