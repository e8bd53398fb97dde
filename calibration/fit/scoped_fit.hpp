#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/fit/log_fit.hpp"
#include "ftax/device.hpp"
#include "graphs/base/statistics.hpp"
#include "predictors/kernels/device_rates.hpp"
#include "predictors/profiles/profile_file.hpp"

/// Fits the parameters of a class of kernels to rows of several devices and scores them on rows that were left out.
namespace ftax::fit {

/// Errors of one group of rows: |predicted − measured| / measured.
struct ErrorSummary : ErrorFigures {
    std::string group{};  ///< a device's slug, or a region of shapes
    double bias = 0;      ///< median of log(predicted / measured)
};

/// Summarises log(predicted / measured).
[[nodiscard]] ErrorSummary summarize(std::string group, const std::vector<double>& log_errors);

/// One way of splitting rows into those fitted and those predicted.
struct Fold {
    std::string name{};                  ///< "in the fit", "left-out", "left-out, clock and bandwidth measured"
    std::string row_class{};             ///< ScopedRow::fold_class of the rows, else the fit's kernel_class
    std::vector<ErrorSummary> groups{};  ///< per device
    ErrorSummary all{};                  ///< over all rows, as the group "all"
    double mean = 0;                     ///< MAPE over the devices: the mean of the groups' means
};

struct FitReport {
    std::string kernel_class{};
    std::vector<ScopedParameter> parameters{};  ///< parameters of the kernel models
    std::vector<ScopedParameter> nuisance{};    ///< parameters of the devices' hosts, by device
    std::vector<Fold> folds{};
    bool converged = false;
};

/// Blocks of unknowns by the key of their owner. Blocks may be empty.
struct ScopedUnknowns {
    LogFit::Block shared{};
    std::map<Architecture, LogFit::Block> architectures{};
    std::map<std::string, LogFit::Block> devices{};  ///< by slug
    std::map<std::string, LogFit::Block> hosts{};    ///< by the machine that dispatched the rows
};

/// Values of the unknowns that one row depends on, in the order in which they are declared.
struct ScopedValues {
    const double* shared = nullptr;
    const double* architecture = nullptr;
    const double* device = nullptr;
    const double* host = nullptr;
};

/// Declares the parameters of `Parameters` (of a device, where they differ by it) that belong to `scope`; empty: all.
template <class Parameters, class... Device>
LogFit::Block declared(std::optional<ParameterScope> scope, const Device&... device) {
    LogFit::Block block;
    Parameters p;
    visit_parameters(p, device..., [&](std::string_view name, double&, const ParameterSpec& spec) {
        if (spec.scope == scope.value_or(spec.scope)) block.push_back(unknown(std::string(name), spec));
    });
    return block;
}

/// Reads the parameters that `declared` lists from the blocks of their scopes and moves the pointers behind them.
/// A parameter of a block that is absent keeps its initial value.
template <class Parameters, class... Device>
Parameters take(ScopedValues& next, const Device&... device) {
    Parameters p;
    visit_parameters(p, device..., [&](std::string_view, double& value, const ParameterSpec& spec) {
        const double*& at = spec.scope == ParameterScope::shared         ? next.shared
                            : spec.scope == ParameterScope::architecture ? next.architecture
                                                                         : next.device;
        value = at ? *at++ : spec.initial;
    });
    return p;
}

/// The same where all of them, whatever their scopes, are in the block of the device.
template <class Parameters>
Parameters take_all(ScopedValues& next, const DeviceSpec& device) {
    Parameters p;
    visit_parameters(p, device, [&](std::string_view, double& value, const ParameterSpec& spec) {
        value = next.device ? *next.device++ : spec.initial;
    });
    return p;
}

/// Declares clocks, bandwidth and floor of a device (SustainedParameters); those not named in `free` are fixed.
[[nodiscard]] LogFit::Block declared_sustained(const DeviceSpec& device, std::vector<std::string_view> free);

/// Reads the rates of a device from its block, which begins with `declared_sustained`, and moves the pointer on.
[[nodiscard]] kernels::DeviceRates take_rates(const DeviceSpec& device, MathPath path, ScopedValues& next);

/// One measured row as the engine sees it; the model knows it by its place.
struct ScopedRow {
    const DeviceSpec* device = nullptr;  ///< nullptr where the host alone decides
    double latency_s = 0;
    std::string host{};        ///< machine that dispatched it; empty: the device's own
    std::string stratum{};     ///< rows of a device are selected evenly from each
    std::string fold_class{};  ///< folds are reported per class
    std::string group{};       ///< within a class, errors are summarised by group; empty: the device's slug
    bool fitted = true;        ///< else scored only: measured under other conditions
    bool usual = true;         ///< part of the folds without rows under other conditions
    bool held_out = false;     ///< part of the fold that leaves rows of every device out
    std::string key{};         ///< rows of one key are left out together; empty: those of the device
};

enum class Centre {
    none,    ///< priors stay at the models' initial values
    mean,    ///< geometric mean of the generations, weighted by how far their rows narrow the prior
    median,  ///< median of the generations, robust to one outlier
};

/// One way to predict a device that was left out.
struct LeftOutFold {
    enum class Device {
        expected,  ///< from its datasheet
        fitted,    ///< as the fit with its rows found it
        refitted,  ///< fitted to its rows, all else fixed
    };
    std::string name{};
    Device device = Device::expected;
    bool host_known = false;
};

struct ScopedFit {
    std::string kernel_class{};
    std::string rows_name{};  ///< text in the source of each parameter; empty: "KERNEL_CLASS rows"
    FitOptions options{};
    std::size_t rows_per_stratum = std::numeric_limits<std::size_t>::max();
    bool folds_start_once = false;  ///< fits without rows that are left out begin at the priors' centres only
    int rounds = 1;  ///< fits; from the second on, priors of the generations are centred on what was found
    Centre centre = Centre::none;
    bool centre_shared = false;  ///< priors of the shared unknowns are centred on what the first round found
    bool folds = true;
    std::vector<ScopedParameter> held{};  ///< device parameters that other rows determine better: fixed

