#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "calibration/fit/log_fit.hpp"
#include "calibration/fit/scoped_fit.hpp"
#include "ftax/framework.hpp"
#include "ftax/measurement.hpp"
#include "ftax/predict.hpp"
#include "predictors/frameworks/framework_model.hpp"

namespace ftax::fit {

/// One measured latency with the host operations of the schedule and the device time of the kernel models.
struct HostRow {
    std::string host;  ///< measurements that share scalars
    std::string model;
    std::int64_t batch = 1;
    bool half = false;
    bool synchronized = false;                         ///< each run waits for the device before the next begins
    std::array<double, host_kind_count> operations{};  ///< per HostKind
    double calls = 0;                                  ///< what the host's second scalar is paid for
    double device_s = 0;
    std::array<double, factor_count> class_s{};  ///< device_s by class of kernels (Factor)
    double measured_s = 0;
};

/// The costs of the host's operations as unknowns: one for each kind that the rows count, and a factor of half
/// precision where the framework has one.
struct HostUnknowns {
    LogFit::Block block;
    std::array<int, host_kind_count> cost{}, half{};  ///< place in the block, −1 where there is none

    /// Appends to `start` what `declared` returns for the names of parameters.
    HostUnknowns(const FrameworkModel& framework, std::span<const HostRow> rows, LogFit::Block start,
                 const std::function<Unknown(const std::string& name, bool is_half)>& declared);
    /// Host time of the operations of one kind, and of all, on the host whose scale is 1.
    [[nodiscard]] double seconds(const HostRow& row, std::size_t kind, const double* values) const;
    [[nodiscard]] double seconds(const HostRow& row, const double* values) const;
};

/// Predicts a measured row and counts the host's work in it. Throws what predict() throws.
[[nodiscard]] HostRow host_row(const Measurement& measurement, Predictor& predictor, const ShapeBindings& bindings);

/// Keeps the host-bound rows (the predicted device time explains less than 60 %, and doubling the batch costs less than
/// 15 %; rows of one host and model that count the same work become one, their median) and, from the others, those at
/// batch 1, which bound the host's costs from above.
[[nodiscard]] std::vector<HostRow> host_bound_rows(std::span<const HostRow> rows);

struct FrameworkFit {
    FrameworkProfile reference;  ///< shared costs with their spread; scalars at the median host
    struct Host {
        double scale = 1, call_s = 0;
    };
    std::map<std::string, Host> hosts;
    std::size_t rows = 0;
    ErrorSummary errors;  ///< in the fit
    bool converged = false;
};

/// Fits the costs per HostKind that all hosts share, the factors of half precision and two scalars per host. Kinds that
/// are collinear over the models (convolution and batch norm, views and modules) are separated by the narrow priors of
/// host_parameter_spec(). docs/uncertainty.md has what the rows show. Throws Error{usage} when there is no row.
[[nodiscard]] FrameworkFit fit_framework(const std::string& framework, const std::string& version,
                                         std::span<const HostRow> rows);

/// A measured run of a language model under a framework that serves it: its time is `fixed_s` and, in sequence with it,
/// what the host does once per pass and once per pass and sequence.
struct ServingRow {
    double fixed_s = 0;
    double passes = 0;
    double sequences = 0;  ///< over all passes
    double measured_s = 0;
};

/// Estimates host.forward and host.sequence of a framework, around their priors: rows of one card cannot tell a step's
/// host time from bandwidth that its kernels lose. `source` names the rows. The profile has no noise yet.
[[nodiscard]] FrameworkProfile fit_serving(const std::string& framework, const std::string& version,
                                           std::span<const ServingRow> rows, const std::string& source);

[[nodiscard]] double serving_s(const ServingRow& row, const FrameworkProfile& profile);

}  // namespace ftax::fit
