#include "calibration/fit/tensor_gemm_fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "calibration/fit/scoped_unknowns.hpp"
#include "predictors/kernels/sustained.hpp"
#include "predictors/kernels/tensor_gemm.hpp"
#include "predictors/operator_model.hpp"

namespace ftax::fit {
namespace {

using kernels::DeviceRates;
using kernels::SustainedParameters;
using kernels::TensorGemmParameters;
using Rows = std::map<std::string, std::vector<const TensorGemmRow*>>;  // by device

/// What of a device no product on tensor cores tells: rates come from the datasheet.
template <class T>
DeviceRates<T> rates_of(const DeviceSpec& device, MathPath path) {
    SustainedParameters<T> p;
    visit_parameters(p, device, [](std::string_view, T& value, const ParameterSpec& spec) { value = T(spec.initial); });
    return kernels::device_rates(device, path, p);
}

/// Blocks: shared, generation. Sustained clocks are facts of a card here.
template <class T>
TensorGemmParameters<T> parameters_of(const T* shared, const T* generation) {
    TensorGemmParameters<T> p;
    visit_parameters(p, [&](std::string_view, T& value, const ParameterSpec& spec) {
        switch (spec.scope) {
            case ParameterScope::shared:
                value = *shared++;
                break;
            case ParameterScope::architecture:
                value = *generation++;
                break;
            case ParameterScope::device:
                value = T(spec.initial);
                break;
        }
    });
    return p;
}

template <class T>
T latency_s(const TensorGemmRow& row, const kernels::gemm::Choice& choice, const TensorGemmParameters<T>& p) {
    const auto plan = kernels::tensor_gemm::plan_choice(row.shape, choice, rates_of<T>(*row.device, row.path), p);
    return kernels::within_power<T>(plan) + graph_gap_s;
}

struct Model {
    const TensorGemmRow* row;
    kernels::gemm::Choice choice;

    template <class T>
    T operator()(T const* const* blocks) const {
        return latency_s(*row, choice, parameters_of(blocks[0], blocks[1]));
    }
};

LogFit::Block declared(ParameterScope scope) {
    LogFit::Block block;
    TensorGemmParameters<double> p;
    visit_parameters(p, [&](std::string_view name, double&, const ParameterSpec& spec) {
        if (spec.scope == scope) block.push_back(unknown(std::string(name), spec));
    });
    return block;
}

struct Unknowns {
    LogFit::Block shared;
    std::map<Architecture, LogFit::Block> generations;

