#include "calibration/fit/held_parameters.hpp"

namespace ftax::fit {

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
