#include "calibration/fit/operator_fit.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "predictors/host/operator_host.hpp"

namespace ftax::fit {
namespace {

std::tuple<std::string_view, ParameterScope, std::string_view> parameter_key(const ScopedParameter& p) {
    return {p.parameter.name, p.scope, p.key};
}

/// The parameters of all reports, in the order of a profile.
std::vector<ScopedParameter> merged(std::span<const FitReport> reports,
                                    std::vector<ScopedParameter> FitReport::*parameters) {
    std::vector<ScopedParameter> all;
    for (const FitReport& report : reports)
        all.insert(all.end(), (report.*parameters).begin(), (report.*parameters).end());
    std::ranges::stable_sort(all, {}, parameter_key);
    const auto same = [](const ScopedParameter& a, const ScopedParameter& b) {
        return parameter_key(a) == parameter_key(b);
    };
    all.erase(std::unique(all.begin(), all.end(), same), all.end());
    return all;
}

}  // namespace

Unknown declared_call(std::string_view name) {
    const LogFit::Block all = declared<OperatorHostParameters>({});
    return *std::ranges::find(all, name, &Unknown::name);
}

ClassFit::ClassFit(ScopedFit usual, std::span<const OperatorRow> all, RowClass of, const ClassFitOptions& options,
                   const std::function<bool(const OperatorRow&)>& wanted)
    : fit(std::move(usual)) {
    fit.folds = options.folds;
    if (options.fit) fit.options = *options.fit;
    if (options.rows_per_stratum > 0) fit.rows_per_stratum = options.rows_per_stratum;
    for (const OperatorRow& row : all) {
        if (row.of != of || (wanted && !wanted(row))) continue;
        rows.push_back(&row);
        fit.rows.push_back({.device = row.device, .latency_s = row.latency_s});
    }
}

OperatorFit fit_operators(std::span<const OperatorRow> rows, const OperatorFitOptions& options) {
    OperatorFit fitted;
    std::vector<FitReport>& reports = fitted.reports;
    const ClassFitOptions of_class{.folds = options.folds};
    reports.push_back(fit_memory(rows, of_class));
    reports.push_back(fit_gemm(rows, reports, of_class));
    reports.push_back(siblings_report(rows, reports));
    reports.push_back(fit_conv(rows, reports, of_class));
    const auto devices = [&] { return operator_profile(reports, options.profile_version); };
    const auto hosts = [&] { return call_profile(reports, options.framework, options.framework_version); };
    reports.push_back(fit_dispatch(rows, devices(), hosts()));
    fitted.profile = devices();
    fitted.hosts = hosts();
    return fitted;
}

DeviceProfileFile operator_profile(std::span<const FitReport> reports, std::string version) {
    DeviceProfileFile profile{std::move(version), {}, {}, merged(reports, &FitReport::parameters)};
    add_fitted_devices(profile);
    return profile;
}

HostProfileFile call_profile(std::span<const FitReport> reports, std::string framework, std::string version) {
    return {std::move(framework), std::move(version), merged(reports, &FitReport::nuisance)};
}

void add_fitted_devices(DeviceProfileFile& profile) {
    std::set<std::string> devices(profile.fitted_on.begin(), profile.fitted_on.end());
    for (const ScopedParameter& p : profile.parameters)
        if (p.scope == ParameterScope::device) devices.insert(p.key);
    profile.fitted_on.assign(devices.begin(), devices.end());
}

void replace_parameters(DeviceProfileFile& profile, std::span<const ScopedParameter> fitted) {
    for (const ScopedParameter& p : fitted) {
        const auto at = std::ranges::lower_bound(profile.parameters, parameter_key(p), {}, parameter_key);
        if (at != profile.parameters.end() && parameter_key(*at) == parameter_key(p)) {
            *at = p;
        } else {
            profile.parameters.insert(at, p);
        }
    }
}

void add_fitted_kernels(DeviceProfileFile& profile, const std::string& slug, Factor kernels) {
    auto at = std::ranges::lower_bound(profile.partly_fitted_on, slug, {}, &PartlyFittedDevice::slug);
    if (at == profile.partly_fitted_on.end() || at->slug != slug) at = profile.partly_fitted_on.insert(at, {slug, {}});
    at->kernels[static_cast<std::size_t>(kernels)] = true;
}

}  // namespace ftax::fit
