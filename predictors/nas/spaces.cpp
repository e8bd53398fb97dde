#include "predictors/nas/spaces.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/throw_error.hpp"

namespace ftax::nas {
namespace {

constexpr std::array getters{nasbench201_space, fbnet_space, ofa_mobilenet_v3_space, ofa_resnet_space,
                             transformer_space};

}  // namespace

std::vector<std::string> space_names() {
    return mapped(getters, [](SpaceGetter* get) { return std::string(get().name()); });
}

const Space& space(std::string_view name) {
    for (SpaceGetter* const get : getters)
        if (get().name() == name) return get();
    throw_error(ErrorCode::usage, "unknown search space '{}'; available: {}", name, fmt::join(space_names(), ", "));
}

void parse_integers(std::string_view space, std::string_view text, char separator, std::vector<int>& values) {
    const char* at = text.data();
    const char* const end = text.data() + text.size();
    while (true) {
        int value = 0;
        const auto [next, error] = std::from_chars(at, end, value);
        if (error != std::errc{})
            throw_error(ErrorCode::usage, "{}: expected an integer at character {} of '{}'", space,
                        at - text.data() + 1, excerpt(text));
        values.push_back(value);
        if (next == end) return;
        if (*next != separator)
            throw_error(ErrorCode::usage, "{}: expected '{}' at character {} of '{}'", space, separator,
                        next - text.data() + 1, excerpt(text));
        at = next + 1;
    }
}

}  // namespace ftax::nas
