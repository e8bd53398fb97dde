#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "calibration/fit/generation_fit.hpp"
#include "ftax/measurement.hpp"
#include "predictors/kernels/kernel_models.hpp"
#include "predictors/kernels/shapes.hpp"
#include "src/io/profile_file.hpp"

/// Fits quantised products and mixtures of experts to rows of mode device_hot.
namespace ftax::fit {

/// One measured product of quantised operands, the kernel that quantises activations included.
struct QuantizedRow {
    const DeviceSpec* device = nullptr;
    const KernelModels* models = nullptr;  ///< frozen: what products of f16 have
    kernels::GemmShape shape{};
    double latency_s = 0;
};

/// One measured mixture of experts.
struct MixtureRow {
    const DeviceSpec* device = nullptr;
    const KernelModels* models = nullptr;
    kernels::MixtureShape shape{};
    double latency_s = 0;
};

/// Build rows from operator measurements of mode device_hot; nullopt for other operators and precisions, and those that
/// the device does not run.
[[nodiscard]] std::optional<QuantizedRow> quantized_row(const OperatorMeasurement& measured, const KernelModels& models,
                                                        const DeviceSpec& device);
[[nodiscard]] std::optional<MixtureRow> mixture_row(const OperatorMeasurement& measured, const KernelModels& models,
                                                    const DeviceSpec& device);

/// Fits each family of kernels on its own: "fp8", "fp8_block", "nvfp4".
[[nodiscard]] std::vector<FitReport> fit_quantized(std::span<const QuantizedRow> rows,
                                                   const GenerationFitOptions& options = {});
[[nodiscard]] FitReport fit_mixture(std::span<const MixtureRow> rows, const GenerationFitOptions& options = {});

/// Both, to whatever rows are of their kind, on top of a profile in which products of f16 are fitted.
[[nodiscard]] std::vector<FitReport> fit_on_tensor_gemm(
    std::span<const std::pair<const DeviceSpec*, OperatorMeasurement>> rows, const DeviceProfileFile& profile,
    const GenerationFitOptions& options = {});

}  // namespace ftax::fit
