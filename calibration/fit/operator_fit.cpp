#include "calibration/fit/operator_fit.hpp"

#include <algorithm>
#include <utility>

#include "calibration/fit/operator_profile.hpp"
#include "predictors/host/operator_host.hpp"

namespace ftax::fit {

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

}  // namespace ftax::fit
