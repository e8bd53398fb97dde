#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/factors.hpp"
#include "ftax/framework.hpp"
#include "ftax/generate.hpp"
#include "ftax/measurement.hpp"
#include "ftax/predict.hpp"

namespace ftax {

/// A measured row beside what the model says of it.
struct AnchorRow {
    double measured_s = 0;
    double host_s = 0;    ///< predicted host time at host.scale = 1, without the calls
    double calls = 0;     ///< what the second scalar is paid for: queries of the BLAS library, calls of an engine
    double device_s = 0;  ///< predicted device time
    std::string model;    ///< rows of one model are correlated: they share what the predictor gets wrong about it
    std::string label;    ///< how messages call the row ("line 12: bert, batch 1")
    /// Part of host_s that no device work overlaps: the forward call, where runs are synchronised.
    double forward_s = 0;
    std::string_view call = "host.blas_call";  ///< the parameter that is the second scalar, one for all rows of a host
    std::string host;                          ///< framework on a machine; its rows share its scalars
    std::string machine;                       ///< rows of one machine share the speed of its CPU
    std::array<double, factor_count>
        class_s{};  ///< device_s by class of kernels (Factor); what they leave is the card's
    /// Of synchronised runs: the latency of the timeline over that of two clocks which only overlap.
    double waiting = 1;
    /// Spread of log(measured / predicted) between models, of rows that the host or the device decides, once the
    /// factors are known: noise.host and noise.device of the profile.
    double host_log_stddev = 0.08, device_log_stddev = 0.1;
    double predicted_s = 0;  ///< what measured_s is without any anchor; 0: nobody asked
};

/// What anchor rows say of one host.
struct HostScalars {
    double scale = 1;                    ///< host time of every operation against the profile's own host
    double scale_relative_stddev = 0.5;  ///< of log(scale)
    double call_s = 0;                   ///< the second scalar; its prior's median where the rows do not identify it
    double call_relative_stddev = 0;
    double correlation = 0;                    ///< of the two logarithms
    std::size_t host_bound_rows = 0;           ///< rows that the predicted device time does not explain
    std::vector<std::string> warnings;         ///< contradicting rows, by label; rows that say nothing
    std::string_view call = "host.blas_call";  ///< the parameter that is the second scalar
    /// What is left of noise.host and noise.device where rows of the predicted model itself were among the anchors;
    /// 0 where none was.
    double host_noise = 0, device_noise = 0;
};

/// Host time on one machine under a framework that no row of it was measured with.
struct CpuSpeed {
    double scale = 1;  ///< host time of every operation against the profile's own host
    double relative_stddev = 0.5;
};

/// What anchor rows of one card say, under however many hosts.
struct Conditioned {
    std::map<std::string, HostScalars> hosts;  ///< by AnchorRow::host
    std::map<std::string, CpuSpeed> cpus;      ///< by AnchorRow::machine, where some row is bound by the host
    DeviceFactors device;
};

/// Updates what is believed of hosts and of a card's factors by measured rows, however few; one is enough. Rows pull
/// the side that decides them: host or device, and of the device each class of kernels by its share. The scale of a
/// host is the product of the machine's CPU, which its frameworks share, and a factor of the framework. Rows of `model`
/// also say what the predictor gets wrong about that model; the result then holds for that model alone. Host-bound
/// rows whose implied scale is more than a factor 3 away from what most rows of their host say are named in `warnings`
/// and left out, not averaged.
/// Throws Error{usage} when there is no row.
/// Source: maximum of the posterior (predictors/analysis/log_posterior.hpp), for each host from either mode of the
/// second scalar; priors from the hosts of framework_tax.csv and data/profiles/uncertainty.json.
[[nodiscard]] Conditioned condition(std::span<const AnchorRow> rows, const DeviceFactors& device,
                                    std::string_view model = {});

/// Returns the profile with the scalars of an anchored host in place of its own.
[[nodiscard]] FrameworkProfile anchored(FrameworkProfile profile, const HostScalars& host);
/// Returns the profile with the speed of a machine that other frameworks were measured on.
[[nodiscard]] FrameworkProfile anchored(FrameworkProfile profile, const CpuSpeed& cpu);

/// Pairs a measurement with what `predictor` says of it at `bindings`. Throws what predict() throws.
[[nodiscard]] AnchorRow anchor_row(const Measurement& row, Predictor& predictor, const ShapeBindings& bindings);

/// Pairs a run of a language model with what `generator` says of it: its prompts and the step in the middle, as often
/// as they run. Throws what generate() throws.
[[nodiscard]] AnchorRow anchor_row(const LanguageMeasurement& row, Generator& generator);

/// A run that is worth measuring.
struct SuggestedAnchor {
    std::int64_t batch = 0;
    /// Relative half-width of the 90 % interval, mean over the predicted batches, once this run and those before it are
    /// anchors.
    double half_width = 0;
};

/// Which runs of the predicted model would narrow its intervals most.
struct AnchorPlan {
    double half_width = 0;  ///< as it is now, mean over the predicted batches
    std::vector<SuggestedAnchor> runs;
};

/// Picks up to `count` of the batches `candidates`, one after the other, such that measuring them narrows the predicted
/// latencies at `batches` most; stops where one more would gain less than a tenth of the width. The other symbols are
/// as bound in `dims`. Throws what predict() throws.
/// Source: greedy A-optimal design on the covariance that condition() updates, with secants for slopes.
[[nodiscard]] AnchorPlan suggest_anchors(Predictor& predictor, const ShapeBindings& dims,
                                         std::span<const std::int64_t> batches,
                                         std::span<const std::int64_t> candidates, std::size_t count = 3);

/// Measurements that share a host.
struct HostKey {
    std::string framework, run, gpu;
    friend auto operator<=>(const HostKey&, const HostKey&) = default;
};
[[nodiscard]] HostKey host_key(const Measurement& row);

}  // namespace ftax
