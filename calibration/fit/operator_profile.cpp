#include "calibration/fit/operator_profile.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "predictors/host/operator_host.hpp"

namespace ftax::fit {
namespace {

auto key_of(const ScopedParameter& p) {
    return std::tie(p.parameter.name, p.scope, p.key);
}

}  // namespace

DeviceProfileFile operator_profile(std::span<const FitReport> reports, std::string version) {
    DeviceProfileFile profile;
    profile.version = std::move(version);
    const auto add = [&](const ScopedParameter& p) {
        const auto is_same = [&](const ScopedParameter& other) { return key_of(other) == key_of(p); };
        if (std::any_of(profile.parameters.begin(), profile.parameters.end(), is_same)) return;
        profile.parameters.push_back(p);
        const bool new_device =
            p.scope == ParameterScope::device &&
            std::find(profile.fitted_on.begin(), profile.fitted_on.end(), p.key) == profile.fitted_on.end();
        if (new_device) profile.fitted_on.push_back(p.key);
    };
    for (const FitReport& report : reports) {
        for (const ScopedParameter& p : report.parameters) add(p);
        for (const ScopedParameter& p : report.nuisance) {
            if (p.parameter.name.starts_with(operator_prefix)) add(p);
        }
    }
    std::sort(profile.parameters.begin(), profile.parameters.end(),
              [](const ScopedParameter& a, const ScopedParameter& b) { return key_of(a) < key_of(b); });
    std::sort(profile.fitted_on.begin(), profile.fitted_on.end());
    return profile;
}

}  // namespace ftax::fit
