#include "predictors/profiles/parameters.hpp"

#include <unordered_map>

#include "graphs/base/data_rows.hpp"
#include "graphs/base/embedded.hpp"

namespace ftax {

const ParameterSpec* declared_parameter(std::string_view name) {
    static const std::unordered_map<std::string_view, ParameterSpec> specs = [] {
        std::unordered_map<std::string_view, ParameterSpec> all;
        for_each_data_row(embedded_text("data/parameters.tsv"), [&](DataRow row) {
            ParameterSpec& spec = all[row.text()];
            const double initial = row.number();
            spec = {initial,
                    row.number(initial / 10),
                    row.number(initial * 10),
                    row.number(),
                    row.choice<ParameterScope>("shared architecture device"),
                    row.text()};
        });
        return all;
    }();
    const auto found = specs.find(name);
    return found == specs.end() ? nullptr : &found->second;
}

}  // namespace ftax
