#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calibration/fit/log_fit.hpp"
#include "calibration/fit/scoped_fit.hpp"
#include "ftax/device.hpp"
#include "ftax/measurement.hpp"
#include "predictors/kernels/kernel_models.hpp"
#include "predictors/kernels/shapes.hpp"
#include "src/io/profile_file.hpp"

/// Fits of kernels timed alone on tensor cores: ratios that all generations share and those of each. Clocks and
/// bandwidths are those of the datasheet or of a profile.
namespace ftax::fit {

struct GenerationFitOptions {
    FitOptions fit{.starts = 1, .iterations = 30, .row_log_stddev = 0.1, .seed = 1};
    std::size_t rows_per_device = 450;  ///< spread evenly; errors are taken over all rows
    int rounds = 3;                     ///< fits; priors are centred on the last one's result
    bool folds = true;                  ///< a fifth of the shapes left out; one device
};

/// Engine of such a fit, without rows, unknowns and model.
[[nodiscard]] ScopedFit generation_fit(std::string kernel_class, const GenerationFitOptions& options);

/// Whether a shape is in the fifth that a fold leaves out on all devices.
[[nodiscard]] inline bool is_held_out(std::int64_t hash) {
    return static_cast<std::uint64_t>(hash) % 5 == 4;
}

/// Appends the values of every generation with tensor cores: where no row determines one, the centre of the others,
/// which is closer on GPUs left out than the nearest kin's value.
void add_generations(const ScopedFit& fit, const ScopedUnknowns& unknowns, FitReport& report);

/// One measured matrix product on tensor cores: a node of a CUDA graph, start to start.
struct TensorGemmRow {
    const DeviceSpec* device = nullptr;
    kernels::GemmShape shape{};
    MathPath path = MathPath::bf16_tensor;
    double latency_s = 0;
};

/// Builds a row from an operator measurement of mode device_hot; nullopt for another operator, mode or precision.
[[nodiscard]] std::optional<TensorGemmRow> tensor_gemm_row(const OperatorMeasurement& measured,
                                                           const DeviceSpec& device);

/// Fits the ratios of each generation. Folds are named by what they leave out; rows in the fit are not reported.
[[nodiscard]] FitReport fit_tensor_gemm(std::span<const TensorGemmRow> rows, const GenerationFitOptions& options = {});

// Fits quantised products and mixtures of experts to rows of mode device_hot.

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

// Fits the kernels of a language model's layer beside its matrix products: fused attention and row-wise kernels.

/// One measured kernel, alone.
struct LayerKernelRow {
    const DeviceSpec* device = nullptr;
    std::string kernel_class;  ///< "prefill", "decode", "encoder", "mixed", "row-wise"
    KernelShape shape{};
    MathPath path = MathPath::bf16_tensor;
    double kernels = 1;     ///< equal ones in the row
    double beside_s = 0;    ///< that the row contains beside them
    bool held_out = false;  ///< of the fifth of the shapes that one fold leaves out, the same on all devices
    double latency_s = 0;
};

/// Builds a row from an operator measurement of mode device_hot; nullopt for another operator or mode, and for heads
/// over 256 elements, which kernels of other libraries take.
[[nodiscard]] std::optional<LayerKernelRow> layer_kernel_row(const OperatorMeasurement& measured,
                                                             const DeviceSpec& device);

struct LayerKernelFitOptions {
    FitOptions fit{.starts = 1, .iterations = 40, .row_log_stddev = 0.1, .seed = 1};
    std::size_t rows_per_class = 250;  ///< of one device, spread evenly; errors are taken over all rows
    bool folds = false;                ///< a fifth of the shapes left out; one device left out
    /// The profile that knows nothing of a device, by slug, for the fold that leaves it out.
    std::function<DeviceProfileFile(const std::string&)> profile_without{};
};

/// Fits the parameters of attention and of row-wise kernels, which all generations share. What both take from matrix
/// products (bandwidths, L2, rates, energy) is that of `profile`. Groups of the folds are "CLASS, SLUG".
[[nodiscard]] std::vector<FitReport> fit_layer_kernels(std::span<const LayerKernelRow> rows,
                                                       const DeviceProfileFile& profile,
                                                       const LayerKernelFitOptions& options = {});

}  // namespace ftax::fit
