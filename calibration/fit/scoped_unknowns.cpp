#include "calibration/fit/scoped_unknowns.hpp"

#include "src/io/architecture_file.hpp"

namespace ftax::fit {

std::vector<double> values(const LogFit::Block& block) {
    std::vector<double> result;
    for (const Unknown& u : block) result.push_back(u.value);
    return result;
}

LogFit::Block block_of_kin(Architecture wanted, const std::map<Architecture, LogFit::Block>& fitted,
                           const LogFit::Block& declared) {
    for (const Architecture kin : kin_of(wanted)) {
        if (const auto found = fitted.find(kin); found != fitted.end()) return found->second;
    }
    return declared;
}

void hold(LogFit::Block& block, std::span<const ScopedParameter> held, std::string_view device_slug) {
    for (const ScopedParameter& known : held) {
        if (known.scope != ParameterScope::device || known.key != device_slug) continue;
        for (Unknown& u : block) {
            if (u.name != known.parameter.name) continue;
            u.value = known.parameter.value;
            u.fixed = true;
        }
    }
}

}  // namespace ftax::fit
