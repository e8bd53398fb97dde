#include "calibration/crossvalidation/host_profiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "ftax/anchor.hpp"
#include "ftax/device.hpp"
#include "predictors/host/host_costs.hpp"

namespace ftax::folds {

std::vector<FrameworkProfile> host_profiles(const fit::FrameworkFit& fitted) {
    using Run = std::pair<std::string, fit::FrameworkFit::Host>;
    std::map<std::string, std::vector<Run>> machines;
    for (const auto& [name, host] : fitted.hosts) {  // "framework|gpu|run"
        const std::size_t gpu = name.find('|') + 1;
        const std::size_t run = name.find('|', gpu) + 1;
        machines[name.substr(gpu, run - 1 - gpu)].emplace_back(name.substr(run), host);
    }
    const std::string_view call = second_scalar(model_of(fitted.reference));
    std::vector<FrameworkProfile> profiles;
    for (auto& [gpu, runs] : machines) {
        std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.second.scale < b.second.scale; });
        const auto& [run, host] = runs[(runs.size() - 1) / 2];
        FrameworkProfile profile = anchored(
            fitted.reference,
            HostScalars{.scale = host.scale, .scale_relative_stddev = 0.05, .call_s = host.call_s, .call = call});
        profile.host = "framework-tax-" + device_spec(gpu).slug;
        for (Parameter& p : profile.parameters) {
            if (p.name == "host.scale" || p.name == call) {
                p.source = fmt::format("fitted: framework_tax.csv {}, run {}", fitted.reference.framework, run);
            }
        }
        profiles.push_back(std::move(profile));
    }
    return profiles;
}

}  // namespace ftax::folds
