#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "calibration/fit/scoped_fit.hpp"
#include "src/io/profile_file.hpp"

namespace ftax::fit {

/// Turn fitted parameters into profiles: those of the kernels into that of the devices, those of the calls into that of
/// the hosts that the devices were measured in. Where two reports hold the same parameter the earlier one counts: pass
/// first the fit whose rows determine it best.
[[nodiscard]] DeviceProfileFile operator_profile(std::span<const FitReport> reports, std::string version);
[[nodiscard]] HostProfileFile call_profile(std::span<const FitReport> reports, std::string framework,
                                           std::string version);

/// What these fits found for a host parameter of a device's machine, of all machines where `slug` is empty.
[[nodiscard]] std::optional<double> host_value(std::span<const FitReport> reports, std::string_view name,
                                               const std::string& slug);
/// Scale of a device's host (operator.host_scale); 1 where no fit found it.
[[nodiscard]] double host_scale(std::span<const FitReport> reports, const std::string& slug);

/// Records devices with their own parameters among those that the profile was fitted on.
void add_fitted_devices(DeviceProfileFile& profile);

/// Writes fitted parameters into a profile, in the place of those of the same name and scope.
void replace_parameters(DeviceProfileFile& profile, std::span<const ScopedParameter> fitted);

/// Records that kernels of a class were measured on a device, which may have no other data in the profile.
void add_fitted_kernels(DeviceProfileFile& profile, const std::string& slug, Factor kernels);

}  // namespace ftax::fit
