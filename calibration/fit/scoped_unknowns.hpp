#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/fit/log_fit.hpp"
#include "src/io/profile_file.hpp"

namespace ftax::fit {

/// Unknowns of a fit to operators of several devices, by what they belong to.
struct ScopedUnknowns {
    LogFit::Block shared{};
    std::map<Architecture, LogFit::Block> architectures{};
    std::map<std::string, LogFit::Block> devices{};  ///< by slug
    std::map<std::string, LogFit::Block> hosts{};    ///< of the machine that the device was measured in
};

/// Values of a block, in its order: what the models take.
[[nodiscard]] std::vector<double> values(const LogFit::Block& block);

/// Expects of an architecture without rows what its nearest kin has, as `compose` does, or else what is `declared`.
[[nodiscard]] LogFit::Block block_of_kin(Architecture wanted, const std::map<Architecture, LogFit::Block>& fitted,
                                         const LogFit::Block& declared);

/// Fixes the unknowns of a device that other rows determine better.
void hold(LogFit::Block& block, std::span<const ScopedParameter> held, std::string_view device_slug);

}  // namespace ftax::fit
