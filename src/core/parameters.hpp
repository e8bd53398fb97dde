#pragma once

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "ftax/parameter.hpp"

namespace ftax {

/// Takes each parameter of a model: its name, its field and its declaration.
using ParameterVisitor = std::function<void(std::string_view, double&, const ParameterSpec&)>;

/// Returns the declaration of a parameter in data/parameters.tsv; nullptr if there is none.
[[nodiscard]] const ParameterSpec* declared_parameter(std::string_view name);

/// Fields of a struct that hold the parameters "MODEL.NAME": a name and a member in turn. Each must be declared.
template <class Struct>
class DeclaredFields {
  public:
    template <class... Fields>
    explicit DeclaredFields(std::string_view model, const Fields&... fields) {
        add(model, fields...);
    }
    void visit(Struct& values, const ParameterVisitor& visitor) const {
        for (const auto& [name, member, spec] : fields_) visitor(name, values.*member, *spec);
    }

  private:
    template <class... Others>
    void add(std::string_view model, std::string_view own_name, double Struct::*member, const Others&... others) {
        std::string name = std::string(model).append(".").append(own_name);
        const ParameterSpec* const spec = declared_parameter(name);
        if (spec == nullptr) throw std::logic_error("data/parameters.tsv has no " + name);
        fields_.emplace_back(std::move(name), member, spec);
        if constexpr (sizeof...(others) > 0) add(model, others...);
    }

    std::vector<std::tuple<std::string, double Struct::*, const ParameterSpec*>> fields_;
};

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
