#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "ftax/device.hpp"
#include "ftax/parameter.hpp"

/// Tables generated from data/ by generate.cpp at build time, so that predictions need not parse it.
namespace ftax::embedded {

struct ParameterRow {
    std::string_view name;
    double value = 0, relative_stddev = 0;
    std::string_view source;
    ParameterScope scope = ParameterScope::shared;  ///< scope of a device's parameter
    std::string_view key{};
};

struct PartlyFittedRow {
    std::string_view device;
    FactorSet kernels;
};

struct DeviceProfileTable {
    std::string_view version;
    std::span<const std::string_view> fitted_on;
    std::span<const PartlyFittedRow> partly_fitted_on;
    std::span<const ParameterRow> parameters;
};

struct FrameworkProfileTable {
    std::string_view framework, version, host;
    std::span<const ParameterRow> parameters;
};

extern const DeviceProfileTable device_profile;
extern const std::span<const FrameworkProfileTable> framework_profiles;  ///< in the order of their files' names
[[nodiscard]] std::vector<DeviceSpec> datasheets();                      ///< sorted by slug

}  // namespace ftax::embedded
