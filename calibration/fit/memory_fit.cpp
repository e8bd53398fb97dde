#include <algorithm>
#include <cmath>
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

std::string class_name(const MemoryRow& row) {
    if (row.shape.cls == MemoryClass::softmax) return "softmax";
    return row.shape.cls == MemoryClass::layer_norm ? "ln" : "pointwise";
}

/// The shared block holds what operators cost on every host after the parameters of the kernels.
double latency_s(const MemoryRow& row, ScopedValues values) {
    const auto rates = take_rates(*row.device, MathPath::fp32, values);
    const auto memory = take<MemoryParameters>(values);
    HostParameters host;
    visit_parameters(host, [&](std::string_view name, double& value, const ParameterSpec& spec) {
        value = is_common(name) ? *values.shared++ : name == scale_name ? *values.host : spec.initial;
    });
    return operator_latency_s(host.scale * host.dispatch_s[row.op], launch_share(operator_names[row.op], host),
                              plan(row.shape, rates, memory).seconds);
}

/// Appends the scale of each device's host. A device gets a dispatch time of its own for an operator that was measured
/// in another machine than the device's.
void add_hosts(std::span<const MemoryRow> rows, const ScopedFit& fit, const ScopedUnknowns& unknowns,
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
    for (const MemoryRow& row : rows) {
        auto& of_device = moved[row.device->slug];
        if (row.machine == row.device->slug) continue;
        of_device[row.op] =
            unknowns.hosts.at(row.machine).front().value / unknowns.hosts.at(row.device->slug).front().value;
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
            if (fold.name.ends_with(", in the fit")) spreads[group.group].push_back(std::log1p(group.p90));
            if (fold.name.ends_with(blind_fold)) spreads[""].push_back(std::log1p(group.p90));
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
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2 + 1;
    std::size_t first = 0;
    for (std::size_t i = 1; i + half <= values.size(); ++i) {
        if (values[i + half - 1] - values[i] < values[first + half - 1] - values[first]) first = i;
    }
    double sum = 0;
    for (std::size_t i = first; i < first + half; ++i) sum += values[i];
    return sum / static_cast<double>(half);
}

bool ran_at_idle_clock(std::string_view device_slug, std::string_view split, std::int64_t order) {
    if (split != "train") return false;
    if (device_slug == "a100-pcie-40gb") return order < 1500;
    if (device_slug == "t4") return order < 1000;
    if (device_slug == "p4") return order < 850;
    return false;
}

std::optional<MemoryRow> memory_row(const OperatorMeasurement& measured, const DeviceSpec& device,
                                    std::string_view split, std::int64_t order) {
    const auto shape = operator_shape(measured);
    if (!shape || !std::holds_alternative<kernels::MemoryShape>(*shape)) return std::nullopt;
    MemoryRow row{.device = &device,
                  .machine = device.slug,
                  .op = *operator_index(measured.op),
                  .shape = std::get<kernels::MemoryShape>(*shape),
                  .latency_s = measured.latency_s,
                  .idle_clock = ran_at_idle_clock(device.slug, split, order)};
    // The P100's shortest calls of these two take 0.57 of what its other ones lead to expect: another machine.
    if (device.slug == "p100-pcie-16gb" && (measured.op == "gelu" || measured.op == "ln")) row.machine += "/2";
    return row;
}

FitReport fit_memory(std::span<const MemoryRow> rows, const MemoryFitOptions& options) {
    ScopedFit fit{.kernel_class = "memory",
                  .rows_name = "pointwise, softmax and ln rows",
                  .options = options.fit,
                  .rows_per_stratum = options.rows_per_group,
                  .folds = options.folds};
    fit.shared = declared<MemoryParameters>(ParameterScope::shared);
    fit.architecture = declared<MemoryParameters>(ParameterScope::architecture);
    fit.device = [](const DeviceSpec& device) { return declared_sustained(device, {"bandwidth"}); };
    HostParameters host;
    visit_parameters(host, [&](std::string_view name, double&, const ParameterSpec& spec) {
        if (is_common(name)) fit.shared.push_back(unknown(std::string(name), spec));
        if (name == scale_name) fit.host.push_back(unknown(std::string(name), spec));
    });
    for (const MemoryRow& row : rows) {
        fit.rows.push_back({.device = row.device,
                            .latency_s = row.latency_s,
                            .host = row.machine,
                            .stratum = std::string(operator_names[row.op]),
                            .fold_class = class_name(row),
                            .fitted = !row.idle_clock,
                            .usual = !row.idle_clock});
    }
    fit.latency_s = [&](std::size_t i, const ScopedValues& values, bool) { return latency_s(rows[i], values); };
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
