#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "ftax/parameter.hpp"
#include "graphs/base/named.hpp"

namespace ftax {

/// Takes each parameter of a model: its name, its field and its declaration.
using ParameterVisitor = std::function<void(std::string_view, double&, const ParameterSpec&)>;

/// Returns the declaration of a parameter in data/parameters.tsv; nullptr if there is none.
[[nodiscard]] const ParameterSpec* declared_parameter(std::string_view name);

/// Members of a struct that hold the parameters "MODEL.MEMBER": FTAX_NAMED(…). Each must be declared.
template <class Struct>
class DeclaredFields {
  public:
    DeclaredFields(std::string_view model, std::string_view names, std::initializer_list<double Struct::*> members) {
        const auto* member = members.begin();
        for (const std::string_view own_name : names_in(names)) {
            std::string name = std::string(model).append(".").append(own_name);
            const ParameterSpec* const spec = declared_parameter(name);
            if (spec == nullptr) throw std::logic_error("data/parameters.tsv has no " + name);
            fields_.emplace_back(std::move(name), *member++, spec);
        }
    }
    void visit(Struct& values, const ParameterVisitor& visitor) const {
        for (const auto& [name, member, spec] : fields_) visitor(name, values.*member, *spec);
    }

  private:
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
