#include "calibration/fit/conv_fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "calibration/fit/scoped_unknowns.hpp"
#include "ftax/error.hpp"
#include "predictors/host/operator_host.hpp"
#include "predictors/kernels/sustained.hpp"

namespace ftax::fit {
namespace {

using kernels::ConvAlgorithm;
using kernels::ConvParameters;
using kernels::DeviceRates;

enum HostUnknown : std::size_t { host_start, host_slope, host_curvature };

using DeviceRows = std::map<std::string, std::vector<const ConvRow*>>;

template <class T>
ConvParameters<T> parameters_of(const T* shared, const T* architecture) {
    ConvParameters<T> p;
    visit_parameters(p, [&](std::string_view, T& value, const ParameterSpec& spec) {
        value = spec.scope == ParameterScope::architecture ? *architecture++ : *shared++;
    });
    return p;
}

template <class T>
DeviceRates<T> rates_of(const DeviceSpec& device, MathPath path, const T* sustained) {
    kernels::SustainedParameters<T> p;
    visit_parameters(p, device, [&](std::string_view, T& value, const ParameterSpec&) { value = *sustained++; });
    return kernels::device_rates(device, path, p);
}

/// Blocks: shared, architecture, device, host. The first shared unknown is the launch share.
struct ConvModel {
    const ConvRow* row;
    double power_control_time_s;

