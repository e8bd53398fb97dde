#include "src/core/parameters.hpp"

#include <array>
#include <charconv>
#include <map>

#include "src/core/embedded.hpp"

namespace ftax {
namespace {

/// Returns the text up to a separator, or all of it, and removes both from the rest.
std::string_view next_cell(std::string_view& rest, char separator) {
    const std::string_view cell = rest.substr(0, rest.find(separator));
    rest.remove_prefix(std::min(cell.size() + 1, rest.size()));
    return cell;
}

/// `otherwise` for an empty cell.
double next_number(std::string_view& rest, double otherwise = 0) {
    const std::string_view cell = next_cell(rest, '\t');
    double value = otherwise;
    std::from_chars(cell.data(), cell.data() + cell.size(), value);
    return value;
}

std::map<std::string_view, ParameterSpec> read_declarations() {
    constexpr std::array<std::string_view, 3> scopes{"shared", "architecture", "device"};
    std::map<std::string_view, ParameterSpec> specs;
    std::string_view rest = embedded_text("data/parameters.tsv");
    next_cell(rest, '\n');  // the header
    while (!rest.empty()) {
        std::string_view row = next_cell(rest, '\n');
        const std::string_view name = next_cell(row, '\t');
        ParameterSpec spec{.initial = next_number(row)};
        spec.lower = next_number(row, spec.initial / 10);
        spec.upper = next_number(row, spec.initial * 10);
        spec.prior_log_stddev = next_number(row);
        spec.scope = static_cast<ParameterScope>(std::ranges::find(scopes, next_cell(row, '\t')) - scopes.begin());
        spec.source = row;
        specs.emplace(name, spec);
    }
    return specs;
}

}  // namespace

const ParameterSpec* declared_parameter(std::string_view name) {
    static const std::map<std::string_view, ParameterSpec> specs = read_declarations();
    const auto found = specs.find(name);
    return found == specs.end() ? nullptr : &found->second;
}

}  // namespace ftax
