#include "calibration/fit/operator_fit.hpp"

#include <algorithm>

#include "calibration/fit/operator_profile.hpp"
#include "predictors/host/operator_host.hpp"

namespace ftax::fit {
namespace {

Conditions conditions_of(const OperatorMeasurement& measured, std::string_view slug, std::string_view split,
                         std::int64_t order) {
    if (measured.op == "conv") return Conditions::usual;
    if (!is_product(measured.op)) {
        return ran_at_idle_clock(slug, split, order) ? Conditions::campaign_start : Conditions::usual;
    }
    if (!is_outlier_row(measured, slug, split, order)) return Conditions::usual;
    return split == "test" ? Conditions::second_campaign : Conditions::campaign_start;
}

}  // namespace

std::string_view name_of(Conditions conditions) {
    switch (conditions) {
        case Conditions::usual:
            return "usual";
        case Conditions::without_lt:
            return "layers without cublasLt";
        case Conditions::second_campaign:
            return "second campaign, other clocks";
        case Conditions::campaign_start:
            break;
    }
    return "start of a campaign, idle clock";
}

OperatorRows operator_rows(CsvTable table, const std::vector<std::string>& left_out) {
    OperatorRows rows(read_operator_measurements(std::move(table)));
    const auto text_of = [&](std::size_t row, std::string_view column) -> std::string_view {
        const auto index = rows.file.table.column(column);
        return index ? rows.file.table.row(row)[*index] : std::string_view{};
    };
    rows.conditions.resize(rows.file.rows.size(), Conditions::usual);
    for (std::size_t i = 0; i < rows.file.rows.size(); ++i) {
        const OperatorMeasurement& measured = rows.file.rows[i];
        if (!rows.file.problems[i].empty()) continue;
        auto known = rows.devices.find(measured.gpu);
        if (known == rows.devices.end()) known = rows.devices.emplace(measured.gpu, device_spec(measured.gpu)).first;
        const DeviceSpec& device = known->second;
        if (std::find(left_out.begin(), left_out.end(), device.slug) != left_out.end()) continue;
        const std::string_view split = text_of(i, "split");
        const std::int64_t order = measured.order.value_or(0);
        rows.conditions[i] = conditions_of(measured, device.slug, split, order);
        if (auto row = memory_row(measured, device, split, order)) rows.memory.push_back(*row);
        if (auto row = gemm_row(measured, device, split, order, text_of(i, "grid"))) {
            if (row->shape.library == kernels::BlasLibrary::cublas) rows.conditions[i] = Conditions::without_lt;
            rows.gemm.push_back(*row);
        }
        if (measured.op == "conv") rows.conv.push_back(conv_row(measured, device, static_cast<double>(order)));
        const bool at_idle_clock = rows.conditions[i] == Conditions::campaign_start;
        if (rows.conditions[i] == Conditions::usual || at_idle_clock) {
            rows.dispatch.push_back({&device, &measured, static_cast<double>(order), at_idle_clock});
        }
    }
    return rows;
}

OperatorFit fit_operators(const OperatorRows& rows, const OperatorFitOptions& options) {
    OperatorFit fitted;
    std::vector<FitReport>& reports = fitted.reports;
    const auto devices = [&] { return operator_profile(reports, options.profile_version); };
    const auto hosts = [&] { return call_profile(reports, options.framework, options.framework_version); };
    MemoryFitOptions memory;
    memory.folds = options.folds;
    reports.push_back(fit_memory(rows.memory, memory));

    GemmFitOptions gemm;
    gemm.folds = options.folds;
    for (const ScopedParameter& p : devices().parameters) {
        if (p.parameter.name == "bandwidth") gemm.held.push_back(p);
    }
    for (const ScopedParameter& p : hosts().parameters) {
        if (p.parameter.name == "operator.host_scale") gemm.host_scales[p.key] = p.parameter.value;
    }
    reports.push_back(fit_gemm(rows.gemm, gemm));

    ConvFitOptions conv;
    conv.folds = options.folds;
    conv.host_scales = gemm.host_scales;
    reports.push_back(siblings_report(rows.conv, reports));
    for (const ScopedParameter& p : devices().parameters) {
        if (p.scope == ParameterScope::device) conv.held.push_back(p);
    }
    for (const ScopedParameter& p : hosts().parameters) {
        if (p.parameter.name == "operator.power_control_time_s") conv.power_control_time_s = p.parameter.value;
    }
    reports.push_back(fit_conv(rows.conv, conv));

    reports.push_back(fit_dispatch(rows.dispatch, devices(), hosts()));
    fitted.profile = devices();
    fitted.hosts = hosts();
    return fitted;
}

}  // namespace ftax::fit
