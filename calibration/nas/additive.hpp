#pragma once

#include "calibration/nas/columns.hpp"

namespace ftax::nas_study {

/// How well the rows of a column rank each other: Spearman's correlation, on every fourth row, of a model that adds up
/// one number for each option of each choice and is fitted to the logarithms of the other rows. No device or operator
/// is modelled; what such a model cannot rank with so many samples is mostly the noise of the measurements.
[[nodiscard]] double additive_spearman(const Column& column);

}  // namespace ftax::nas_study
