#include "calibration/fit/serving_fit.hpp"

#include <cmath>

#include "calibration/fit/log_fit.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/host/host_costs.hpp"

namespace ftax::fit {
namespace {

constexpr const char* per_pass = "host.forward";
constexpr const char* per_sequence = "host.sequence";

double seconds(const ServingRow& row, double pass_s, double sequence_s) {
    return row.fixed_s + row.passes * pass_s + row.sequences * sequence_s;
}

}  // namespace

double serving_s(const ServingRow& row, const FrameworkProfile& profile) {
    return seconds(row, host_parameter(profile, per_pass), host_parameter(profile, per_sequence));
}

ServingFit fit_serving(const std::string& framework, std::span<const ServingRow> rows, const std::string& source) {
    const FrameworkModel& model = framework_model(framework);
    LogFit fit({});
    const std::size_t host = fit.add_block({unknown(per_pass, *host_parameter_spec(model, per_pass)),
                                            unknown(per_sequence, *host_parameter_spec(model, per_sequence))});
    for (const ServingRow& row : rows) {
        fit.add_row([row](double const* const* values) { return seconds(row, values[0][0], values[0][1]); },
                    row.measured_s, {host});
    }
    ServingFit result;
    result.converged = fit.solve().converged;
    result.profile = {.framework = framework, .version = "2024", .host = "reference"};
    for (const Unknown& u : fit.block(host)) {
        result.profile.parameters.push_back({u.name, u.value, u.relative_stddev, "fitted: " + source});
    }
    for (const ServingRow& row : rows) {
        result.mean_error +=
            std::abs(serving_s(row, result.profile) / row.measured_s - 1) / static_cast<double>(rows.size());
    }
    return result;
}

}  // namespace ftax::fit
