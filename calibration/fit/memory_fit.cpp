#include "calibration/fit/memory_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "calibration/fit/scoped_unknowns.hpp"
#include "predictors/kernels/memory_bound.hpp"
#include "predictors/kernels/sustained.hpp"
#include "predictors/operator_model.hpp"

namespace ftax::fit {
namespace {

using kernels::MemoryClass;
using kernels::MemoryParameters;
using kernels::SustainedParameters;

/// Values of every unknown, by what they belong to.
struct MemoryUnknowns {
    LogFit::Block shared;
    LogFit::Block host;  ///< dispatch times and launch shares, alike on all machines up to their scale
    std::map<Architecture, LogFit::Block> architectures;
    std::map<std::string, LogFit::Block> devices;
    std::map<std::string, LogFit::Block> machines;
};

using DeviceRows = std::map<std::string, std::vector<const MemoryRow*>>;

constexpr std::string_view scale_name = "operator.host_scale";
constexpr std::string_view spread_name = "operator.spread";
constexpr std::string_view blind_fold = "left out: datasheet, host of the others";

/// Whether an operator parameter is alike on all machines: a dispatch time or launch share.
bool is_shape(std::string_view name) {
    return name != scale_name && !name.ends_with("spread");
}

std::string_view class_name(const MemoryRow& row) {
    if (row.shape.cls == MemoryClass::softmax) return "softmax";
    return row.shape.cls == MemoryClass::layer_norm ? "ln" : "pointwise";
}

template <class T>
MemoryParameters<T> parameters_of(const T* shared, const T* architecture) {
    MemoryParameters<T> p;
    visit_parameters(p, [&](std::string_view, T& value, const ParameterSpec& spec) {
        value = spec.scope == ParameterScope::architecture ? *architecture++ : *shared++;
    });
    return p;
}

template <class T>
OperatorHostParameters<T> host_of(const T* host, const T& scale) {
    OperatorHostParameters<T> p;
    visit_parameters(p, [&](std::string_view name, T& value, const ParameterSpec& spec) {
        value = is_shape(name) ? *host++ : name == scale_name ? scale : T(spec.initial);
    });
    return p;
}

/// Blocks: shared, host, architecture, device, machine.
struct MemoryModel {
    const MemoryRow* row;

