#pragma once

#include <array>
#include <string>
#include <string_view>

#include "ftax/factors.hpp"

namespace ftax {

class JsonField;

/// The class of kernels that a field names. Throws Error{profile} where there is none of that name.
[[nodiscard]] Factor factor_named(const JsonField& field);

/// How far the kernel models are off per class of kernels, as standard deviations of a log-factor, by what went into
/// their parameters (data/profiles/uncertainty.json; `ftax_folds uncertainty` estimates them from rows left out).
struct VarianceComponents {
    struct Of {
        double measured = 0;    ///< of a card whose own rows went into the parameters
        double card = 0;        ///< of a card left out, other cards of its generation measured
        double generation = 0;  ///< on top of `card`: of a card of a generation that nobody measured
    };
    std::array<Of, factor_count> of{};
    std::string source;
};

/// Throws Error{profile} naming the path to the field: a factor that is missing, unknown or occurs twice, a spread that
/// is negative.
[[nodiscard]] VarianceComponents parse_variance_components(std::string_view text, const std::string& origin);
[[nodiscard]] std::string to_text(const VarianceComponents& components);

/// What is believed of a card's factors before anything is measured on it: the parameters are right in the mean.
[[nodiscard]] DeviceFactors prior_factors(const VarianceComponents& components, const FactorSet& measured,
                                          const FactorSet& kin_measured);

}  // namespace ftax
