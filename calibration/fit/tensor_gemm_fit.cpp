#include "calibration/fit/tensor_gemm_fit.hpp"

#include <string>
#include <variant>

#include "calibration/fit/scoped_fit.hpp"
#include "predictors/kernels/tensor_gemm.hpp"
#include "predictors/operator_model.hpp"

namespace ftax::fit {

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

}  // namespace ftax::fit
