#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "calibration/fit/framework_fit.hpp"
#include "calibration/fit/scoped_fit.hpp"
#include "calibration/rows/measurement_file.hpp"

/// Scores on rows that a fit has not seen. Each command computes one kind of rows or figures from the files that its
/// arguments name, and returns them as ledger.py reads them; where one of the arguments is a folder of data, the
/// profiles that it fits are written there.
namespace ftax::folds {

using Arguments = std::span<const std::string>;

/// The commands, each described at its code.
using Fold = std::string(Arguments);
Fold frameworks, serving, score_operators, operators, layers, quantized, devices, uncertainty, evidence;

/// Log errors of rows that are summed up together, in the order of the ledger: by fold, class of operators or precision
/// of whole models, dimension and the end of the range that it lies in, and GPU or another group of rows.
using Group = std::tuple<std::string, std::string, std::string, std::int64_t, std::string>;
using LogErrors = std::map<Group, std::vector<double>>;

constexpr std::string_view figures_header = "fold,class,region,gpu,rows,mape,median,p90,bias\n";
/// Lines of figures, errors as fractions.
[[nodiscard]] std::string figures_csv(const LogErrors& errors);
[[nodiscard]] std::string figures_csv(std::span<const fit::FitReport> reports);

/// A line: the cells that name what was scored, then numbers and empty cells.
void append_scored(std::string& text, std::vector<std::string> cells, std::initializer_list<double> numbers,
                   std::size_t empty);

void write_profile(const std::string& data_folder, const std::string& name, const FrameworkProfile& profile);
void print_fit(const fit::FrameworkFit& fitted);

/// A campaign that something else on the machine slowed 2 to 3 × (all CNNs, and transformers at small batches): no
/// score and no fit counts its rows of eager PyTorch.
inline constexpr std::string_view unsound_gpu = "A100";
inline constexpr std::string_view unsound_run = "2022_1025_pretrained-fp32@2022-10-26";

}  // namespace ftax::folds
