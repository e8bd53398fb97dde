#include "calibration/fit/scoped_fit.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "graphs/base/mapped.hpp"
#include "graphs/base/statistics.hpp"
#include "predictors/kernels/sustained.hpp"

namespace ftax::fit {
namespace {

using kernels::SustainedParameters;
using Places = std::vector<std::size_t>;  // indices of rows

const DeviceSpec& device_of(const ScopedRow& row) {
    static const DeviceSpec none;
    return row.device ? *row.device : none;
}

std::string host_of(const ScopedRow& row) {
    return row.host.empty() ? device_of(row).slug : row.host;
}

std::string key_of(const ScopedRow& row) {
    return row.key.empty() ? device_of(row).slug : row.key;
}

std::vector<double> values(const LogFit::Block& block) {
    return mapped(block, &Unknown::value);
}

/// Selects rows evenly from each stratum of each device.
Places selection(const ScopedFit& fit, const Places& rows) {
    std::map<std::pair<std::string, std::string>, Places> strata;
    for (const std::size_t i : rows)
        if (fit.rows[i].fitted) strata[{device_of(fit.rows[i]).slug, fit.rows[i].stratum}].push_back(i);
    Places selected;
    for (const auto& [_, stratum] : strata) {
        const std::size_t count = std::min(stratum.size(), fit.rows_per_stratum);
        for (std::size_t i = 0; i < count; ++i) selected.push_back(stratum[i * stratum.size() / count]);
    }
    return selected;
}

/// How much of a fitted value the rows determine rather than its prior: from 0, none of it, to 1.
double evidence(const Unknown& u) {
    if (u.prior_log_stddev <= 0) return 1;
    const double left = u.relative_stddev / u.prior_log_stddev;
    return std::clamp(1 - left * left, 1e-6, 1.0);
}

double geometric_mean(const std::vector<double>& values) {
    double log_sum = 0;
    for (const double value : values) log_sum += std::log(value);
    return std::exp(log_sum / static_cast<double>(values.size()));
}

/// Fixes the unknowns of a device that other rows determine better.
void hold(LogFit::Block& block, std::span<const ScopedParameter> held, const std::string& device_slug) {
    for (const ScopedParameter& known : held) {
        if (known.scope != ParameterScope::device || known.key != device_slug) continue;
        for (Unknown& u : block) {
            if (u.name != known.parameter.name) continue;
            u.value = known.parameter.value;
            u.fixed = true;
        }
    }
}

ScopedUnknowns declared_unknowns(const ScopedFit& fit, const Places& rows) {
    ScopedUnknowns unknowns{.shared = fit.shared};
    for (const std::size_t i : rows) {
        const DeviceSpec& device = device_of(fit.rows[i]);
        if (!unknowns.architectures.contains(device.architecture))
            unknowns.architectures[device.architecture] =
                fit.architecture_of ? fit.architecture_of(device) : fit.architecture;
        if (!unknowns.devices.contains(device.slug)) {
            unknowns.devices[device.slug] = fit.device ? fit.device(device) : LogFit::Block{};
            hold(unknowns.devices[device.slug], fit.held, device.slug);
        }
        unknowns.hosts.try_emplace(host_of(fit.rows[i]), fit.host);
    }
    return unknowns;
}

template <class Visit>
void for_each_block(ScopedUnknowns& unknowns, const Visit& visit) {
    visit(unknowns.shared);
    for (auto& [_, block] : unknowns.architectures) visit(block);
    for (auto& [_, block] : unknowns.devices) visit(block);
    for (auto& [_, block] : unknowns.hosts) visit(block);
}

/// Fits the free parameters in `unknowns` to a selection of the rows.
bool fit_once(const ScopedFit& fit, const Places& rows, bool start_once, ScopedUnknowns& unknowns) {
    FitOptions options = fit.options;
    if (start_once) options.starts = 1;
    LogFit problem(options);
    std::map<const LogFit::Block*, std::size_t> places;
    for_each_block(unknowns, [&](LogFit::Block& block) { places[&block] = problem.add_block(block); });
    for (const std::size_t i : selection(fit, rows)) {
        const ScopedRow& row = fit.rows[i];
        const auto model = [&fit, i](double const* const* blocks) {
            return fit.latency_s(i, {blocks[0], blocks[1], fit.device ? blocks[2] : nullptr, blocks[3]}, false);
        };
        problem.add_row(
            model, row.latency_s,
            {places.at(&unknowns.shared), places.at(&unknowns.architectures.at(device_of(row).architecture)),
             places.at(&unknowns.devices.at(device_of(row).slug)), places.at(&unknowns.hosts.at(host_of(row)))});
    }
    const bool converged = problem.solve();
    for_each_block(unknowns, [&](LogFit::Block& block) { block = problem.block(places.at(&block)); });
    return converged;
}

/// Fits in rounds, each with priors centred on what the last one found.
bool fit_rows(const ScopedFit& fit, const Places& rows, ScopedUnknowns& unknowns, bool start_once = false) {
    ScopedUnknowns centres = unknowns;
    bool converged = false;
    for (int round = 0; round < fit.rounds; ++round) {
        unknowns = centres;
        converged = fit_once(fit, rows, start_once || round > 0, unknowns);
        if (fit.centre != Centre::none) {
            const LogFit::Block centre = centre_of(fit.centre, unknowns.architectures);
            for (auto& [_, block] : centres.architectures)
                for (std::size_t i = 0; i < block.size(); ++i)
                    if (!block[i].fixed) block[i].value = centre[i].value;
        }
        if (round == 0 && fit.centre_shared) centres.shared = unknowns.shared;
    }
    return converged;
}

using ErrorsByGroup = std::map<std::string, std::vector<double>>;  // log(predicted / measured)

Fold fold_of(std::string name, const ErrorsByGroup& errors) {
    Fold fold{.name = std::move(name)};
    std::vector<double> all;
    for (const auto& [group, of_group] : errors) {
        all.insert(all.end(), of_group.begin(), of_group.end());
        fold.groups.push_back(summarize(group, of_group));
        fold.mean += fold.groups.back().mean / static_cast<double>(errors.size());
    }
    fold.all = summarize("all", all);
    return fold;
}

struct Errors {
    std::map<std::string, std::map<std::string, ErrorsByGroup>> by_suffix{};  ///< of the fold's name, then by class