    [[nodiscard]] TensorGemmParameters<double> of(const DeviceSpec& device) const {
        const auto common = values(shared), own = values(generations.at(device.architecture));
        return parameters_of(common.data(), own.data());
    }
};

/// Moves the centre of the generations' priors to the geometric mean of what their rows show.
void centre_on_mean(std::map<Architecture, LogFit::Block>& centres,
                    const std::map<Architecture, LogFit::Block>& fitted) {
    for (std::size_t i = 0; i < centres.begin()->second.size(); ++i) {
        double log_sum = 0;
        for (const auto& [_, block] : fitted) log_sum += std::log(block[i].value);
        for (auto& [_, block] : centres) block[i].value = std::exp(log_sum / static_cast<double>(fitted.size()));
    }
}

/// Fits the rows of several devices: kernels as the last values choose them, again and again.
Unknowns fit_rows(const Rows& rows, const TensorGemmFitOptions& options, bool& converged) {
    Unknowns unknowns{declared(ParameterScope::shared), {}};
    for (const auto& [_, of_device] : rows) {
        const DeviceSpec& device = *of_device.front()->device;
        unknowns.generations[device.architecture] = declared(ParameterScope::architecture);
    }
    Unknowns centres = unknowns;
    for (int round = 0; round < options.rounds; ++round) {
        LogFit fit(options.fit);
        const std::size_t shared = fit.add_block(centres.shared);
        std::map<Architecture, std::size_t> generations;
        for (const auto& [generation, block] : centres.generations) generations[generation] = fit.add_block(block);
        for (const auto& [_, of_device] : rows) {
            const DeviceSpec& device = *of_device.front()->device;
            const auto p = unknowns.of(device);
            const std::size_t count = std::min(of_device.size(), options.rows_per_device);
            for (std::size_t i = 0; i < count; ++i) {
                const TensorGemmRow& row = *of_device[i * of_device.size() / count];
                const auto choice = kernels::tensor_gemm::choose(row.shape, rates_of<double>(device, row.path), p);
                fit.add_row(Model{&row, choice}, row.latency_s, {shared, generations.at(device.architecture)});
            }
        }
        converged = fit.solve().converged;
        unknowns.shared = fit.block(shared);
        for (const auto& [generation, index] : generations) unknowns.generations[generation] = fit.block(index);
        centre_on_mean(centres.generations, unknowns.generations);
        if (round == 0) centres.shared = unknowns.shared;
    }
    return unknowns;
}

std::vector<double> log_errors(const std::vector<const TensorGemmRow*>& rows, const TensorGemmParameters<double>& p) {
    std::vector<double> errors;
    for (const TensorGemmRow* row : rows) {
        const auto choice = kernels::tensor_gemm::choose(row->shape, rates_of<double>(*row->device, row->path), p);
        errors.push_back(std::log(latency_s(*row, choice, p) / row->latency_s));
    }
    return errors;
}

/// A fifth of the shapes, the same on all devices.
bool is_held_out(const kernels::GemmShape& s) {
    return static_cast<std::uint64_t>(s.m * 73856093 ^ s.n * 19349663 ^ s.k * 83492791) % 5 == 4;
}

void add_fold(const std::string& name, std::map<std::string, std::vector<double>> errors, FitReport& report) {
    Fold fold{.name = name};
    for (auto& [slug, of_device] : errors) {
        fold.groups.push_back(summarize(slug, std::move(of_device)));
        fold.mean += fold.groups.back().mean / static_cast<double>(errors.size());
    }
    if (!fold.groups.empty()) report.folds.push_back(std::move(fold));
}

/// What a generation without rows expects: the mean of the others.
Unknowns with_generation(Unknowns unknowns, const DeviceSpec& device) {
    if (unknowns.generations.contains(device.architecture)) return unknowns;
    std::map<Architecture, LogFit::Block> mean = {{device.architecture, unknowns.generations.begin()->second}};
    centre_on_mean(mean, unknowns.generations);
    unknowns.generations.merge(mean);
    return unknowns;
}

void add_folds(const Rows& rows, const TensorGemmFitOptions& options, FitReport& report) {
    bool converged = false;
    std::map<std::string, std::vector<double>> errors;
    Rows kept, left_out;
    for (const auto& [slug, of_device] : rows) {
        for (const TensorGemmRow* row : of_device) (is_held_out(row->shape) ? left_out : kept)[slug].push_back(row);
    }
    Unknowns unknowns = fit_rows(kept, options, converged);
    for (const auto& [slug, of_device] : left_out) {
        errors[slug] = log_errors(of_device, unknowns.of(*of_device.front()->device));
    }
    add_fold("a fifth of the shapes left out", std::move(errors), report);
    errors.clear();
    for (const auto& [slug, of_device] : rows) {
        const DeviceSpec& device = *of_device.front()->device;
        Rows others = rows;
        others.erase(slug);
        if (others.empty()) return;
        unknowns = with_generation(fit_rows(others, options, converged), device);
        errors[slug] = log_errors(of_device, unknowns.of(device));
    }
    add_fold("the GPU left out", std::move(errors), report);
}

}  // namespace

std::optional<TensorGemmRow> tensor_gemm_row(const OperatorMeasurement& measured, const DeviceSpec& device) {
    if (measured.op != "gemm" || measured.mode != "device_hot") return std::nullopt;
    if (measured.precision != Precision::fp16 && measured.precision != Precision::bf16) return std::nullopt;
    const auto shape = operator_shape(measured);
    if (!shape) return std::nullopt;
    const MathPath path = measured.precision == Precision::fp16 ? MathPath::fp16_tensor : MathPath::bf16_tensor;
    return TensorGemmRow{&device, std::get<kernels::GemmShape>(*shape), path, measured.latency_s};
}

FitReport fit_tensor_gemm(std::span<const TensorGemmRow> rows, const TensorGemmFitOptions& options) {
    FitReport report{.kernel_class = "tensor_gemm"};
    Rows by_device;
    for (const TensorGemmRow& row : rows) by_device[row.device->slug].push_back(&row);
    if (by_device.empty()) return report;
    const Unknowns unknowns = fit_rows(by_device, options, report.converged);
    if (options.folds) add_folds(by_device, options, report);
    const auto add = [&](const LogFit::Block& block, ParameterScope scope, const std::string& key) {
        const std::string source = "fitted: gemm rows, " + std::to_string(rows.size());
        for (const Unknown& u : block) {
            if (!u.fixed && !is_unseen(u))
                report.parameters.push_back({{u.name, u.value, u.relative_stddev, source}, scope, key});
        }
    };
    add(unknowns.shared, ParameterScope::shared, "");
    for (const auto& [generation, block] : unknowns.generations) {
        add(block, ParameterScope::architecture, std::string(name_of(generation)));
    }
    return report;
}

}  // namespace ftax::fit
