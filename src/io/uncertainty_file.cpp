#include "src/io/uncertainty_file.hpp"

#include <algorithm>
#include <cmath>

#include "src/io/json_document.hpp"

namespace ftax {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kind = "uncertainty";

}  // namespace

Factor factor_named(const JsonField& field) {
    if (const auto factor = factor_from_name(field.text())) return *factor;
    field.fail("is not a class of kernels");
}

VarianceComponents parse_variance_components(std::string_view text, const std::string& origin) {
    const JsonField root = JsonField::parse(text, origin, kind, "schema_version kind source factors");
    VarianceComponents components{.of = {}, .source = root["source"].text()};
    std::array<bool, factor_count> seen{};
    for (const JsonField& field : root["factors"].elements()) {
        field.allow({"factor", "measured", "card", "generation"});
        const auto factor = static_cast<std::size_t>(factor_named(field["factor"]));
        if (std::exchange(seen[factor], true)) field["factor"].fail("occurs twice");
        components.of[factor] = {field["measured"].not_negative(), field["card"].not_negative(),
                                 field["generation"].not_negative()};
    }
    const auto missing = std::ranges::find(seen, false);
    if (missing != seen.end()) {
        root["factors"].fail("lacks " + std::string(name_of(static_cast<Factor>(missing - seen.begin()))));
    }
    return components;
}

std::string to_text(const VarianceComponents& components) {
    ordered_json json = ordered_json::object();
    json["schema_version"] = 1;
    json["kind"] = kind;
    json["source"] = components.source;
    ordered_json list = ordered_json::array();
    for (std::size_t f = 0; f < factor_count; ++f) {
        ordered_json one = ordered_json::object();
        one["factor"] = name_of(static_cast<Factor>(f));
        one["measured"] = components.of[f].measured;
        one["card"] = components.of[f].card;
        one["generation"] = components.of[f].generation;
        list.push_back(std::move(one));
    }
    json["factors"] = std::move(list);
    return to_text(json);
}

DeviceFactors prior_factors(const VarianceComponents& components, const FactorSet& measured,
                            const FactorSet& kin_measured) {
    DeviceFactors factors;
    for (std::size_t f = 0; f < factor_count; ++f) {
        const VarianceComponents::Of& of = components.of[f];
        const double stddev = measured[f]       ? of.measured
                              : kin_measured[f] ? of.card
                                                : std::hypot(of.card, of.generation);
        factors.covariance[f][f] = stddev * stddev;
    }
    return factors;
}

}  // namespace ftax
