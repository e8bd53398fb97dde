#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/import.hpp"
#include "graphs/onnx/scalar.hpp"

namespace ftax::onnx_import {

/// Converts any text to a name that is valid in shape expressions and command lines.
[[nodiscard]] std::string identifier(std::string_view text);

/// Names the dynamic dimensions of a model's inputs: the file's names, except that the leading dimension of
/// all inputs is `batch` and a sequence length is `seq`.
class DimensionNames {
  public:
    /// Reads all inputs (name and type) at once, since one name is decided by looking at all of them, and applies the
    /// shapes the user gave. Adds guesses to `warnings`. Throws Error{usage} for a shape given to an unknown
    /// input, Error{model} for a negative dimension other than -1 or when two shapes give one symbol different values,
    /// Error{limit} for more symbols than an ExpressionPool supports. `keep_batch` keeps leading dimensions that the
    /// file fixes.
    DimensionNames(const std::vector<std::pair<std::string_view, TypeRecord>>& inputs,
                   const std::vector<InputShape>& given, bool keep_batch, std::vector<std::string>& warnings);

    /// Shape of input `index` in the expressions of `pool`; nullopt if neither file nor user specify it.
    [[nodiscard]] std::optional<Dims> shape(std::size_t index, ExpressionPool& pool) const;
    /// Dimension of an inner tensor as the file declares it; unknown_dim if it uses symbols that no input has.
    [[nodiscard]] Expression declared(const DimRecord& dim, ExpressionPool& pool) const;

    /// Other names of the symbols of `pool`: those of the file.
    [[nodiscard]] std::map<std::string, std::string, std::less<>> other_names(ExpressionPool& pool) const;

  private:
    void name_numbered(const std::vector<std::pair<std::string_view, TypeRecord>>& inputs,
                       std::vector<std::string>& warnings);
    [[nodiscard]] Expression convert(Expression e, const ExpressionPool& from, ExpressionPool& pool) const;

    ExpressionPool file_;                                      ///< expressions in the file's own symbols
    std::size_t input_symbols_ = 0;                            ///< number of symbols of the file's inputs
    std::vector<std::optional<Dims>> shapes_;                  ///< shapes of the inputs, in `file_`
    std::map<std::string, std::string, std::less<>> renamed_;  ///< file's symbol → name or expression shown to the user
    std::map<std::string, std::string, std::less<>> bound_;    ///< file's symbol → value from the user's shapes
    std::map<std::string, std::string, std::less<>> spelled_;  ///< dim_param that is no expression → symbol in `file_`
};

}  // namespace ftax::onnx_import
