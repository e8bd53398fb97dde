#include "calibration/fit/generation_fit.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "calibration/fit/scoped_fit.hpp"
#include "ftax/precision.hpp"
#include "predictors/kernels/mixture.hpp"
#include "predictors/kernels/quantized.hpp"
#include "predictors/kernels/tensor_gemm.hpp"
#include "predictors/operator_model.hpp"

namespace ftax::fit {
namespace {

double latency_s(const QuantizedRow& row, ScopedValues values) {
    const PrecisionSpec& precision = precision_spec(row.shape.operands);
    const auto& rates = row.models->at(precision.path);
    const auto& half = row.models->parameters.tensor_gemm;
    const auto p = take<kernels::QuantizedParameters>(values);
    const auto product = plan(row.shape, rates, kernels::quantized::parameters(precision, half, p));
    const kernels::QuantizeShape operands{row.shape.m, row.shape.k, row.shape.operands};
    return kernels::within_power(product) + plan(operands, rates, half, p).seconds + 2 * graph_gap_s;
}

bool is_quantized(const MixtureRow& row) {
    return row.shape.operands != Precision::fp32;
}

double latency_s(const MixtureRow& row, ScopedValues values) {
    const auto& rates =
        row.models->at(is_quantized(row) ? precision_spec(row.shape.operands).path : MathPath::bf16_tensor);
    const auto p = take<kernels::MixtureParameters>(values);
    return plan(row.shape, rates, row.models->parameters.tensor_gemm, p).seconds + graph_gap_s;
}

ScopedRow scoped_row(const QuantizedRow& row) {
    const kernels::GemmShape& s = row.shape;
    return {.device = row.device,
            .latency_s = row.latency_s,
            .held_out = is_held_out(s.m * 73856093 ^ s.n * 19349663 ^ s.k * 83492791)};
}

ScopedRow scoped_row(const MixtureRow& row) {
    const kernels::MixtureShape& s = row.shape;
    return {.device = row.device,
            .latency_s = row.latency_s,
            .group = row.device->slug + (is_quantized(row) ? " fp8" : " 16 bits"),
            .held_out = is_held_out(s.tokens * 73856093 ^ s.hidden * 19349663 ^ s.width * 83492791 ^
                                    s.experts * 49979687 ^ s.per_token * 15485863)};
}

template <class Parameters, class Row>
FitReport fit_rows(std::string kernel_class, std::span<const Row> rows, const GenerationFitOptions& options) {
    ScopedFit fit = generation_fit(std::move(kernel_class), options);
    fit.shared = declared<Parameters>(ParameterScope::shared);
    fit.architecture = declared<Parameters>(ParameterScope::architecture);
    for (const Row& row : rows) fit.rows.push_back(scoped_row(row));
    fit.latency_s = [&](std::size_t i, const ScopedValues& values, bool) { return latency_s(rows[i], values); };
    auto [report, unknowns] = solve(fit);
    add_generations(fit, unknowns, report);
    return report;
}

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

std::optional<QuantizedRow> quantized_row(const OperatorMeasurement& measured, const KernelModels& models,
                                          const DeviceSpec& device) {
    if (measured.op != "gemm" || !precision_spec(measured.precision).quantizes_activations()) return std::nullopt;
    const auto shape = shape_alone<kernels::GemmShape>(measured, device);
    if (!shape) return std::nullopt;
    return QuantizedRow{&device, &models, *shape, measured.latency_s};
}

std::optional<MixtureRow> mixture_row(const OperatorMeasurement& measured, const KernelModels& models,
                                      const DeviceSpec& device) {
    if (measured.op != "moe") return std::nullopt;
    const auto shape = shape_alone<kernels::MixtureShape>(measured, device);
    if (!shape) return std::nullopt;
    return MixtureRow{&device, &models, *shape, measured.latency_s};
}

std::vector<FitReport> fit_quantized(std::span<const QuantizedRow> rows, const GenerationFitOptions& options) {
    std::vector<FitReport> reports;
    for (const QuantizedKernels family :
         {QuantizedKernels::fp8, QuantizedKernels::fp8_block, QuantizedKernels::nvfp4}) {
        std::vector<QuantizedRow> own;
        for (const QuantizedRow& row : rows) {
            if (precision_spec(row.shape.operands).kernels == family) own.push_back(row);
        }
        if (own.empty()) continue;
        reports.push_back(fit_rows<kernels::QuantizedParameters, QuantizedRow>(
            std::string(precision_spec(own.front().shape.operands).name), own, options));
        std::erase_if(reports.back().parameters, [&](const ScopedParameter& p) {
            return p.scope == ParameterScope::architecture && !has_units(p.key, family);
        });
    }
    return reports;
}

FitReport fit_mixture(std::span<const MixtureRow> rows, const GenerationFitOptions& options) {
    return fit_rows<kernels::MixtureParameters>("moe", rows, options);
}

std::vector<FitReport> fit_on_tensor_gemm(std::span<const std::pair<const DeviceSpec*, OperatorMeasurement>> rows,
                                          const DeviceProfileFile& profile, const GenerationFitOptions& options) {
    std::map<std::string, KernelModels> models;
    std::vector<QuantizedRow> quantized;
    std::vector<MixtureRow> mixtures;
    for (const auto& [device, measured] : rows) {
        auto own = models.find(device->slug);
        if (own == models.end()) {
            own =
                models.emplace(device->slug, KernelModels(*device, kernel_parameters(compose(profile, *device)))).first;
        }
        if (const auto row = quantized_row(measured, own->second, *device)) quantized.push_back(*row);
        if (const auto row = mixture_row(measured, own->second, *device)) mixtures.push_back(*row);
    }
    std::vector<FitReport> reports = fit_quantized(quantized, options);
    if (!mixtures.empty()) reports.push_back(fit_mixture(mixtures, options));
    return reports;
}

std::optional<TensorGemmRow> tensor_gemm_row(const OperatorMeasurement& measured, const DeviceSpec& device) {
    if (measured.op != "gemm" || measured.mode != "device_hot") return std::nullopt;
    if (measured.precision != Precision::fp16 && measured.precision != Precision::bf16) return std::nullopt;
    const auto shape = operator_shape(measured);
    if (!shape) return std::nullopt;
    const MathPath path = measured.precision == Precision::fp16 ? MathPath::fp16_tensor : MathPath::bf16_tensor;
    return TensorGemmRow{&device, std::get<kernels::GemmShape>(*shape), path, measured.latency_s};
}

FitReport fit_tensor_gemm(std::span<const TensorGemmRow> rows, const GenerationFitOptions& options) {
    using Parameters = kernels::TensorGemmParameters;
    ScopedFit fit = generation_fit("tensor_gemm", options);
    fit.rows_name = "gemm rows";
    fit.centre = Centre::mean;
    fit.shared = declared<Parameters>(ParameterScope::shared);
    fit.architecture = declared<Parameters>(ParameterScope::architecture);
    for (const TensorGemmRow& row : rows) {
        const kernels::GemmShape& s = row.shape;
        fit.rows.push_back({.device = row.device,
                            .latency_s = row.latency_s,
                            .held_out = is_held_out(s.m * 73856093 ^ s.n * 19349663 ^ s.k * 83492791)});
    }
    // Clocks and bandwidths come from the datasheet.
    fit.latency_s = [&](std::size_t i, ScopedValues values, bool) {
        const TensorGemmRow& row = rows[i];
        const auto rates = take_rates(*row.device, row.path, values);
        const auto p = take<Parameters>(values);
        const auto choice = kernels::tensor_gemm::choose(row.shape, rates, p);
        return kernels::within_power(kernels::tensor_gemm::plan_choice(row.shape, choice, rates, p)) + graph_gap_s;
    };
    auto [report, unknowns] = solve(fit);
    add_parameters(fit, unknowns, report);
    return report;
}

ScopedFit generation_fit(std::string kernel_class, const GenerationFitOptions& options) {
    ScopedFit fit{.kernel_class = std::move(kernel_class),
                  .options = options.fit,
                  .rows_per_stratum = options.rows_per_device,
                  .rounds = options.rounds,
                  .centre = Centre::median,
                  .centre_shared = true,
                  .folds = options.folds};
    fit.rows_name = fit.kernel_class + " rows";
    fit.in_fit_fold = false;
    fit.held_out_fold = "a fifth of the shapes left out";
    fit.left_out_folds = {{"the GPU left out"}};
    fit.expects_kin = false;
    return fit;
}

void add_generations(const ScopedFit& fit, const ScopedUnknowns& unknowns, FitReport& report) {
    add_parameters(unknowns.shared, ParameterScope::shared, "", source_of(fit), report);
    if (unknowns.architectures.empty()) return;
    const LogFit::Block expected = centre_of(fit.centre, unknowns.architectures);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const bool unseen_everywhere =
            std::all_of(unknowns.architectures.begin(), unknowns.architectures.end(),
                        [&](const auto& generation) { return is_unseen(generation.second[i]); });
        if (unseen_everywhere) continue;
        for (const Architecture generation :
             {Architecture::volta, Architecture::turing, Architecture::ampere, Architecture::ada, Architecture::hopper,
              Architecture::blackwell, Architecture::rtx_blackwell}) {
            const auto own = unknowns.architectures.find(generation);
            const Unknown& u = own != unknowns.architectures.end() ? own->second[i] : expected[i];
            const bool seen = own != unknowns.architectures.end() && !is_unseen(u);
            report.parameters.push_back(
                {{u.name, u.value, seen ? u.relative_stddev : u.prior_log_stddev,
                  seen ? source_of(fit) : "median of " + report.kernel_class + " on other generations"},
                 ParameterScope::architecture,
                 std::string(name_of(generation))});
        }
    }
}

}  // namespace ftax::fit
