#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "graphs/base/excerpt.hpp"

namespace ftax {

/// The text of a list of functions or members, which a macro may hold, and the list: names in data/ stand once.
#define FTAX_NAMED(...) FTAX_TEXT_AND_LIST(__VA_ARGS__)
#define FTAX_TEXT(...) FTAX_TEXT_OF(__VA_ARGS__)
#define FTAX_TEXT_OF(...) #__VA_ARGS__
#define FTAX_TEXT_AND_LIST(...) \
#__VA_ARGS__, {             \
        __VA_ARGS__             \
    }

/// The names of such a text, those of members without their class: "conv, &P::rate" has "conv" and "rate".
[[nodiscard]] inline std::vector<std::string_view> names_in(std::string_view list) {
    std::vector<std::string_view> names = words_of(list);
    for (std::string_view& name : names) {
        name = name.substr(0, name.find(','));
        name.remove_prefix(name.rfind(':') + 1);
    }
    return names;
}

/// The enumerator of a name; `names` are in the order of the enumerators, or of what `name` makes a name of.
template <class Enum, class Names, class Name = std::identity>
[[nodiscard]] std::optional<Enum> enumerator_named(const Names& names, std::string_view wanted, Name name = {}) {
    const auto found = std::ranges::find(names, wanted, name);
    if (found == std::end(names)) return std::nullopt;
    return static_cast<Enum>(found - std::begin(names));
}

/// Values by their names; T{} by an empty one.
template <class T>
[[nodiscard]] std::map<std::string_view, T> by_name(std::string_view list, std::initializer_list<T> values) {
    std::map<std::string_view, T> result{{"", T{}}};
    const T* value = values.begin();
    for (const std::string_view name : names_in(list)) result[name] = *value++;
    return result;
}

}  // namespace ftax
