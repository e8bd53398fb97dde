#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/architecture.hpp"
#include "ftax/device.hpp"
#include "ftax/factors.hpp"
#include "ftax/framework.hpp"
#include "ftax/parameter.hpp"
#include "ftax/predict.hpp"

namespace ftax {

struct ScopedParameter {
    Parameter parameter;
    ParameterScope scope = ParameterScope::shared;
    std::string key;  ///< architecture or device slug; empty if shared; for a host, the card in its machine
};

/// A parameter of a built-in profile, whose text lacks it: a constant of the program (cmake/embed.cmake), not checked.
struct BuiltInParameter {
    std::string_view file, name;
    double value, relative_stddev;
    std::string_view source;
    ParameterScope scope;
    std::string_view key;
};

struct PartlyFittedDevice {
    std::string slug;
    FactorSet kernels{};
};

/// Content of a device profile file: the fitted parameters of the kernel models for any number of devices.
struct DeviceProfileFile {
    std::string version;
    std::vector<std::string> fitted_on;  ///< slugs of devices with fitted forward passes or eager operators
    std::vector<PartlyFittedDevice> partly_fitted_on;  ///< devices with timed kernels only; sorted by slug
    std::vector<ScopedParameter> parameters;           ///< sorted by name, then scope, then key; each once
};

/// Content of a host profile file: costs of single calls of one framework version on any number of machines.
struct HostProfileFile {
    std::string framework, version;
    std::vector<ScopedParameter> parameters;  ///< shared or of a machine; sorted by name, scope, key; each once
};

/// Parse profile files (format: data/profiles/README.md). `origin` names the text in errors.
/// Throws Error{profile} with the path to the field: non-positive values, missing, unsorted or duplicate parameters, or
/// a schema newer than this program; older ones are migrated in memory.
[[nodiscard]] DeviceProfileFile parse_device_profile(std::string_view text, const std::string& origin,
                                                     std::span<const BuiltInParameter> built_in = {});
[[nodiscard]] FrameworkProfile parse_framework_profile(std::string_view text, const std::string& origin,
                                                       std::span<const BuiltInParameter> built_in = {});
[[nodiscard]] HostProfileFile parse_host_profile(std::string_view text, const std::string& origin);

/// Print profile files in the format of the functions above, with sorted parameters.
[[nodiscard]] std::string to_text(DeviceProfileFile profile);
[[nodiscard]] std::string to_text(FrameworkProfile profile);
[[nodiscard]] std::string to_text(HostProfileFile profile);

/// Returns the fitted parameters of all devices: the built-in ones, or those of the folder FTAX_DATA.
[[nodiscard]] const DeviceProfileFile& embedded_device_profile();

/// Finds a parameter of an architecture, or of the nearest one whose kernels it runs; null if there is none.
[[nodiscard]] const ScopedParameter* find_architecture_parameter(const DeviceProfileFile& profile,
                                                                 std::string_view name, Architecture architecture);

/// Selects the parameters for `device`: for each, the value of the device, else of its architecture, else of the
/// nearest architecture whose kernels it runs, else the shared one. If no row of this device or its architecture
/// influenced a value, its source says "inherited from ampere" or "shared" instead of "fitted". Adds a warning if the
/// profile has no measurements of this device, or only of some kernel classes.
[[nodiscard]] DeviceProfile compose(const DeviceProfileFile& profile, const DeviceSpec& device);

/// Selects the parameters for the machine of a card: for each, the machine's value, else the shared one.
[[nodiscard]] FrameworkProfile compose(const HostProfileFile& profile, std::string_view device_slug);

/// Errors of the kernel models per kernel class, as standard deviations of a log-factor
/// (data/profiles/uncertainty.json; estimated by `ftax_folds uncertainty` from left-out rows).
struct VarianceComponents {
    std::array<double, factor_count> of{};
    std::string source;
};

/// Throws Error{profile} naming the path to the field: missing, unknown or duplicate factors, negative spreads.
[[nodiscard]] VarianceComponents parse_variance_components(std::string_view text, const std::string& origin);
[[nodiscard]] std::string to_text(const VarianceComponents& components);

/// Returns the prior of a card's factors: zero mean, i.e. the parameters are unbiased.
[[nodiscard]] DeviceFactors prior_factors(const VarianceComponents& components);

/// Reads the embedded file data/architectures/NAME.json. A file `inherits` missing fields from another one, and its
/// `chips` override the generation for one compute capability (both by RFC 7386 JSON merge). A CPU has an empty
/// specification.
/// Throws Error{profile} naming file and field.
[[nodiscard]] ArchitectureSpec read_architecture(Architecture architecture, int compute_capability_major,
                                                 int compute_capability_minor);

/// Returns the architectures whose fitted values are used for one without its own, nearest first.
[[nodiscard]] std::span<const Architecture> kin_of(Architecture architecture);

/// A measured version of a framework (data/stacks): its libraries and host costs.
struct Stack {
    std::vector<std::string> frameworks;  ///< all modes of a framework with equal host costs
    int version = 0;                      ///< see version_number()
    LibraryVersions libraries;            ///< libraries determined by the version; others keep their defaults
    double scale_log_stddev = 0;          ///< spread of host scales, or its increase by the ratios
    double model_log_stddev = 0;          ///< increase of the noise between models by the ratios
    std::string reference_cpu;            ///< see FrameworkProfile
    std::vector<HostGroup> groups;        ///< of measured machines
    std::vector<Parameter> costs;         ///< values of profile parameters, sorted by name
    std::vector<Parameter> ratios;        ///< factors on parameters of the framework's fitted profile, sorted by name
};

/// Parses a file of data/stacks.
/// Throws Error{profile} naming the path to the field: missing version, unknown library, non-positive cost.
[[nodiscard]] Stack parse_stack(std::string_view text, const std::string& origin);

/// Replaces the profile's costs by those of a stack. `relative_scale`: its host scale relative to the reference host's.
[[nodiscard]] FrameworkProfile on_stack(FrameworkProfile profile, const Stack& stack, double relative_scale = 1);

/// Returns the framework that launches the same kernels, one by one: of a CUDA graph and of LibTorch.
[[nodiscard]] std::string_view kernels_of(std::string_view framework) noexcept;

}  // namespace ftax
