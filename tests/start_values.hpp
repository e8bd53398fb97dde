#pragma once

#include <string_view>

#include "ftax/parameter.hpp"

namespace ftax::test {

/// Parameters of a kernel model as it declares them, before any fit; some depend on the datasheet of a device.
template <class Parameters, class... Datasheet>
Parameters start_values(const Datasheet&... device) {
    Parameters parameters;
    visit_parameters(parameters, device...,
                     [](std::string_view, double& value, const ParameterSpec& spec) { value = spec.initial; });
    return parameters;
}

}  // namespace ftax::test
