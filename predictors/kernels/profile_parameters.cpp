#include "predictors/kernels/profile_parameters.hpp"

#include <algorithm>

#include "src/core/throw_error.hpp"

namespace ftax {

double profile_value(std::span<const Parameter> parameters, std::string_view owner, std::string_view name,
                     const ParameterSpec& spec) {
    const auto at = std::lower_bound(parameters.begin(), parameters.end(), name,
                                     [](const Parameter& p, std::string_view wanted) { return p.name < wanted; });
    if (at == parameters.end() || at->name != name) return spec.initial;
    if (!(at->value >= spec.lower && at->value <= spec.upper)) {
        throw_error(ErrorCode::profile, "parameter {} of {} is {}, outside [{}, {}]", name, owner, at->value,
                    spec.lower, spec.upper);
    }
    return at->value;
}

}  // namespace ftax
