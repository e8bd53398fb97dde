#include "src/core/parameters.hpp"

#include <array>
#include <unordered_map>

#include "src/core/data_rows.hpp"
#include "src/core/embedded.hpp"

namespace ftax {

const ParameterSpec* declared_parameter(std::string_view name) {
    static const std::unordered_map<std::string_view, ParameterSpec> specs = [] {
        constexpr std::array<std::string_view, 3> scopes{"shared", "architecture", "device"};
        std::unordered_map<std::string_view, ParameterSpec> all;
        for_each_data_row(embedded_text("data/parameters.tsv"), [&](DataRow row) {
            const auto scope = [&] { return std::ranges::find(scopes, row.text()) - scopes.begin(); };
            ParameterSpec& spec = all[row.text()];
            const double initial = row.number();
            spec = {initial,
                    row.number(initial / 10),
                    row.number(initial * 10),
                    row.number(),
                    static_cast<ParameterScope>(scope()),
                    row.text()};
        });
        return all;
    }();
    const auto found = specs.find(name);
    return found == specs.end() ? nullptr : &found->second;
}

}  // namespace ftax
