#include "predictors/profiles/parameters.hpp"

#include <array>

namespace ftax {
namespace {

using Row = std::pair<std::string_view, ParameterSpec>;

constexpr auto rows = [] {
    std::array all{
#include "predictors/profiles/parameters.inc"
    };
    std::ranges::sort(all, {}, &Row::first);
    return all;
}();

}  // namespace

const ParameterSpec* declared_parameter(std::string_view name) {
    const auto* const found = std::ranges::lower_bound(rows, name, {}, &Row::first);
    return found == rows.end() || found->first != name ? nullptr : &found->second;
}

}  // namespace ftax