    template <class T>
    T operator()(T const* const* blocks) const {
        const auto memory = parameters_of(blocks[0], blocks[2]);
        const auto host = host_of(blocks[1], *blocks[4]);
        SustainedParameters<T> sustained;
        visit_parameters(sustained, *row->device, [&](std::string_view name, T& value, const ParameterSpec& spec) {
            value = name == "bandwidth" ? *blocks[3] : T(spec.initial);
        });
        const auto rates = device_rates(*row->device, MathPath::fp32, sustained);
        const T kernel_s = plan(row->shape, rates, memory).seconds;
        return operator_latency_s(T(host.scale * host.dispatch_s[row->op]), launch_share(operator_names[row->op], host),
                                  kernel_s);
    }
};

template <class Parameters, class Select>
LogFit::Block declared(Select select) {
    LogFit::Block block;
    Parameters p;
    visit_parameters(p, [&](std::string_view name, double&, const ParameterSpec& spec) {
        if (select(name, spec)) block.push_back(unknown(std::string(name), spec));
    });
    return block;
}

LogFit::Block declared_shared() {
    return declared<MemoryParameters<double>>(
        [](std::string_view, const ParameterSpec& spec) { return spec.scope == ParameterScope::shared; });
}

LogFit::Block declared_architecture() {
    return declared<MemoryParameters<double>>(
        [](std::string_view, const ParameterSpec& spec) { return spec.scope == ParameterScope::architecture; });
}

LogFit::Block declared_machine() {
    return declared<OperatorHostParameters<double>>(
        [](std::string_view name, const ParameterSpec&) { return name == scale_name; });
}

LogFit::Block declared_device(const DeviceSpec& device) {
    LogFit::Block block;
    SustainedParameters<double> p;
    visit_parameters(p, device, [&](std::string_view name, double&, const ParameterSpec& spec) {
        if (name == "bandwidth") block.push_back(unknown(std::string(name), spec));
    });
    return block;
}

MemoryUnknowns unknowns_for(const DeviceRows& rows) {
    MemoryUnknowns unknowns;
    unknowns.shared = declared_shared();
    unknowns.host = declared<OperatorHostParameters<double>>(
        [](std::string_view name, const ParameterSpec&) { return is_shape(name); });
    for (const auto& [slug, of_device] : rows) {
        const DeviceSpec& device = *of_device.front()->device;
        unknowns.architectures[device.architecture] = declared_architecture();
        unknowns.devices[slug] = declared_device(device);
        for (const MemoryRow* row : of_device) unknowns.machines.try_emplace(row->machine, declared_machine());
    }
    return unknowns;
}

/// Takes `most` rows of each operator evenly over the campaign, none that ran at the idle clock.
std::vector<const MemoryRow*> selection(const std::vector<const MemoryRow*>& rows, std::size_t most) {
    std::array<std::vector<const MemoryRow*>, operator_names.size()> by_operator;
    for (const MemoryRow* row : rows) {
        if (!row->idle_clock) by_operator[row->op].push_back(row);
    }
    std::vector<const MemoryRow*> selected;
    for (const auto& group : by_operator) {
        const std::size_t count = std::min(group.size(), most);
        for (std::size_t i = 0; i < count; ++i) selected.push_back(group[i * group.size() / count]);
    }
    return selected;
}

FitSummary fit_rows(const DeviceRows& rows, MemoryUnknowns& unknowns, const MemoryFitOptions& options) {
    LogFit fit(options.fit);
    const std::size_t shared = fit.add_block(unknowns.shared);
    const std::size_t host = fit.add_block(unknowns.host);
    const auto add_all = [&](const auto& blocks) {
        std::map<typename std::decay_t<decltype(blocks)>::key_type, std::size_t> indices;
        for (const auto& [key, block] : blocks) indices[key] = fit.add_block(block);
        return indices;
    };
    const auto architectures = add_all(unknowns.architectures);
    const auto devices = add_all(unknowns.devices);
    const auto machines = add_all(unknowns.machines);
    for (const auto& [slug, of_device] : rows) {
        const std::size_t architecture = architectures.at(of_device.front()->device->architecture);
        for (const MemoryRow* row : selection(of_device, options.rows_per_group)) {
            fit.add_row(MemoryModel{row}, row->latency_s,
                        {shared, host, architecture, devices.at(slug), machines.at(row->machine)});
        }
    }
    const FitSummary summary = fit.solve();
    unknowns.shared = fit.block(shared);
    unknowns.host = fit.block(host);
    for (const auto& [key, index] : architectures) unknowns.architectures[key] = fit.block(index);
    for (const auto& [key, index] : devices) unknowns.devices[key] = fit.block(index);
    for (const auto& [key, index] : machines) unknowns.machines[key] = fit.block(index);
    return summary;
}

/// Adds log(predicted / measured) of every row to the groups of its class and device.
using ClassErrors = std::map<std::string, std::map<std::string, std::vector<double>>>;
void add_errors(const std::vector<const MemoryRow*>& rows, const MemoryUnknowns& unknowns, bool idle_clock_too,
                ClassErrors& errors) {
    const DeviceSpec& device = *rows.front()->device;
    const auto shared = values(unknowns.shared);
    const auto host = values(unknowns.host);
    const auto architecture = values(unknowns.architectures.at(device.architecture));
    const auto sustained = values(unknowns.devices.at(device.slug));
    for (const MemoryRow* row : rows) {
        if (row->idle_clock && !idle_clock_too) continue;
        const auto machine = values(unknowns.machines.at(row->machine));
        const double* blocks[] = {shared.data(), host.data(), architecture.data(), sustained.data(), machine.data()};
        errors[std::string(class_name(*row))][device.slug].push_back(
            std::log(MemoryModel{row}(blocks) / row->latency_s));
    }
}

void add_folds(const std::string& name, const ClassErrors& errors, FitReport& report) {
    for (const auto& [cls, by_device] : errors) {
        Fold fold{.name = cls + ", " + name, .groups = {}, .mean = 0};
        for (const auto& [slug, of_device] : by_device) {
            fold.groups.push_back(summarize(slug, of_device));
            fold.mean += fold.groups.back().mean / static_cast<double>(by_device.size());
        }
        report.folds.push_back(std::move(fold));
    }
}

/// The scale of a machine nobody measured: what most of the others have.
double expected_scale(const std::map<std::string, LogFit::Block>& machines) {
    std::vector<double> scales;
    for (const auto& [name, block] : machines) scales.push_back(block.front().value);
    return shorth(std::move(scales));
}

/// Leaves out one device at a time, with nothing of it known, with its bandwidth, and with its host as well.
void add_left_out_folds(const DeviceRows& rows, const MemoryUnknowns& known, const MemoryFitOptions& options,
                        FitReport& report) {
    ClassErrors blind, bandwidth_known, host_known;
    for (const auto& [slug, of_device] : rows) {
        DeviceRows others = rows;
        others.erase(slug);
        if (others.empty()) return;
        MemoryUnknowns unknowns = unknowns_for(others);
        (void)fit_rows(others, unknowns, options);
        const DeviceSpec& device = *of_device.front()->device;
        unknowns.architectures.try_emplace(
            device.architecture, block_of_kin(device.architecture, unknowns.architectures, declared_architecture()));
        unknowns.devices[slug] = declared_device(device);
        const double scale = expected_scale(unknowns.machines);
        for (const MemoryRow* row : of_device) {
            auto& machine = unknowns.machines.try_emplace(row->machine, declared_machine()).first->second;
            machine.front().value = scale;
        }
        add_errors(of_device, unknowns, true, blind);
        unknowns.devices[slug] = known.devices.at(slug);
        add_errors(of_device, unknowns, true, bandwidth_known);
        for (const MemoryRow* row : of_device) unknowns.machines[row->machine] = known.machines.at(row->machine);
        add_errors(of_device, unknowns, true, host_known);
    }
    add_folds(std::string(blind_fold), blind, report);
    add_folds("left out: bandwidth measured, host of the others", bandwidth_known, report);
    add_folds("left out: bandwidth measured, host known", host_known, report);
}

void add_parameters(const LogFit::Block& block, ParameterScope scope, const std::string& key, const std::string& source,
                    std::vector<ScopedParameter>& parameters) {
    for (const Unknown& u : block) {
        if (!is_unseen(u)) parameters.push_back({{u.name, u.value, u.relative_stddev, source}, scope, key});
    }
}

/// Lists what was fitted. Machines become devices' host scales; where an operator was measured in another machine than
/// the device's own, the device gets a dispatch time of its own for it.
void add_all_parameters(const DeviceRows& rows, const MemoryUnknowns& unknowns, const std::string& source,
                        FitReport& report) {
    using enum ParameterScope;
    add_parameters(unknowns.shared, shared, "", source, report.parameters);
    LogFit::Block seen = unknowns.host;
    std::erase_if(seen, is_unseen);  // matrix products and convolutions: fit_dispatch
    add_parameters(seen, shared, "", source, report.nuisance);
    for (const auto& [key, block] : unknowns.architectures) {
        add_parameters(block, architecture, std::string(name_of(key)), source, report.parameters);
    }
    for (const auto& [slug, block] : unknowns.devices) add_parameters(block, device, slug, source, report.parameters);
    report.nuisance.push_back(
        {{std::string(scale_name), expected_scale(unknowns.machines), 0, source + "; shorth of the hosts"},
         shared,
         ""});
    for (const auto& [slug, of_device] : rows) {
        const Unknown& own = unknowns.machines.at(slug).front();
        report.nuisance.push_back({{own.name, own.value, own.relative_stddev, source}, device, slug});
        std::map<std::size_t, double> moved;
        for (const MemoryRow* row : of_device) {
            if (row->machine != slug) moved[row->op] = unknowns.machines.at(row->machine).front().value / own.value;
        }
        for (const auto& [op, factor] : moved) {
            const Unknown& dispatch = unknowns.host[op];
            report.nuisance.push_back(
                {{dispatch.name, dispatch.value * factor, own.relative_stddev, source}, device, slug});
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
    DeviceRows by_device;
    for (const MemoryRow& row : rows) by_device[row.device->slug].push_back(&row);
    FitReport report;
    report.kernel_class = "memory";
    if (by_device.empty()) return report;

    MemoryUnknowns unknowns = unknowns_for(by_device);
    report.converged = fit_rows(by_device, unknowns, options).converged;

    ClassErrors all, clean;
    for (const auto& [slug, of_device] : by_device) {
        add_errors(of_device, unknowns, true, all);
        add_errors(of_device, unknowns, false, clean);
    }
    add_folds("in the fit", all, report);
    add_folds("in the fit, without rows at the idle clock", clean, report);
    if (options.folds) add_left_out_folds(by_device, unknowns, options, report);
    const std::string source = "fitted: pointwise, softmax and ln rows, " + std::to_string(rows.size());
    add_all_parameters(by_device, unknowns, source, report);
    add_spreads(report, source);
    return report;
}

}  // namespace ftax::fit
