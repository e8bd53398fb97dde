#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <variant>
#include <vector>

#include "calibration/fit/operator_fit.hpp"
#include "calibration/fit/scoped_fit.hpp"
#include "predictors/kernels/memory_bound.hpp"
#include "predictors/operator_model.hpp"

namespace ftax::fit {
namespace {

using kernels::MemoryClass;
using kernels::MemoryParameters;
using HostParameters = OperatorHostParameters;

constexpr std::string_view scale_name = "operator.host_scale";
constexpr std::string_view spread_name = "operator.spread";
constexpr std::string_view blind_fold = "left out: datasheet, host of the others";

/// Whether an operator parameter is the same on all machines: a dispatch time or launch share.
bool is_common(std::string_view name) {
    return name != scale_name && !name.ends_with("spread");
}

const kernels::MemoryShape& shape_of(const OperatorRow& row) {
    return std::get<kernels::MemoryShape>(row.shape);
}

std::string class_name(const kernels::MemoryShape& shape) {
    if (shape.cls == MemoryClass::softmax) return "softmax";
    return shape.cls == MemoryClass::layer_norm ? "ln" : "pointwise";
}

/// The machine whose host dispatched a row: the device's. The P100's shortest calls of two operators take 0.57 of what
/// its other ones lead to expect: another machine.
std::string machine_of(const OperatorRow& row) {
    const bool moved = row.device->slug == "p100-pcie-16gb" && (row.op == "gelu" || row.op == "ln");
    return row.device->slug + (moved ? "/2" : "");
}

/// The shared block holds what operators cost on every host after the parameters of the kernels.
double latency_s(const OperatorRow& row, ScopedValues values) {
    const auto rates = take_rates(*row.device, MathPath::fp32, values);
    const auto memory = take<MemoryParameters>(values);
    HostParameters host;
    visit_parameters(host, [&](std::string_view name, double& value, const ParameterSpec& spec) {
        value = is_common(name) ? *values.shared++ : name == scale_name ? *values.host : spec.initial;
    });
    return operator_latency_s(host.host_scale * host.dispatch_s[*operator_index(row.op)], launch_share(row.op, host),
                              plan(shape_of(row), rates, memory).seconds);
}

/// Appends the scale of each device's host. A device gets a dispatch time of its own for an operator that was measured
/// in another machine than the device's.
void add_hosts(std::span<const OperatorRow* const> rows, const ScopedFit& fit, const ScopedUnknowns& unknowns,
               FitReport& report) {
    using enum ParameterScope;
    const std::string source = source_of(fit);
    report.nuisance.push_back({{std::string(scale_name), expected_host(fit, unknowns.hosts).front().value, 0,
                                source + "; shorth of the hosts"},
                               shared,
                               ""});
    const auto dispatch = std::ranges::find(
        unknowns.shared, "operator.dispatch_s." + std::string(operator_names.front()), &Unknown::name);
    std::map<std::string, std::map<std::size_t, double>> moved;  // by device and operator
    for (const OperatorRow* row : rows) {
        auto& of_device = moved[row->device->slug];
        const std::string machine = machine_of(*row);
        if (machine == row->device->slug) continue;
        of_device[*operator_index(row->op)] =
            unknowns.hosts.at(machine).front().value / unknowns.hosts.at(row->device->slug).front().value;
    }
    for (const auto& [slug, factors] : moved) {
        const Unknown& own = unknowns.hosts.at(slug).front();
        report.nuisance.push_back({{own.name, own.value, own.relative_stddev, source}, device, slug});
        for (const auto& [op, factor] : factors) {
            const Unknown& time = dispatch[static_cast<std::ptrdiff_t>(op)];
            report.nuisance.push_back({{time.name, time.value * factor, own.relative_stddev, source}, device, slug});
        }
    }
}

/// Half the width of the 90 % interval: what the folds named so showed, averaged over the classes.
void add_spreads(FitReport& report, const std::string& source) {
    std::map<std::string, std::vector<double>> spreads;  // by device, "" where none is known
    for (const Fold& fold : report.folds) {
        for (const ErrorSummary& group : fold.groups) {
            if (fold.name == "in the fit") spreads[group.group].push_back(std::log1p(group.p90));
            if (fold.name == blind_fold) spreads[""].push_back(std::log1p(group.p90));
        }
    }
    for (const auto& [slug, of_classes] : spreads) {
        double mean = 0;
        for (const double spread : of_classes) mean += spread / static_cast<double>(of_classes.size());
        const auto scope = slug.empty() ? ParameterScope::shared : ParameterScope::device;
        report.nuisance.push_back({{std::string(spread_name), mean, 0, source + "; 90 % of the errors"}, scope, slug});
    }
}

}  // namespace

double shorth(std::vector<double> values) {
    std::ranges::sort(values);
    const std::size_t half = values.size() / 2 + 1;
    std::size_t first = 0;
    for (std::size_t i = 1; i + half <= values.size(); ++i)
        if (values[i + half - 1] - values[i] < values[first + half - 1] - values[first]) first = i;
    double sum = 0;
    for (std::size_t i = first; i < first + half; ++i) sum += values[i];
    return sum / static_cast<double>(half);
}

FitReport fit_memory(std::span<const OperatorRow> all, const ClassFitOptions& options) {
    ClassFit own({.kernel_class = "memory",
                  .rows_name = "pointwise, softmax and ln rows",
                  .options = {.starts = 2, .iterations = 40, .row_log_stddev = 0.05},
                  .rows_per_stratum = 250},
                 all, RowClass::memory, options);
    const std::vector<const OperatorRow*>& rows = own.rows;
    ScopedFit& fit = own.fit;
    fit.shared = declared<MemoryParameters>(ParameterScope::shared);
    fit.architecture = declared<MemoryParameters>(ParameterScope::architecture);
    fit.device = [](const DeviceSpec& device) { return declared_sustained(device, {"bandwidth"}); };
    std::ranges::copy_if(declared<HostParameters>({}), std::back_inserter(fit.shared), is_common, &Unknown::name);
    fit.host = {declared_call(scale_name)};
    for (std::size_t i = 0; i < rows.size(); ++i) {
        fit.rows[i].host = machine_of(*rows[i]);
        fit.rows[i].stratum = rows[i]->op;
        fit.rows[i].fold_class = class_name(shape_of(*rows[i]));
        fit.rows[i].fitted = fit.rows[i].usual = rows[i]->conditions == Conditions::usual;
    }
    fit.latency_s = [&](std::size_t i, const ScopedValues& values, bool) { return latency_s(*rows[i], values); };
    fit.usual_suffix = "without rows at the idle clock";
    fit.left_out_folds = {
        {std::string(blind_fold)},
        {"left out: bandwidth measured, host of the others", LeftOutFold::Device::fitted},
        {"left out: bandwidth measured, host known", LeftOutFold::Device::fitted, true},
    };
    fit.expected_host = shorth;

    auto [report, unknowns] = solve(fit);
    if (rows.empty()) return report;
    add_parameters(fit, unknowns, report);
    add_hosts(rows, fit, unknowns, report);
    add_spreads(report, source_of(fit));
    return report;
}

}  // namespace ftax::fit