    template <class T>
    T operator()(T const* const* blocks) const {
        const auto p = parameters_of(blocks[0] + 1, blocks[1]);
        const auto rates = rates_of(*row->device, row->path, blocks[2]);
        const auto plan = row->algorithm ? kernels::convolution::plan_algorithm(
                                               *row->algorithm, kernels::conv_counts(row->shape), row->shape, rates, p)
                                         : kernels::plan(row->shape, rates, p);
        const T* host = blocks[3];
        const T host_s = conv_host_s(row->order, host[host_start], host[host_slope], host[host_curvature]);
        const T kernel_s = kernels::within_power<T>(plan, T(power_control_time_s));
        return operator_latency_s(host_s, blocks[0][0], kernel_s);
    }
};

LogFit::Block declared(ParameterScope scope) {
    LogFit::Block block;
    ConvParameters<double> p;
    visit_parameters(p, [&](std::string_view name, double&, const ParameterSpec& spec) {
        const bool wanted = (spec.scope == ParameterScope::architecture) == (scope == ParameterScope::architecture);
        if (wanted) block.push_back(unknown(std::string(name), spec));
    });
    return block;
}

/// The unknown of a call of that name.
LogFit::Block declared_call(std::string_view wanted) {
    LogFit::Block block;
    OperatorHostParameters<double> p;
    visit_parameters(p, [&](std::string_view name, double&, const ParameterSpec& spec) {
        if (name == wanted) block.push_back(unknown(std::string(name), spec));
    });
    return block;
}

/// Clock and bandwidth of a device; what f32 rows say nothing about stays as declared.
LogFit::Block declared(const DeviceSpec& device) {
    LogFit::Block block;
    kernels::SustainedParameters<double> p;
    visit_parameters(p, device, [&](std::string_view name, double&, const ParameterSpec& spec) {
        block.push_back(unknown(std::string(name), spec));
        block.back().fixed = name != "clock.fp32" && name != "bandwidth";
    });
    return block;
}

ScopedUnknowns unknowns_for(const DeviceRows& rows, const ConvFitOptions& options) {
    ScopedUnknowns unknowns{.shared = declared_call("operator.conv_launch_share")};
    for (Unknown& u : declared(ParameterScope::shared)) unknowns.shared.push_back(std::move(u));
    for (const auto& [slug, of_device] : rows) {
        unknowns.architectures[of_device.front()->device->architecture] = declared(ParameterScope::architecture);
        unknowns.devices[slug] = declared(*of_device.front()->device);
        hold(unknowns.devices[slug], options.held, slug);
        for (const char* name : {"operator.conv_start_s", "operator.conv_slope_s", "operator.conv_curvature_s"}) {
            for (Unknown& u : declared_call(name)) unknowns.hosts[slug].push_back(std::move(u));
        }
    }
    return unknowns;
}

void fix(LogFit::Block& block) {
    for (Unknown& u : block) u.fixed = true;
}

/// Fits what is not fixed in `unknowns` to an even selection of `rows`.
FitSummary fit_rows(const DeviceRows& rows, ScopedUnknowns& unknowns, const ConvFitOptions& options) {
    LogFit fit(options.fit);
    const std::size_t shared = fit.add_block(unknowns.shared);
    std::map<Architecture, std::size_t> architectures;
    for (const auto& [architecture, block] : unknowns.architectures) architectures[architecture] = fit.add_block(block);
    std::map<std::string, std::pair<std::size_t, std::size_t>> devices;
    for (const auto& [slug, of_device] : rows) {
        const auto& [device, host] =
            devices[slug] = {fit.add_block(unknowns.devices.at(slug)), fit.add_block(unknowns.hosts.at(slug))};
        const std::size_t architecture = architectures.at(of_device.front()->device->architecture);
        const std::size_t count = std::min(of_device.size(), options.rows_per_device);
        for (std::size_t i = 0; i < count; ++i) {
            const ConvRow* row = of_device[i * of_device.size() / count];
            fit.add_row(ConvModel{row, options.power_control_time_s}, row->latency_s,
                        {shared, architecture, device, host});
        }
    }
    const FitSummary summary = fit.solve();
    unknowns.shared = fit.block(shared);
    for (const auto& [architecture, index] : architectures) unknowns.architectures[architecture] = fit.block(index);
    for (const auto& [slug, blocks] : devices) {
        unknowns.devices[slug] = fit.block(blocks.first);
        unknowns.hosts[slug] = fit.block(blocks.second);
    }
    return summary;
}

/// log(predicted / measured) of every row, the algorithm chosen by the model.
std::vector<double> log_errors(const std::vector<const ConvRow*>& rows, const ScopedUnknowns& unknowns,
                               const std::string& slug, double power_control_time_s) {
    const auto shared = values(unknowns.shared);
    const auto architecture = values(unknowns.architectures.at(rows.front()->device->architecture));
    const auto device = values(unknowns.devices.at(slug));
    const auto host = values(unknowns.hosts.at(slug));
    const double* blocks[] = {shared.data(), architecture.data(), device.data(), host.data()};
    std::vector<double> errors;
    for (const ConvRow* row : rows) {
        ConvRow unseen = *row;
        unseen.algorithm.reset();
        errors.push_back(std::log(ConvModel{&unseen, power_control_time_s}(blocks) / row->latency_s));
    }
    return errors;
}

Fold fold_of(std::string name, const std::map<std::string, std::vector<double>>& errors) {
    Fold fold{.name = std::move(name)};
    for (const auto& [slug, of_device] : errors) {
        fold.groups.push_back(summarize(slug, of_device));
        fold.mean += fold.groups.back().mean / static_cast<double>(errors.size());
    }
    return fold;
}

/// Expects of a device the geometric mean of what the others showed.
LogFit::Block expected(const std::map<std::string, LogFit::Block>& others) {
    LogFit::Block mean = others.begin()->second;
    for (std::size_t i = 0; i < mean.size(); ++i) {
        double log_sum = 0;
        for (const auto& [slug, block] : others) log_sum += std::log(block[i].value);
        mean[i].value = std::exp(log_sum / static_cast<double>(others.size()));
    }
    return mean;
}

/// Leaves out one device at a time. What its host cost is no property of the device: `known` holds it.
void add_left_out_folds(const DeviceRows& rows, const ScopedUnknowns& known, const ConvFitOptions& options,
                        FitReport& report) {
    std::map<std::string, std::vector<double>> blind, host_known, measured;
    for (const auto& [slug, of_device] : rows) {
        DeviceRows others = rows;
        others.erase(slug);
        if (others.empty()) return;
        ScopedUnknowns unknowns = unknowns_for(others, options);
        (void)fit_rows(others, unknowns, options);
        const Architecture architecture = of_device.front()->device->architecture;
        unknowns.architectures.try_emplace(
            architecture, block_of_kin(architecture, unknowns.architectures, declared(ParameterScope::architecture)));

        LogFit::Block device = declared(*of_device.front()->device);
        const LogFit::Block mean = expected(unknowns.devices);
        for (std::size_t i = 0; i < device.size(); ++i) {
            if (!mean[i].fixed) device[i].value = mean[i].value;  // what was held has its datasheet's expectation
        }
        const LogFit::Block host = expected(unknowns.hosts);
        unknowns.devices[slug] = device;
        unknowns.hosts[slug] = host;
        blind[slug] = log_errors(of_device, unknowns, slug, options.power_control_time_s);
        unknowns.hosts[slug] = known.hosts.at(slug);
        host_known[slug] = log_errors(of_device, unknowns, slug, options.power_control_time_s);

        fix(unknowns.shared);
        for (auto& [_, block] : unknowns.architectures) fix(block);
        fix(unknowns.hosts.at(slug));
        (void)fit_rows({{slug, of_device}}, unknowns, options);
        measured[slug] = log_errors(of_device, unknowns, slug, options.power_control_time_s);
    }
    report.folds.push_back(fold_of("left out: datasheet, host of the others", blind));
    report.folds.push_back(fold_of("left out: datasheet, host known", host_known));
    report.folds.push_back(fold_of("left out: clock and bandwidth measured, host known", measured));
}

void add_parameters(const LogFit::Block& block, ParameterScope scope, const std::string& key, const std::string& source,
                    double divisor, std::vector<ScopedParameter>& parameters) {
    for (const Unknown& u : block) {
        if (u.fixed || is_unseen(u)) continue;  // tensor cores, groups: whole models tell
        parameters.push_back({{u.name, u.value / divisor, u.relative_stddev, source}, scope, key});
    }
}

}  // namespace

std::optional<ConvAlgorithm> conv_algorithm_from_kernel(std::string_view names) {
    const auto has = [&](std::string_view part) { return names.find(part) != names.npos; };
    if (has("winogradForwardData") || has("winogradforwarddata")) return ConvAlgorithm::winograd_nonfused;
    if (has("_winograd_")) return ConvAlgorithm::winograd_fused;
    if (has("fft")) return std::nullopt;
    if (has("scudnn") || has("convolve_sgemm")) return ConvAlgorithm::implicit_gemm;
    return std::nullopt;
}

ConvRow conv_row(const OperatorMeasurement& measured, const DeviceSpec& device, double order) {
    const auto dimension = [&](const std::string& name) {
        const auto found = measured.shape.find(name);
        if (found == measured.shape.end() || found->second < (name == "pad" ? 0 : 1)) {
            throw Error(ErrorCode::profile,
                        "line " + std::to_string(measured.line) + ": a conv row needs a shape with a positive " + name);
        }
        return found->second;
    };
    ConvRow row{.device = &device, .latency_s = measured.latency_s, .order = order};
    kernels::ConvShape& s = row.shape;
    s.batch = dimension("b");
    s.in_channels = dimension("cin");
    s.out_channels = dimension("cout");
    s.kernel_h = s.kernel_w = dimension("kernel");
    s.in_height = s.in_width = dimension("hw");
    s.stride_h = s.stride_w = dimension("stride");
    const std::int64_t padded = s.in_height + 2 * dimension("pad");
    if (padded < s.kernel_h) {
        throw Error(ErrorCode::profile,
                    "line " + std::to_string(measured.line) + ": the kernel is larger than the padded input");
    }
    s.out_height = s.out_width = (padded - s.kernel_h) / s.stride_h + 1;
    row.algorithm = conv_algorithm_from_kernel(measured.kernel);
    return row;
}

FitReport siblings_report(std::span<const ConvRow> rows, std::span<const FitReport> earlier) {
    std::map<std::string, const DeviceSpec*> devices;
    for (const ConvRow& row : rows) devices[row.device->slug] = row.device;
    FitReport report{.kernel_class = "siblings", .converged = true};
    for (const auto& [slug, device] : devices) {
        for (const std::string name : {"clock.fp32", "bandwidth"}) {
            double log_sum = 0, count = 0;
            bool known = false;
            for (const FitReport& fitted : earlier) {
                for (const ScopedParameter& p : fitted.parameters) {
                    if (p.scope != ParameterScope::device || p.parameter.name != name) continue;
                    known = known || p.key == slug;
                    if (device_spec(p.key).architecture != device->architecture) continue;
                    log_sum += std::log(p.parameter.value);
                    ++count;
                }
            }
            if (known || count == 0) continue;
            const Parameter taken{name, std::exp(log_sum / count), 0,
                                  "inherited from " + std::string(name_of(device->architecture))};
            report.parameters.push_back({taken, ParameterScope::device, slug});
        }
    }
    return report;
}

FitReport fit_conv(std::span<const ConvRow> rows, const ConvFitOptions& options) {
    DeviceRows by_device;
    for (const ConvRow& row : rows) by_device[row.device->slug].push_back(&row);
    FitReport report{.kernel_class = "conv"};
    if (by_device.empty()) return report;

    ScopedUnknowns unknowns = unknowns_for(by_device, options);
    report.converged = fit_rows(by_device, unknowns, options).converged;

    std::map<std::string, std::vector<double>> in_fit;
    std::map<std::string, std::vector<double>> regions;
    for (const auto& [slug, of_device] : by_device) {
        in_fit[slug] = log_errors(of_device, unknowns, slug, options.power_control_time_s);
        for (std::size_t i = 0; i < of_device.size(); ++i) {
            const auto& algorithm = of_device[i]->algorithm;
            regions[slug + " " + std::string(algorithm ? name_of(*algorithm) : "other")].push_back(in_fit[slug][i]);
        }
    }
    report.folds.push_back(fold_of("in the fit", in_fit));
    for (auto& [name, errors] : regions) report.regions.push_back(summarize(name, errors));
    if (options.folds) add_left_out_folds(by_device, unknowns, options, report);

    const std::string source = "fitted: conv rows, " + std::to_string(rows.size());
    const LogFit::Block call(unknowns.shared.begin(), unknowns.shared.begin() + 1);
    const LogFit::Block shared(unknowns.shared.begin() + 1, unknowns.shared.end());
    add_parameters(call, ParameterScope::shared, "", source, 1, report.nuisance);
    add_parameters(expected(unknowns.hosts), ParameterScope::shared, "", source + "; mean of the hosts", 1,
                   report.nuisance);
    add_parameters(shared, ParameterScope::shared, "", source, 1, report.parameters);
    for (const auto& [architecture, block] : unknowns.architectures) {
        add_parameters(block, ParameterScope::architecture, std::string(name_of(architecture)), source, 1,
                       report.parameters);
    }
    for (const auto& [slug, block] : unknowns.devices) {
        add_parameters(block, ParameterScope::device, slug, source, 1, report.parameters);
    }
    for (const auto& [slug, block] : unknowns.hosts) {
        const auto scale = options.host_scales.find(slug);
        add_parameters(block, ParameterScope::device, slug, source,
                       scale == options.host_scales.end() ? 1 : scale->second, report.nuisance);
    }
    return report;
}

}  // namespace ftax::fit
