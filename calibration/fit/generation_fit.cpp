#include "calibration/fit/generation_fit.hpp"

#include <algorithm>
#include <utility>

namespace ftax::fit {

ScopedFit generation_fit(std::string kernel_class, const GenerationFitOptions& options) {
    ScopedFit fit{.kernel_class = std::move(kernel_class),
                  .options = options.fit,
                  .rows_per_stratum = options.rows_per_device,
                  .rounds = options.rounds,
                  .centre = Centre::median,
                  .centre_shared = true,
                  .folds = options.folds};
    fit.rows_name = fit.kernel_class + " rows";
    fit.in_fit_fold = false;
    fit.held_out_fold = "a fifth of the shapes left out";
    fit.left_out_folds = {{"the GPU left out"}};
    fit.expects_kin = false;
    return fit;
}

void add_generations(const ScopedFit& fit, const ScopedUnknowns& unknowns, FitReport& report) {
    add_parameters(unknowns.shared, ParameterScope::shared, "", source_of(fit), report);
    if (unknowns.architectures.empty()) return;
    const LogFit::Block expected = centre_of(fit.centre, unknowns.architectures);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const bool unseen_everywhere =
            std::all_of(unknowns.architectures.begin(), unknowns.architectures.end(),
                        [&](const auto& generation) { return is_unseen(generation.second[i]); });
        if (unseen_everywhere) continue;
        for (const Architecture generation :
             {Architecture::volta, Architecture::turing, Architecture::ampere, Architecture::ada, Architecture::hopper,
              Architecture::blackwell, Architecture::rtx_blackwell}) {
            const auto own = unknowns.architectures.find(generation);
            const Unknown& u = own != unknowns.architectures.end() ? own->second[i] : expected[i];
            const bool seen = own != unknowns.architectures.end() && !is_unseen(u);
            report.parameters.push_back(
                {{u.name, u.value, seen ? u.relative_stddev : u.prior_log_stddev,
                  seen ? source_of(fit) : "median of " + report.kernel_class + " on other generations"},
                 ParameterScope::architecture,
                 std::string(name_of(generation))});
        }
    }
}

}  // namespace ftax::fit
