#include "predictors/nas/once_for_all.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/throw_error.hpp"

namespace ftax::nas::once_for_all {
namespace {

std::string_view without_leading_space(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    return text;
}

/// Returns the text after "key": up to the end.
std::string_view value_of(std::string_view space, std::string_view text, std::string_view key) {
    const std::string quoted = fmt::format("\"{}\":", key);
    const std::size_t at = text.find(quoted);
    if (at == std::string_view::npos)
        throw_error(ErrorCode::usage, "{}: expected {} in '{}'", space, quoted, excerpt(text));
    return without_leading_space(text.substr(at + quoted.size()));
}

}  // namespace

std::vector<int> ListSpace::options() const {
    std::vector<int> counts;
    for (const List& list : lists_) counts.resize(counts.size() + list.count, static_cast<int>(list.options.size()));
    counts.push_back(largest_side - smallest_side + 1);
    return counts;
}

// Source: Cai et al., ICLR 2020, arXiv 1908.09791, section 4.1: 128 to 224 pixels with a stride of 4.
std::vector<int> ListSpace::usual_options(std::size_t site) const {
    std::vector<int> choices;
    if (site + 1 < options().size()) return choices;
    for (int side = 128; side <= 224; side += 4) choices.push_back(side - smallest_side);
    return choices;
}

std::vector<TensorId> ListSpace::inputs(GraphBuilder& net, std::span<const int> choices) const {
    const std::string side = std::to_string(side_of(choices));
    return {net.input("x", {"batch", "3", side, side})};
}

void ListSpace::read(const List& expected, std::string_view text, std::vector<int>& choices) const {
    const auto& [key, count, allowed] = expected;
    std::string_view list = value_of(name_, text, key);
    const std::size_t first = choices.size();
    const std::size_t close = list.find(']');
    if (list.starts_with("[") && close != std::string_view::npos) {
        list = list.substr(1, close - 1);
        while (!list.empty()) {
            const std::size_t comma = std::min(list.find(','), list.size());
            std::string_view value = without_leading_space(list.substr(0, comma));
            value = value.substr(0, value.find_last_not_of(" \t") + 1);
            const auto found = std::ranges::find(allowed, value);
            if (found == allowed.end())
                throw_error(ErrorCode::usage, "{}: expected \"{}\" to hold {}, not '{}', in '{}'", name_, key,
                            fmt::join(allowed, ", "), excerpt(value), excerpt(text));
            choices.push_back(static_cast<int>(found - allowed.begin()));
            list.remove_prefix(std::min(comma + 1, list.size()));
        }
    }
    if (choices.size() - first != count)
        throw_error(ErrorCode::usage, "{}: expected \"{}\" to list {} numbers in '{}'", name_, key, count,
                    excerpt(text));
}

void ListSpace::parse(std::string_view text, std::vector<int>& choices) const {
    choices.clear();
    for (const List& list : lists_) read(list, text, choices);
    const std::string_view value = value_of(name_, text, "r");
    int side = 0;
    const std::errc error = std::from_chars(value.data(), value.data() + value.size(), side).ec;
    if (error != std::errc{} || side < smallest_side || side > largest_side)
        throw_error(ErrorCode::usage, "{}: expected \"r\" from {} to {} in '{}'", name_, smallest_side, largest_side,
                    excerpt(text));
    choices.push_back(side - smallest_side);
}

std::int64_t round_channels(double channels) {
    const auto rounded = std::max<std::int64_t>(8, static_cast<std::int64_t>(channels + 4) / 8 * 8);
    return static_cast<double>(rounded) < 0.9 * channels ? rounded + 8 : rounded;
}

}  // namespace ftax::nas::once_for_all
