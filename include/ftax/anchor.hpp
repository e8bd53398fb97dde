#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/framework.hpp"
#include "ftax/measurement.hpp"
#include "ftax/predict.hpp"

namespace ftax {

/// A measured row beside what the model says of it.
struct AnchorRow {
    double measured_s = 0;
    double host_s = 0;    ///< predicted host time at host.scale = 1, without the calls
    double calls = 0;     ///< what the second scalar is paid for: queries of the BLAS library, calls of an engine
    double device_s = 0;  ///< predicted device time
    std::string model;    ///< rows of one model are correlated: together they weigh as one
    std::string label;    ///< how messages call the row ("line 12: bert, batch 1")
    /// Part of host_s that no device work overlaps: the forward call, where runs are synchronised.
    double forward_s = 0;
    std::string_view call = "host.blas_call";  ///< the parameter that is the second scalar, one for all rows of a host
};

/// What anchor rows say of one host.
struct HostScalars {
    double scale = 1;                    ///< host time of every operation against the profile's own host
    double scale_relative_stddev = 0.5;  ///< of log(scale)
    double call_s = 0;                   ///< the second scalar; its prior's median where the rows do not identify it
    double call_relative_stddev = 0;
    std::size_t host_bound_rows = 0;           ///< rows that the predicted device time does not explain
    std::vector<std::string> warnings;         ///< contradicting rows, by label; rows that say nothing
    std::string_view call = "host.blas_call";  ///< the parameter that is the second scalar
};

/// Estimates the scalars of one host, robustly, from however many rows there are; one is enough. Rows that the
/// device explains only bound the host from above. Rows whose implied scale is more than a factor 3 away from what
/// most rows say are named in `warnings` and left out, not averaged.
/// Throws Error{usage} when there is no row.
/// Source: maximum of the posterior on a refined grid; priors from the hosts of framework_tax.csv.
[[nodiscard]] HostScalars fit_host(std::span<const AnchorRow> rows);

/// Returns the profile with the scalars of an anchored host in place of its own.
[[nodiscard]] FrameworkProfile anchored(FrameworkProfile profile, const HostScalars& host);

/// Pairs a measurement with what `predictor` says of it at `bindings`. Throws what predict() throws.
[[nodiscard]] AnchorRow anchor_row(const Measurement& row, Predictor& predictor, const ShapeBindings& bindings);

/// Measurements that share a host.
struct HostKey {
    std::string framework, run, gpu;
    friend auto operator<=>(const HostKey&, const HostKey&) = default;
};
[[nodiscard]] HostKey host_key(const Measurement& row);

/// Hosts by (framework, run, gpu), or (framework, gpu) where rows name no run. `predict` gives the anchor row of a
/// measurement, or throws; rows without a prediction are named in the warnings of their host.
/// Throws Error{usage} when there is no row.
[[nodiscard]] std::map<HostKey, HostScalars> fit_hosts(std::span<const Measurement> rows,
                                                       const std::function<AnchorRow(const Measurement&)>& predict);

}  // namespace ftax
