#pragma once

#include <span>

#include "calibration/fit/framework_fit.hpp"
#include "calibration/nas/columns.hpp"

namespace ftax::nas_study {

/// Fits the host costs that the columns share, one scale per column: FBNet's networks cost 1.4 times what the others'
/// do per operation on either GPU, and batch 32 on one of them 1.2 times what batch 1 does. `left_out` names a device
/// whose columns are not used ("" for none). Throws Error{usage} when nothing is left.
[[nodiscard]] fit::FrameworkFit fit_host_costs(std::span<const Column> columns, std::string_view left_out);

}  // namespace ftax::nas_study
