#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ftax/device.hpp"
#include "ftax/framework.hpp"
#include "ftax/parameter.hpp"

namespace ftax {

/// A parameter of the kernel models and how far its value reaches.
struct ScopedParameter {
    Parameter parameter;
    ParameterScope scope = ParameterScope::shared;
    std::string key;  ///< architecture or device slug; empty when shared; of a host, the card that the machine holds
};

/// A device of which some classes of kernels alone were measured.
struct PartlyFittedDevice {
    std::string slug;
    FactorSet kernels{};
};

/// Content of a device profile file: the fitted parameters of the kernel models for any number of devices.
struct DeviceProfileFile {
    std::string version;
    std::vector<std::string> fitted_on;  ///< slugs of the devices whose forward passes or eager operators went in
    std::vector<PartlyFittedDevice> partly_fitted_on;  ///< whose kernels were timed alone; sorted by slug
    std::vector<ScopedParameter> parameters;           ///< sorted by name, then scope, then key; each once
};

/// Content of a host profile file: what single calls of one framework version cost the CPUs of any number of machines.
struct HostProfileFile {
    std::string framework, version;
    std::vector<ScopedParameter> parameters;  ///< shared or of a machine; sorted by name, scope, key; each once
};

/// Parse profile files (format: data/profiles/README.md). `origin` names the text in errors.
/// Throws Error{profile} with the path to the field: a value that is not positive, none at all, out of order, twice,
/// or a schema newer than this program; an older one is migrated in memory.
[[nodiscard]] DeviceProfileFile parse_device_profile(std::string_view text, const std::string& origin);
[[nodiscard]] FrameworkProfile parse_framework_profile(std::string_view text, const std::string& origin);
[[nodiscard]] HostProfileFile parse_host_profile(std::string_view text, const std::string& origin);

/// The classes of kernels of `device` whose measurements went into the profile.
[[nodiscard]] FactorSet fitted_kernels(const DeviceProfileFile& profile, const DeviceSpec& device);

/// Print profile files so that the functions above read them back; parameters are put in order.
[[nodiscard]] std::string to_text(DeviceProfileFile profile);
[[nodiscard]] std::string to_text(FrameworkProfile profile);
[[nodiscard]] std::string to_text(HostProfileFile profile);

/// The fitted parameters of all devices: the built-in ones, or those of the folder that the environment names as
/// FTAX_DATA.
[[nodiscard]] const DeviceProfileFile& embedded_device_profile();

/// Finds a parameter of an architecture, or of the nearest one whose kernels it runs; null when there is none.
[[nodiscard]] const ScopedParameter* find_architecture_parameter(const DeviceProfileFile& profile,
                                                                 std::string_view name, Architecture architecture);

/// Picks what holds for `device`: for each parameter the device's own value, else its architecture's, else that of the
/// nearest architecture whose kernels it runs, else the shared. The source of a value that no row of this device or of
/// its architecture moved says "inherited from ampere" or "shared" where the file says "fitted".
/// Adds a warning when no measurement of this device went into the profile, or only such of some classes of kernels.
[[nodiscard]] DeviceProfile compose(const DeviceProfileFile& profile, const DeviceSpec& device);

/// Picks what holds for the machine that holds a card: for each parameter the machine's own value, else the shared.
[[nodiscard]] FrameworkProfile compose(const HostProfileFile& profile, std::string_view device_slug);

}  // namespace ftax
