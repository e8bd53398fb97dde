#pragma once

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "ftax/parameter.hpp"

namespace ftax {

/// Takes each parameter of a model: its name, its field and its declaration.
using ParameterVisitor = std::function<void(std::string_view, double&, const ParameterSpec&)>;

/// Returns the parameter of that name; nullptr if there is none.
[[nodiscard]] auto* find_parameter(auto& parameters, std::string_view name) {
    const auto found = std::ranges::find(parameters, name, &Parameter::name);
    return found == parameters.end() ? nullptr : &*found;
}

/// Inserts a parameter into a list sorted by name, replacing one of the same name.
inline void set_parameter(std::vector<Parameter>& parameters, Parameter parameter) {
    const auto at = std::ranges::lower_bound(parameters, parameter.name, {}, &Parameter::name);
    if (at != parameters.end() && at->name == parameter.name) {
        *at = std::move(parameter);
    } else {
        parameters.insert(at, std::move(parameter));
    }
}

}  // namespace ftax