    std::vector<ScopedRow> rows{};
    LogFit::Block shared{}, architecture{}, host{};
    std::function<LogFit::Block(const DeviceSpec&)> device{};  ///< empty: no unknowns of a device
    std::function<LogFit::Block(const DeviceSpec&)>
        architecture_of{};  ///< architecture block of a device; empty: `architecture`
    /// Latency of the row at that place; `scored`: with the kernel that the model chooses rather than the one that ran.
    std::function<double(std::size_t row, ScopedValues values, bool scored)> latency_s{};

    bool in_fit_fold = true;
    std::string held_out_fold{};  ///< its name; empty: none
    std::string usual_suffix{};   ///< suffix of folds without rows under other conditions; empty: none
    std::vector<LeftOutFold> left_out_folds{};
    bool expects_kin = true;  ///< a generation without rows has the values of its nearest kin, else the centre's
    bool expects_device_of_others = false;                   ///< relative to the datasheet; else the datasheet alone
    double (*expected_host)(std::vector<double>) = nullptr;  ///< nullptr: geometric mean
    /// Takes what the model knows of a device from elsewhere out of it before the fit that leaves that device out.
    std::function<void(const DeviceSpec&)> forget{};
    /// Adapts unknowns before a device is refitted; all but its block are fixed by then.
    std::function<void(const DeviceSpec&, ScopedUnknowns&)> prepare_refit{};
};

struct ScopedResult {
    FitReport report;  ///< folds, no parameters yet
    ScopedUnknowns unknowns;
};

/// Fits all rows, then, where folds are wanted, all but those left out.
[[nodiscard]] ScopedResult solve(const ScopedFit& fit);

/// Expected values of the block of a host that no row shows.
[[nodiscard]] LogFit::Block expected_host(const ScopedFit& fit, const std::map<std::string, LogFit::Block>& others);

/// Values that a generation has before its rows are seen.
[[nodiscard]] LogFit::Block centre_of(Centre centre, const std::map<Architecture, LogFit::Block>& fitted);

/// Appends what rows determine of a block to the report: names that begin with "operator." belong to the hosts.
/// Values are divided by `divisor`. `unseen_too` keeps what rows hardly narrow.
void add_parameters(const LogFit::Block& block, ParameterScope scope, const std::string& key, const std::string& source,
                    FitReport& report, double divisor = 1, bool unseen_too = false);

/// Appends the shared, architecture and device blocks. Source: "fitted: ROWS_NAME, COUNT".
void add_parameters(const ScopedFit& fit, const ScopedUnknowns& unknowns, FitReport& report,
                    bool unseen_of_devices_too = false);
[[nodiscard]] std::string source_of(const ScopedFit& fit);

/// Errors of all rows that were left out, over them; none where nothing could be left out.
[[nodiscard]] ErrorSummary left_out_errors(const FitReport& report);

}  // namespace ftax::fit
