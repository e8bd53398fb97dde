#include <map>
#include <utility>

#include "calibration/fit/generation_fit.hpp"
#include "calibration/fit/scoped_fit.hpp"
#include "predictors/kernels/kernel_models.hpp"
#include "predictors/operator_model.hpp"

namespace ftax::fit {
namespace {

using Row = LayerKernelRow;

/// Parameters that these kernels share with matrix products, by device, and the profile that they come from.
class Known {
  public:
    explicit Known(DeviceProfileFile profile) : profile_(std::move(profile)) {}

    [[nodiscard]] const KernelParameters& of(const DeviceSpec& device) {
        auto found = parameters_.find(device.slug);
        if (found == parameters_.end()) {
            found = parameters_.emplace(device.slug, kernel_parameters(compose(profile_, device))).first;
        }
        return found->second;
    }
    /// With the floor of a CUDA graph's nodes.
    [[nodiscard]] kernels::DeviceRates rates(const DeviceSpec& device, MathPath path) {
        const KernelParameters& own = of(device);
        auto rates = kernels::device_rates(device, path, own.sustained);
        rates.floor_s = own.tensor_gemm.floor_s * kernels::tensor_gemm::cycle_scale(rates, own.tensor_gemm);
        return rates;
    }

  private:
    DeviceProfileFile profile_;
    std::map<std::string, KernelParameters> parameters_;
};

auto plan_row(const Row& row, const kernels::AttentionShape& shape, Known& known, const kernels::FlashParameters& p) {
    return kernels::plan_flash(shape, known.rates(*row.device, row.path), p, known.of(*row.device).tensor_gemm);
}

auto plan_row(const Row& row, const kernels::MemoryShape& shape, Known& known, const kernels::TokenParameters& p) {
    return kernels::plan_token(shape, known.rates(*row.device, MathPath::fp32), p, known.of(*row.device).tensor_gemm);
}

/// Fits the rows whose shapes are of that type.
template <class Shape, class Parameters>
FitReport fit_class(const char* name, std::span<const Row> all, const DeviceProfileFile& profile,
                    const LayerKernelFitOptions& options) {
    ScopedFit fit{.kernel_class = name,
                  .rows_name = std::string(name) + " rows",
                  .options = options.fit,
                  .rows_per_stratum = options.rows_per_class,
                  .folds = options.folds,
                  .shared = declared<Parameters>(ParameterScope::shared)};
    std::vector<const Row*> rows;
    for (const Row& row : all) {
        if (!std::holds_alternative<Shape>(row.shape)) continue;
        rows.push_back(&row);
        fit.rows.push_back({.device = row.device,
                            .latency_s = row.latency_s,
                            .stratum = row.kernel_class,
                            .group = row.kernel_class + ", " + row.device->slug,
                            .held_out = row.held_out});
    }
    Known known(profile);
    fit.latency_s = [&](std::size_t i, ScopedValues values, bool) {
        const Row& row = *rows[i];
        const auto plan = plan_row(row, std::get<Shape>(row.shape), known, take<Parameters>(values));
        return kernels::within_power(plan) * row.kernels + row.beside_s;
    };
    fit.in_fit_fold = false;
    fit.held_out_fold = "a fifth of the shapes left out";
    fit.left_out_folds = {{"the GPU left out"}};
    if (options.profile_without) {
        fit.forget = [&](const DeviceSpec& device) { known = Known(options.profile_without(device.slug)); };
    }
    auto [report, unknowns] = solve(fit);
    add_parameters(fit, unknowns, report);
    return report;
}

/// A fifth of the shapes by a hash of their dimensions' names and sizes (FNV-1a).
bool is_held_out(const OperatorMeasurement& measured) {
    std::uint64_t hash = 14695981039346656037ULL;
    const auto mix = [&](std::uint64_t byte) { hash = (hash ^ byte) * 1099511628211ULL; };
    for (const auto& [name, size] : measured.shape) {
        for (const char letter : name) mix(static_cast<unsigned char>(letter));
        for (int shift = 0; shift < 64; shift += 8) mix(static_cast<std::uint64_t>(size) >> shift & 255U);
    }
    return (hash >> 32U) % 5 == 0;
}

std::string class_of(const OperatorMeasurement& measured) {
    if (measured.op == "context_attention") return "prefill";
    if (measured.op == "generation_attention") return "decode";
    if (measured.op == "encoder_attention") return "encoder";
    return measured.op == "attention" ? "mixed" : "row-wise";
}

}  // namespace

std::optional<LayerKernelRow> layer_kernel_row(const OperatorMeasurement& measured, const DeviceSpec& device) {
    if (measured.mode != "device_hot" || measured.op == "gemm") return std::nullopt;
    if (measured.precision != Precision::fp16 && measured.precision != Precision::bf16) return std::nullopt;
    auto shape = operator_shape(measured);
    if (!shape) return std::nullopt;
    if (const auto* attention = std::get_if<kernels::AttentionShape>(&*shape)) {
        constexpr std::int64_t widest_head = 256;
        if (attention->head_dim > widest_head) return std::nullopt;
    }
    return LayerKernelRow{.device = &device,
                          .kernel_class = class_of(measured),
                          .shape = *shape,
                          .path = measured.precision == Precision::fp16 ? MathPath::fp16_tensor : MathPath::bf16_tensor,
                          .kernels = kernels_of(measured),
                          .beside_s = beside_kernel_s(*shape),
                          .held_out = is_held_out(measured),
                          .latency_s = measured.latency_s};
}

std::vector<FitReport> fit_layer_kernels(std::span<const LayerKernelRow> rows, const DeviceProfileFile& profile,
                                         const LayerKernelFitOptions& options) {
    return {fit_class<kernels::AttentionShape, kernels::FlashParameters>("attention", rows, profile, options),
            fit_class<kernels::MemoryShape, kernels::TokenParameters>("row-wise", rows, profile, options)};
}

}  // namespace ftax::fit
