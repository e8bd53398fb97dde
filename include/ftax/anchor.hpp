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

/// A measured row with its prediction.
struct AnchorRow {
    double measured_s = 0;
    double host_s = 0;    ///< predicted host time at host.scale = 1, without the calls
    double calls = 0;     ///< number of calls that cost `call_s`: cuBLAS heuristic queries or engine calls
    double device_s = 0;  ///< predicted device time
    std::string model;    ///< rows of one model are correlated: they share the predictor's error on that model
    std::string label;    ///< name of the row in messages ("line 12: bert, batch 1")
    /// Part of host_s that never overlaps device work: the forward call, if runs are synchronised.
    double forward_s = 0;
    std::string_view call = "host.blas_call";  ///< parameter that sets call_s; the same for all rows of a host
    double call_s = 5e-6;                      ///< cost of one such call in the profile
    double scale = 1;                          ///< host.scale of the profile
    double scale_log_stddev = 0.5;             ///< standard deviation of log(scale)
    std::vector<HostGroup> groups;             ///< groups of machines of the profile
    std::string host;                          ///< framework and machine; rows of one host share its scalars
    std::string machine;                       ///< rows of one machine share the speed of its CPU
    std::array<double, factor_count>
        class_s{};  ///< device_s by kernel class (Factor); the remainder belongs to Factor::card
    /// For synchronised runs: timeline latency over the maximum of host time and forward + device time.
    double waiting = 1;
    /// Spread of log(measured / predicted) between models, for host-bound and for device-bound rows, given the factors:
    /// noise.host and noise.device of the profile.
    double host_log_stddev = 0.08, device_log_stddev = 0.1;
    double distance_log_stddev = 0;  ///< what the distance from measured rows adds to the device's spread
    double predicted_s = 0;          ///< prediction of measured_s without anchors; 0 if not computed
    std::int64_t batch = 1;
};

/// Estimates for one host from anchor rows.
struct HostScalars {
    double scale = 1;                    ///< host time of every operation relative to the profile's own host
    double scale_relative_stddev = 0.5;  ///< standard deviation of log(scale)
    double call_s = 0;                   ///< cost of one call; median of its prior if the rows do not determine it
    double call_relative_stddev = 0;
    double correlation = 0;                    ///< between log(scale) and log(call_s)
    std::size_t host_bound_rows = 0;           ///< rows not explained by the predicted device time
    std::vector<std::string> warnings;         ///< contradictory rows, by label; uninformative rows
    std::string_view call = "host.blas_call";  ///< parameter that sets call_s
    /// Remaining noise.host and noise.device if the anchors include rows of the predicted model itself; 0 otherwise.
    double host_noise = 0, device_noise = 0;
};

/// Host speed of a machine, for frameworks without anchor rows on it.
struct CpuSpeed {
    double scale = 1;  ///< factor on the host time of every operation under any framework
    double relative_stddev = 0.5;
};

/// Estimates from the anchor rows of one GPU, under any number of hosts.
struct Conditioned {
    std::map<std::string, HostScalars> hosts;  ///< by AnchorRow::host
    std::map<std::string, CpuSpeed> cpus;      ///< by AnchorRow::machine; only machines with host-bound rows
    DeviceFactors device;
};

/// Updates the priors of the hosts and of the GPU's factors with measured rows; one row is enough. Each row informs the
/// side that bounds it, host or device, and on the device each kernel class by its share of the time. A host's scale is
/// the product of the machine's CPU speed, shared by its frameworks, and a factor of the framework. Rows of `model`
/// also estimate the predictor's error on that model; the result then holds for that model only. Host-bound rows whose
/// implied scale differs by more than a factor 3 from most rows of their host are named in `warnings` and excluded.
/// Throws Error{usage} if there is no row.
/// Source: maximum of the posterior (predictors/analysis/log_posterior.hpp), or mean of a row's explanations by host
/// and by device; priors from the hosts of framework_tax.csv and data/profiles/uncertainty.json.
[[nodiscard]] Conditioned condition(std::span<const AnchorRow> rows, const DeviceFactors& device,
                                    std::string_view model = {});

/// Returns the profile with the scalars of an anchored host in place of its own.
[[nodiscard]] FrameworkProfile anchored(FrameworkProfile profile, const HostScalars& host);
/// Returns the profile with the CPU speed of a machine measured under other frameworks.
[[nodiscard]] FrameworkProfile anchored(FrameworkProfile profile, const CpuSpeed& cpu);

/// Pairs a measurement with its prediction by `predictor` at `bindings`. Throws what predict() throws.
[[nodiscard]] AnchorRow anchor_row(const Measurement& row, Predictor& predictor, const ShapeBindings& bindings);

/// Pairs a run of a language model with its prediction by `generator`: the prompts and the middle decoding step, each
/// times its number of runs. Throws what generate() throws.
[[nodiscard]] AnchorRow anchor_row(const LanguageMeasurement& row, Generator& generator);

/// Properties of a server's run that determine the time of a token.
struct ServedRun {
    std::string model;
    Precision precision = Precision::bf16;
    double prompt_share = 0;    ///< share of a token's time that steps with prompts take beyond decoding steps
    double sequence_share = 0;  ///< share that decoding steps take beyond steps of one sequence
    double sequences = 1;       ///< mean number of running sequences
    double cards = 1;
    double prompt = 1;     ///< mean tokens of a prompt
    double log_error = 0;  ///< log(measured / predicted) of an anchor
};

struct ServedError {
    double factor = 1;      ///< expected measured / predicted time per token
    double log_stddev = 0;  ///< remaining standard deviation of its logarithm
};

/// Estimates the error of a run from those of measured runs of the same engine and card.
/// Source: regression with a Gaussian process (Rasmussen and Williams, 2006, section 2.2), residuals with soft L1 loss.
[[nodiscard]] ServedError served_error(std::span<const ServedRun> anchors, const ServedRun& run);

/// A run worth measuring.
struct SuggestedAnchor {
    std::int64_t batch = 0;
    /// Relative half-width of the 90 % interval, mean over the predicted runs, with this and all earlier anchors.
    double half_width = 0;
    std::string label;  ///< "batch 8", "line 12: bert, batch 1"
};

/// The runs whose measurement would narrow the intervals of a prediction, or of the rows of a file, most.
struct AnchorPlan {
    double half_width = 0;  ///< current value, mean over the predicted runs
    std::vector<SuggestedAnchor> runs;
};

/// Picks up to `count` of the batches in `candidates`, one at a time, to narrow the predicted intervals at `batches` as
/// much as possible; stops when another run would narrow them by less than a tenth. Longer lists are sampled at 64
/// batches. `dims` binds the other symbols. Throws what predict() throws.
[[nodiscard]] AnchorPlan suggest_anchors(Predictor& predictor, const ShapeBindings& dims,
                                         std::span<const std::int64_t> batches,
                                         std::span<const std::int64_t> candidates, std::size_t count = 3);
/// Picks up to `count` of the rows, all of one card, to narrow the intervals of the others in the same way. Information
/// about a row's own model alone does not count.
[[nodiscard]] AnchorPlan suggest_anchors(std::span<const AnchorRow> rows, const DeviceFactors& device,
                                         std::size_t count = 3);

/// Key of the measurements that share a host.
struct HostKey {
    std::string framework, run, gpu;
    friend auto operator<=>(const HostKey&, const HostKey&) = default;
};
[[nodiscard]] HostKey host_key(const Measurement& row);

}  // namespace ftax
