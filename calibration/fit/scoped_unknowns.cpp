#include "calibration/fit/scoped_unknowns.hpp"

namespace ftax::fit {

std::vector<double> values(const LogFit::Block& block) {
    std::vector<double> result;
    for (const Unknown& u : block) result.push_back(u.value);
    return result;
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