    void add(const ScopedFit& fit, const Places& rows, const ScopedUnknowns& unknowns) {
        const std::vector<double> shared = values(unknowns.shared);
        for (const std::size_t i : rows) {
            const ScopedRow& row = fit.rows[i];
            const DeviceSpec& device = device_of(row);
            const auto of_architecture = values(unknowns.architectures.at(device.architecture));
            const auto of_device = values(unknowns.devices.at(device.slug));
            const auto of_host = values(unknowns.hosts.at(host_of(row)));
            const ScopedValues of_row{shared.data(), of_architecture.data(), fit.device ? of_device.data() : nullptr,
                                      of_host.data()};
            const double error = std::log(fit.latency_s(i, of_row, true) / row.latency_s);
            const std::string group = row.group.empty() ? device.slug : row.group;
            by_suffix[""][row.fold_class][group].push_back(error);
            if (row.usual && !fit.usual_suffix.empty())
                by_suffix[", " + fit.usual_suffix][row.fold_class][group].push_back(error);
        }
    }

    void report(const ScopedFit& fit, const std::string& name, FitReport& report) const {
        for (const auto& [suffix, classes] : by_suffix) {
            for (const auto& [fold_class, by_group] : classes) {
                report.folds.push_back(fold_of(name + suffix, by_group));
                report.folds.back().row_class = fold_class.empty() ? fit.kernel_class : fold_class;
            }
        }
    }
};

/// Expects of a generation without rows the values of its nearest kin, as `compose` does, or else the declared ones.
LogFit::Block block_of_kin(const ScopedFit& fit, Architecture wanted, const ScopedUnknowns& fitted) {
    for (const Architecture kin : kin_of(wanted))
        if (const auto found = fitted.architectures.find(kin); found != fitted.architectures.end())
            return found->second;
    return fit.architecture;
}

/// Expected block of a device without rows: what its datasheet lets expect, where wanted times the mean ratio of what
/// other devices have to what their datasheets let expect.
LogFit::Block expected_device(const ScopedFit& fit, const DeviceSpec& wanted, const ScopedUnknowns& fitted,
                              const std::map<std::string, const DeviceSpec*>& datasheets) {
    LogFit::Block block = fit.device ? fit.device(wanted) : LogFit::Block{};
    if (!fit.expects_device_of_others) return block;
    for (std::size_t i = 0; i < block.size(); ++i) {
        std::vector<double> ratios;
        for (const auto& [slug, own] : fitted.devices)
            ratios.push_back(own[i].value / fit.device(*datasheets.at(slug))[i].value);
        if (!block[i].fixed) block[i].value *= geometric_mean(ratios);
    }
    return block;
}

/// Leaves out one device at a time, or the rows of one key.
void add_left_out_folds(const ScopedFit& fit, const ScopedUnknowns& known, FitReport& report) {
    std::map<std::string, Places> by_key;
    std::map<std::string, const DeviceSpec*> datasheets;
    for (std::size_t i = 0; i < fit.rows.size(); ++i) {
        by_key[key_of(fit.rows[i])].push_back(i);
        datasheets[device_of(fit.rows[i]).slug] = &device_of(fit.rows[i]);
    }
    if (by_key.size() < 2) return;
    std::vector<Errors> errors(fit.left_out_folds.size());
    for (const auto& [key, own] : by_key) {
        const DeviceSpec& device = device_of(fit.rows[own.front()]);
        const std::string& slug = device.slug;
        Places others;
        for (std::size_t i = 0; i < fit.rows.size(); ++i)
            if (key_of(fit.rows[i]) != key) others.push_back(i);
        if (fit.forget) fit.forget(device);
        ScopedUnknowns blind = declared_unknowns(fit, others);
        (void)fit_rows(fit, others, blind, fit.folds_start_once);
        const LogFit::Block host = expected_host(fit, blind.hosts);
        if (!blind.architectures.contains(device.architecture))
            blind.architectures[device.architecture] = fit.expects_kin ? block_of_kin(fit, device.architecture, blind)
                                                                       : centre_of(fit.centre, blind.architectures);
        if (!blind.devices.contains(slug)) blind.devices[slug] = expected_device(fit, device, blind, datasheets);
        for (std::size_t f = 0; f < fit.left_out_folds.size(); ++f) {
            const LeftOutFold& fold = fit.left_out_folds[f];
            ScopedUnknowns unknowns = blind;
            for (const std::size_t i : own) {
                const std::string machine = host_of(fit.rows[i]);
                unknowns.hosts.try_emplace(machine, fold.host_known ? known.hosts.at(machine) : host);
            }
            if (fold.device == LeftOutFold::Device::fitted) unknowns.devices[slug] = known.devices.at(slug);
            if (fold.device == LeftOutFold::Device::refitted) {
                LogFit::Block own_block = unknowns.devices.at(slug);
                for_each_block(unknowns, [](LogFit::Block& block) {
                    for (Unknown& u : block) u.fixed = true;
                });
                unknowns.devices.at(slug) = std::move(own_block);
                if (fit.prepare_refit) fit.prepare_refit(device, unknowns);
                (void)fit_once(fit, own, true, unknowns);
            }
            errors[f].add(fit, own, unknowns);
        }
    }
    for (std::size_t f = 0; f < errors.size(); ++f) errors[f].report(fit, fit.left_out_folds[f].name, report);
}

}  // namespace

ErrorSummary summarize(std::string group, const std::vector<double>& log_errors) {
    const auto absolute = [](double e) { return std::abs(std::expm1(e)); };
    const double bias = log_errors.empty() ? 0 : upper_median(log_errors);
    return {error_figures(mapped(log_errors, absolute)), std::move(group), bias};
}

LogFit::Block declared_sustained(const DeviceSpec& device, std::vector<std::string_view> free) {
    LogFit::Block block = declared<SustainedParameters>({}, device);
    for (Unknown& u : block) u.fixed = std::ranges::find(free, u.name) == free.end();
    return block;
}

kernels::DeviceRates take_rates(const DeviceSpec& device, MathPath path, ScopedValues& next) {
    return kernels::device_rates(device, path, take_all<SustainedParameters>(next, device));
}

LogFit::Block centre_of(Centre centre, const std::map<Architecture, LogFit::Block>& fitted) {
    LogFit::Block block = fitted.begin()->second;
    for (std::size_t i = 0; i < block.size(); ++i) {
        std::vector<double> logs;
        double log_sum = 0, weights = 0;
        for (const auto& [_, own] : fitted) {
            if (own[i].fixed) continue;
            logs.push_back(std::log(own[i].value));
            log_sum += evidence(own[i]) * logs.back();
            weights += evidence(own[i]);
        }
        if (!logs.empty()) block[i].value = std::exp(centre == Centre::median ? median(logs) : log_sum / weights);
    }
    return block;
}

LogFit::Block expected_host(const ScopedFit& fit, const std::map<std::string, LogFit::Block>& others) {
    LogFit::Block block = fit.host;
    for (std::size_t i = 0; i < block.size(); ++i) {
        std::vector<double> found = mapped(others, [&](const auto& other) { return other.second[i].value; });
        block[i].value = fit.expected_host ? fit.expected_host(std::move(found)) : geometric_mean(found);
        block[i].relative_stddev = others.begin()->second[i].relative_stddev;
        block[i].log_shift = others.begin()->second[i].log_shift;
    }
    return block;
}

ScopedResult solve(const ScopedFit& fit) {
    ScopedResult result{{.kernel_class = fit.kernel_class}, {}};
    if (fit.rows.empty()) return result;
    Places all(fit.rows.size()), kept, left_out;
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = i;
        (fit.rows[i].held_out ? left_out : kept).push_back(i);
    }
    result.unknowns = declared_unknowns(fit, all);
    result.report.converged = fit_rows(fit, all, result.unknowns);
    if (fit.in_fit_fold) {
        Errors errors;
        errors.add(fit, all, result.unknowns);
        errors.report(fit, "in the fit", result.report);
    }
    if (!fit.folds) return result;
    if (!fit.held_out_fold.empty() && !kept.empty()) {
        ScopedUnknowns without = declared_unknowns(fit, all);
        (void)fit_rows(fit, kept, without);
        Errors errors;
        errors.add(fit, left_out, without);
        errors.report(fit, fit.held_out_fold, result.report);
    }
    if (!fit.left_out_folds.empty()) add_left_out_folds(fit, result.unknowns, result.report);
    return result;
}

