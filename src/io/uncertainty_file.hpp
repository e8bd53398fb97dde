#pragma once

#include <array>
#include <string>
#include <string_view>

#include "ftax/factors.hpp"

namespace ftax {

class JsonField;

/// Returns the kernel class named by a field. Throws Error{profile} if there is none of that name.
[[nodiscard]] Factor factor_named(const JsonField& field);

/// Errors of the kernel models per kernel class, as standard deviations of a log-factor, by the data behind their
/// parameters (data/profiles/uncertainty.json; estimated by `ftax_folds uncertainty` from left-out rows).
struct VarianceComponents {
    struct Of {
        double measured = 0;    ///< card with rows in the fit
        double card = 0;        ///< left-out card of a measured generation
        double generation = 0;  ///< added to `card` for unmeasured generations
    };
    std::array<Of, factor_count> of{};
    std::string source;
};

/// Throws Error{profile} naming the path to the field: missing, unknown or duplicate factors, negative spreads.
[[nodiscard]] VarianceComponents parse_variance_components(std::string_view text, const std::string& origin);
[[nodiscard]] std::string to_text(const VarianceComponents& components);

/// Returns the prior of a card's factors: zero mean, i.e. the parameters are unbiased.
[[nodiscard]] DeviceFactors prior_factors(const VarianceComponents& components, const FactorSet& measured,
                                          const FactorSet& kin_measured);

}  // namespace ftax
