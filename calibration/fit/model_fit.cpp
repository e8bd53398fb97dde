#include "calibration/fit/model_fit.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "calibration/fit/operator_fit.hpp"

namespace ftax::fit {
namespace {

/// Width of the priors around `start`, relative to what the fit of the operators left (Parameter::relative_stddev).
constexpr double prior_scale = 3;
constexpr double determined_below = 0.9;  // share of the prior's width: narrowed by operator rows

const ScopedParameter* find(const DeviceProfileFile& file, std::string_view name, ParameterScope scope,
                            std::string_view key) {
    const auto found = std::ranges::find_if(file.parameters, [&](const ScopedParameter& p) {
        return p.parameter.name == name && p.scope == scope && p.key == key;
    });
    return found == file.parameters.end() ? nullptr : &*found;
}

std::string key_of(ParameterScope scope, const DeviceSpec& device) {
    if (scope == ParameterScope::shared) return "";
    return scope == ParameterScope::device ? device.slug : std::string(name_of(device.architecture));
}

/// What another card with the same chip and memory sustains of its bandwidth, as operators have shown it: a better
/// start than the datasheet's share. An A100 SXM4 has 30 rows of whole models, its PCIe sister 116,000 of operators.
const ScopedParameter* of_same_memory(const DeviceProfileFile& start, std::string_view name, const DeviceSpec& device) {
    if (name != "bandwidth") return nullptr;
    for (const DeviceSpec& other : device_specs()) {
        const bool same = other.architecture == device.architecture &&
                          other.compute_capability_minor == device.compute_capability_minor &&
                          other.memory_bandwidth_bytes_per_s == device.memory_bandwidth_bytes_per_s &&
                          other.inline_ecc_share == device.inline_ecc_share;
        const ScopedParameter* known = same ? find(start, name, ParameterScope::device, other.slug) : nullptr;
        if (known != nullptr && known->parameter.relative_stddev > 0) return known;
    }
    return nullptr;
}

/// Parameters of one scope that hold for a device, in the order of visit_parameters.
LogFit::Block make_block(ParameterScope scope, const DeviceSpec& device, const DeviceProfileFile& start,
                         const ModelFitOptions& options) {
    LogFit::Block block;
    KernelParameters parameters;
    visit_parameters(parameters, device, [&](std::string_view name, double&, const ParameterSpec& spec) {
        if (spec.scope != scope) return;
        Unknown u = unknown(std::string(name), spec);
        if (const ScopedParameter* known = find(start, name, scope, key_of(scope, device))) {
            u.value = known->parameter.value;
            // Parameters determined by operator rows are fixed; those taken from a prior are fitted.
            const double spread = known->parameter.relative_stddev;
            u.fixed =
                scope != ParameterScope::device && spread > 0 && spread < determined_below * spec.prior_log_stddev;
            if (spread > 0) u.prior_log_stddev = std::min(u.prior_log_stddev, std::max(0.02, prior_scale * spread));
        } else if (const ScopedParameter* same =
                       scope == ParameterScope::device ? of_same_memory(start, name, device) : nullptr) {
            u.value = same->parameter.value;
            u.prior_log_stddev = std::max(0.02, prior_scale * same->parameter.relative_stddev);
        } else if (scope == ParameterScope::architecture) {
            const ScopedParameter* kin = find_architecture_parameter(start, name, device.architecture);
            if (kin != nullptr) u.value = kin->parameter.value;
        }
        if (!name.starts_with(options.only)) u.fixed = true;
        block.push_back(std::move(u));
    });
    return block;
}

}  // namespace

FitReport fit_models(std::span<const ModelRow> rows, const DeviceProfileFile& start, const ModelFitOptions& options,
                     DeviceProfileFile& fitted) {
    if (rows.empty()) return {.kernel_class = "models"};
    const auto block = [&](ParameterScope scope) {
        return [&, scope](const DeviceSpec& device) { return make_block(scope, device, start, options); };
    };
    ScopedFit fit{.kernel_class = "models", .options = options.fit, .folds = false};
    fit.shared = block(ParameterScope::shared)(*rows.front().device);
    fit.architecture_of = block(ParameterScope::architecture);
    fit.device = block(ParameterScope::device);
    std::map<std::string, std::size_t> counts;  // number of rows, by key of scopes
    for (const ModelRow& row : rows) {
        fit.rows.push_back({.device = row.device, .latency_s = row.latency_s, .group = row.group});
        for (const auto scope : {ParameterScope::shared, ParameterScope::architecture, ParameterScope::device})
            ++counts[key_of(scope, *row.device)];
    }
    fit.latency_s = [&](std::size_t i, ScopedValues values, bool) {
        const DeviceSpec& device = *rows[i].device;
        return device_seconds(rows[i], KernelModels(device, take<KernelParameters>(values, device)));
    };
    ScopedResult solved = solve(fit);
    FitReport& report = solved.report;
    const ScopedUnknowns& unknowns = solved.unknowns;

    fitted = start;
    // Of what no row shows, that which the start knows holds, with its source.
    const auto add_seen = [&](const LogFit::Block& of, ParameterScope scope, const std::string& key) {
        add_parameters(of, scope, key, "fitted: " + std::to_string(counts[key]) + " whole-model rows", report);
    };
    add_seen(unknowns.shared, ParameterScope::shared, "");
    for (const auto& [architecture, own] : unknowns.architectures)
        add_seen(own, ParameterScope::architecture, std::string(name_of(architecture)));
    for (const auto& [slug, own] : unknowns.devices) add_seen(own, ParameterScope::device, slug);
    replace_parameters(fitted, report.parameters);
    // The rows of a generation that did not move a value were fitted with it, not with what its kin have of theirs.
    for (const auto& [architecture, own] : unknowns.architectures) {
        const std::string key(name_of(architecture));
        for (const Unknown& u : own) {
            if (u.fixed || !is_unseen(u)) continue;
            const ScopedParameter* known = find_architecture_parameter(fitted, u.name, architecture);
            if (known == nullptr || known->key == key || known->parameter.value == u.value) continue;
            report.parameters.push_back({{u.name, u.value, u.relative_stddev, "expected: its rows hold no more of it"},
                                         ParameterScope::architecture,
                                         key});
            replace_parameters(fitted, {&report.parameters.back(), 1});
        }
    }
    add_fitted_devices(fitted);
    return std::move(report);
}

}  // namespace ftax::fit
