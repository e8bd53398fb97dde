#include "calibration/fit/quantized_fit.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "ftax/precision.hpp"
#include "predictors/kernels/mixture.hpp"
#include "predictors/kernels/quantized.hpp"
#include "predictors/operator_model.hpp"

namespace ftax::fit {
namespace {

using kernels::DeviceRates;
using kernels::TensorGemmParameters;

/// Rates and ratios that the fit does not move.
template <class T>
DeviceRates<T> frozen(const DeviceRates<double>& rates) {
    DeviceRates<T> result;
    static_cast<kernels::DeviceCounts&>(result) = rates;
    result.flops_per_s = T(rates.flops_per_s);
    result.fp32_flops_per_s = T(rates.fp32_flops_per_s);
    result.bandwidth_bytes_per_s = T(rates.bandwidth_bytes_per_s);
    result.floor_s = T(rates.floor_s);
    return result;
}

template <class T>
TensorGemmParameters<T> frozen(const TensorGemmParameters<double>& p) {
    std::vector<double> in_order;
    TensorGemmParameters<double> copy = p;
    visit_parameters(copy, [&](auto&&, double& value, const ParameterSpec&) { in_order.push_back(value); });
    TensorGemmParameters<T> result;
    auto next = in_order.begin();
    visit_parameters(result, [&](auto&&, T& value, const ParameterSpec&) { value = T(*next++); });
    return result;
}

struct QuantizedProblem {
    using Row = QuantizedRow;
    template <class T>
    using Parameters = kernels::QuantizedParameters<T>;

    template <class T>
    static T latency_s(const Row& row, const Parameters<T>& p) {
        const PrecisionSpec& precision = precision_spec(row.shape.operands);
        const auto rates = frozen<T>(row.models->at(precision.path));
        const auto half = frozen<T>(row.models->parameters.tensor_gemm);
        const auto product = plan(row.shape, rates, kernels::quantized::parameters(precision, half, p));
        const kernels::QuantizeShape operands{row.shape.m, row.shape.k, row.shape.operands};
        return kernels::within_power<T>(product) + plan(operands, rates, half, p).seconds + 2 * graph_gap_s;
    }
    static std::uint64_t shape_of(const Row& row) {
        return static_cast<std::uint64_t>(row.shape.m * 73856093 ^ row.shape.n * 19349663 ^ row.shape.k * 83492791);
    }
    static std::string group_of(const Row& row) { return row.device->slug; }
};

struct MixtureProblem {
    using Row = MixtureRow;
    template <class T>
    using Parameters = kernels::MixtureParameters<T>;

    template <class T>
    static T latency_s(const Row& row, const Parameters<T>& p) {
        const bool quantized = row.shape.operands != Precision::fp32;
        const auto rates =
            frozen<T>(row.models->at(quantized ? precision_spec(row.shape.operands).path : MathPath::bf16_tensor));
        return plan(row.shape, rates, frozen<T>(row.models->parameters.tensor_gemm), p).seconds + graph_gap_s;
    }
    static std::uint64_t shape_of(const Row& row) {
        const kernels::MixtureShape& s = row.shape;
        return static_cast<std::uint64_t>(s.tokens * 73856093 ^ s.hidden * 19349663 ^ s.width * 83492791 ^
                                          s.experts * 49979687 ^ s.per_token * 15485863);
    }
    static std::string group_of(const Row& row) {
        return row.device->slug + (row.shape.operands == Precision::fp32 ? " 16 bits" : " fp8");
    }
};

/// Whether any card of a generation has the units of a family of kernels.
bool has_units(std::string_view generation, QuantizedKernels family) {
    return std::any_of(device_specs().begin(), device_specs().end(), [&](const DeviceSpec& device) {
        return name_of(device.architecture) == generation &&
               std::any_of(precision_specs().begin(), precision_specs().end(), [&](const PrecisionSpec& precision) {
                   return precision.kernels == family && runs(device, precision);
               });
    });
}

/// The shape of a row that is timed alone in a precision which its device runs.
template <class Shape>
std::optional<Shape> shape_alone(const OperatorMeasurement& measured, const DeviceSpec& device) {
    if (measured.mode != "device_hot" || !runs(device, precision_spec(measured.precision))) return std::nullopt;
    const auto shape = operator_shape(measured);
    if (!shape || !std::holds_alternative<Shape>(*shape)) return std::nullopt;
    return std::get<Shape>(*shape);
}

}  // namespace

std::optional<QuantizedRow> quantized_row(const OperatorMeasurement& measured, const KernelModels<double>& models,
                                          const DeviceSpec& device) {
    if (measured.op != "gemm" || !precision_spec(measured.precision).quantizes_activations()) return std::nullopt;
    const auto shape = shape_alone<kernels::GemmShape>(measured, device);
    if (!shape) return std::nullopt;
    return QuantizedRow{&device, &models, *shape, measured.latency_s};
}

std::optional<MixtureRow> mixture_row(const OperatorMeasurement& measured, const KernelModels<double>& models,
                                      const DeviceSpec& device) {
    if (measured.op != "moe") return std::nullopt;
    const auto shape = shape_alone<kernels::MixtureShape>(measured, device);
    if (!shape) return std::nullopt;
    return MixtureRow{&device, &models, *shape, measured.latency_s};
}

std::vector<FitReport> fit_quantized(std::span<const QuantizedRow> rows, const GenerationFitOptions& options) {
    const GenerationFit<QuantizedProblem> fit(options);
    std::vector<FitReport> reports;
    for (const QuantizedKernels family :
         {QuantizedKernels::fp8, QuantizedKernels::fp8_block, QuantizedKernels::nvfp4}) {
        std::vector<QuantizedRow> own;
        for (const QuantizedRow& row : rows) {
            if (precision_spec(row.shape.operands).kernels == family) own.push_back(row);
        }
        if (own.empty()) continue;
        reports.push_back(fit.run(std::string(precision_spec(own.front().shape.operands).name), own));
        std::erase_if(reports.back().parameters, [&](const ScopedParameter& p) {
            return p.scope == ParameterScope::architecture && !has_units(p.key, family);
        });
    }
    return reports;
}

FitReport fit_mixture(std::span<const MixtureRow> rows, const GenerationFitOptions& options) {
    return GenerationFit<MixtureProblem>(options).run("moe", rows);
}

std::vector<FitReport> fit_on_tensor_gemm(std::span<const std::pair<const DeviceSpec*, OperatorMeasurement>> rows,
                                          const DeviceProfileFile& profile, const GenerationFitOptions& options) {
    std::map<std::string, KernelModels<double>> models;
    std::vector<QuantizedRow> quantized;
    std::vector<MixtureRow> mixtures;
    for (const auto& [device, measured] : rows) {
        auto own = models.find(device->slug);
        if (own == models.end()) {
            own =
                models
                    .emplace(device->slug, KernelModels<double>(*device, kernel_parameters(compose(profile, *device))))
                    .first;
        }
        if (const auto row = quantized_row(measured, own->second, *device)) quantized.push_back(*row);
        if (const auto row = mixture_row(measured, own->second, *device)) mixtures.push_back(*row);
    }
    std::vector<FitReport> reports = fit_quantized(quantized, options);
    if (!mixtures.empty()) reports.push_back(fit_mixture(mixtures, options));
    return reports;
}

}  // namespace ftax::fit