void add_parameters(const LogFit::Block& block, ParameterScope scope, const std::string& key, const std::string& source,
                    FitReport& report, double divisor, bool unseen_too) {
    for (const Unknown& u : block) {
        if (u.fixed || (!unseen_too && is_unseen(u))) continue;
        auto& parameters = u.name.starts_with("operator.") ? report.nuisance : report.parameters;
        parameters.push_back({{u.name, u.value / divisor, u.relative_stddev, source}, scope, key});
    }
}

std::string source_of(const ScopedFit& fit) {
    const std::string rows = fit.rows_name.empty() ? fit.kernel_class + " rows" : fit.rows_name;
    return "fitted: " + rows + ", " + std::to_string(fit.rows.size());
}

void add_parameters(const ScopedFit& fit, const ScopedUnknowns& unknowns, FitReport& report,
                    bool unseen_of_devices_too) {
    const std::string source = source_of(fit);
    add_parameters(unknowns.shared, ParameterScope::shared, "", source, report);
    for (const auto& [key, block] : unknowns.architectures)
        add_parameters(block, ParameterScope::architecture, std::string(name_of(key)), source, report);
    for (const auto& [slug, block] : unknowns.devices)
        add_parameters(block, ParameterScope::device, slug, source, report, 1, unseen_of_devices_too);
}

ErrorSummary left_out_errors(const FitReport& report) {
    return report.folds.size() < 2 ? ErrorSummary{} : report.folds.back().all;
}

}  // namespace ftax::fit
