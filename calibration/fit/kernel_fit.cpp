#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "calibration/fit/operator_fit.hpp"
#include "calibration/fit/scoped_fit.hpp"
#include "ftax/precision.hpp"
#include "predictors/kernels/kernel_models.hpp"
#include "predictors/operator_model.hpp"

/// Fits of kernels timed alone in CUDA graphs.
namespace ftax::fit {
namespace {

constexpr FitOptions usual_fit{.starts = 1, .iterations = 30, .row_log_stddev = 0.1};

/// The engine for ratios that all generations share and those of each.
ScopedFit generation_fit(std::string kernel_class) {
    std::string rows_name = kernel_class + " rows";
    return {.kernel_class = std::move(kernel_class),
            .rows_name = std::move(rows_name),
            .options = usual_fit,
            .rows_per_stratum = 450,
            .rounds = 3,
            .centre = Centre::median,
            .centre_shared = true,
            .in_fit_fold = false,
            .held_out_fold = "a fifth of the shapes left out",
            .left_out_folds = {{"the GPU left out"}},
            .expects_kin = false};
}

/// Whether a shape is in the fifth that a fold leaves out on all devices.
bool is_held_out(const kernels::GemmShape& s) {
    return static_cast<std::uint64_t>(s.m * 73856093 ^ s.n * 19349663 ^ s.k * 83492791) % 5 == 4;
}
bool is_held_out(const kernels::MixtureShape& s) {
    return static_cast<std::uint64_t>(s.tokens * 73856093 ^ s.hidden * 19349663 ^ s.width * 83492791 ^
                                      s.experts * 49979687 ^ s.per_token * 15485863) %
               5 ==
           4;
}
/// By a hash of the dimensions' names and sizes (FNV-1a).
bool is_held_out(const OperatorMeasurement& measured) {
    std::uint64_t hash = 14695981039346656037ULL;
    const auto mix = [&](std::uint64_t byte) { hash = (hash ^ byte) * 1099511628211ULL; };
    for (const auto& [name, size] : measured.shape) {
        for (const char letter : name) mix(static_cast<unsigned char>(letter));
        for (int shift = 0; shift < 64; shift += 8) mix(static_cast<std::uint64_t>(size) >> shift & 255U);
    }
    return (hash >> 32U) % 5 == 0;
}

/// What is frozen of kernels: the models of a profile, by device.
class Known {
  public:
    explicit Known(DeviceProfileFile profile) : profile_(std::move(profile)) {}

    [[nodiscard]] const KernelModels& of(const DeviceSpec& device) {
        auto found = models_.find(device.slug);
        if (found == models_.end()) {
            found =
                models_.emplace(device.slug, KernelModels(device, kernel_parameters(compose(profile_, device)))).first;
        }
        return found->second;
    }
    /// Rates with the floor of a CUDA graph's nodes.
    [[nodiscard]] kernels::DeviceRates graph_rates(const DeviceSpec& device, MathPath path) {
        const KernelModels& own = of(device);
        kernels::DeviceRates rates = own.at(path);
        const auto& products = own.parameters.tensor_gemm;
        rates.floor_s = products.floor_s * kernels::tensor_gemm::cycle_scale(rates, products);
        return rates;
    }

  private:
    DeviceProfileFile profile_;
    std::map<std::string, KernelModels> models_;
};

bool is_quantized(const kernels::MixtureShape& shape) {
    return shape.operands != Precision::fp32;
}

double latency_s(const DeviceSpec& device, const kernels::GemmShape& shape, Known& known,
                 const kernels::QuantizedParameters& p) {
    const PrecisionSpec& precision = precision_spec(shape.operands);
    const KernelModels& models = known.of(device);
    const auto& rates = models.at(precision.path);
    const auto& half = models.parameters.tensor_gemm;
    const auto product = plan(shape, rates, kernels::quantized::parameters(precision, half, p));
    const kernels::QuantizeShape operands{shape.m, shape.k, shape.operands};
    return kernels::within_power(product) + plan(operands, rates, half, p).seconds + 2 * graph_gap_s;
}

double latency_s(const DeviceSpec& device, const kernels::MixtureShape& shape, Known& known,
                 const kernels::MixtureParameters& p) {
    const KernelModels& models = known.of(device);
    const auto& rates = models.at(is_quantized(shape) ? precision_spec(shape.operands).path : MathPath::bf16_tensor);
    return plan(shape, rates, models.parameters.tensor_gemm, p).seconds + graph_gap_s;
}

/// Appends the values of every generation with tensor cores: where no row determines one, the centre of the others,
/// which is closer on GPUs left out than the nearest kin's value.
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

/// Fits kernels whose shapes are of that type on top of `known`.
template <class Shape, class Parameters>
FitReport fit_on(ClassFit own, Known& known) {
    ScopedFit& fit = own.fit;
    fit.shared = declared<Parameters>(ParameterScope::shared);
    fit.architecture = declared<Parameters>(ParameterScope::architecture);
    for (std::size_t i = 0; i < own.rows.size(); ++i) {
        const auto& shape = std::get<Shape>(own.rows[i]->shape);
        fit.rows[i].held_out = is_held_out(shape);
        if constexpr (std::is_same_v<Shape, kernels::MixtureShape>)
            fit.rows[i].group = own.rows[i]->device->slug + (is_quantized(shape) ? " fp8" : " 16 bits");
    }
    fit.latency_s = [&](std::size_t i, ScopedValues values, bool) {
        const OperatorRow& row = *own.rows[i];
        return latency_s(*row.device, std::get<Shape>(row.shape), known, take<Parameters>(values));
    };
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

kernels::KernelPlan plan_alone(const OperatorRow& row, const kernels::FlashParameters& p, Known& known) {
    return kernels::plan_flash(std::get<kernels::AttentionShape>(row.shape),
                               known.graph_rates(*row.device, row.half_path()), p,
                               known.of(*row.device).parameters.tensor_gemm);
}

kernels::KernelPlan plan_alone(const OperatorRow& row, const kernels::TokenParameters& p, Known& known) {
    return kernels::plan_token(std::get<kernels::MemoryShape>(row.shape),
                               known.graph_rates(*row.device, MathPath::fp32), p,
                               known.of(*row.device).parameters.tensor_gemm);
}

std::string class_of(const OperatorRow& row) {
    if (row.op == "context_attention") return "prefill";
    if (row.op == "generation_attention") return "decode";
    if (row.op == "encoder_attention") return "encoder";
    return row.op == "attention" ? "mixed" : "row-wise";
}

/// Fits a class of kernels whose parameters all generations share.
template <class Parameters>
FitReport fit_layer_class(ClassFit own, const DeviceProfileFile& profile,
                          const std::function<DeviceProfileFile(const std::string&)>& profile_without) {
    ScopedFit& fit = own.fit;
    fit.shared = declared<Parameters>(ParameterScope::shared);
    for (std::size_t i = 0; i < own.rows.size(); ++i) {
        fit.rows[i].stratum = fit.rows[i].fold_class = class_of(*own.rows[i]);
        fit.rows[i].held_out = is_held_out(*own.rows[i]->measured);
    }
    Known known(profile);
    fit.latency_s = [&](std::size_t i, ScopedValues values, bool) {
        const OperatorRow& row = *own.rows[i];
        return kernels::within_power(plan_alone(row, take<Parameters>(values), known)) * kernels_of(*row.measured) +
               beside_kernel_s(row.shape);
    };
    if (profile_without) fit.forget = [&](const DeviceSpec& device) { known = Known(profile_without(device.slug)); };
    auto [report, unknowns] = solve(fit);
    add_parameters(fit, unknowns, report);
    return report;
}

}  // namespace

FitReport fit_tensor_gemm(std::span<const OperatorRow> rows, const ClassFitOptions& options) {
    using Parameters = kernels::TensorGemmParameters;
    ScopedFit usual = generation_fit("tensor_gemm");
    usual.rows_name = "gemm rows";
    usual.centre = Centre::mean;
    usual.shared = declared<Parameters>(ParameterScope::shared);
    usual.architecture = declared<Parameters>(ParameterScope::architecture);
    ClassFit own(std::move(usual), rows, RowClass::tensor_gemm, options);
    for (std::size_t i = 0; i < own.rows.size(); ++i) {
        own.fit.rows[i].fold_class = "gemm";
        own.fit.rows[i].held_out = is_held_out(std::get<kernels::GemmShape>(own.rows[i]->shape));
    }
    // Clocks and bandwidths come from the datasheet.
    own.fit.latency_s = [&](std::size_t i, ScopedValues values, bool) {
        const OperatorRow& row = *own.rows[i];
        const auto& shape = std::get<kernels::GemmShape>(row.shape);
        const auto rates = take_rates(*row.device, row.half_path(), values);
        const auto p = take<Parameters>(values);
        const auto choice = kernels::tensor_gemm::choose(shape, rates, p);
        return kernels::within_power(kernels::tensor_gemm::plan_choice(shape, choice, rates, p)) + graph_gap_s;
    };
    auto [report, unknowns] = solve(own.fit);
    add_parameters(own.fit, unknowns, report);
    return report;
}

std::vector<FitReport> fit_on_tensor_gemm(std::span<const OperatorRow> rows, const DeviceProfileFile& profile,
                                          const ClassFitOptions& options) {
    Known known(profile);
    std::vector<FitReport> reports;
    for (const QuantizedKernels family :
         {QuantizedKernels::fp8, QuantizedKernels::fp8_block, QuantizedKernels::nvfp4}) {
        const auto precision = std::ranges::find(precision_specs(), family, &PrecisionSpec::kernels);
        ClassFit own(generation_fit(std::string(precision->name)), rows, RowClass::quantized, options,
                     [&](const OperatorRow& row) { return precision_spec(row.measured->precision).kernels == family; });
        if (own.rows.empty()) continue;
        reports.push_back(fit_on<kernels::GemmShape, kernels::QuantizedParameters>(std::move(own), known));
        std::erase_if(reports.back().parameters, [&](const ScopedParameter& p) {
            return p.scope == ParameterScope::architecture && !has_units(p.key, family);
        });
    }
    ClassFit mixtures(generation_fit("moe"), rows, RowClass::mixture, options);
    if (!mixtures.rows.empty())
        reports.push_back(fit_on<kernels::MixtureShape, kernels::MixtureParameters>(std::move(mixtures), known));
    return reports;
}

std::vector<FitReport> fit_layer_kernels(std::span<const OperatorRow> rows, const DeviceProfileFile& profile,
                                         const ClassFitOptions& options,
                                         const std::function<DeviceProfileFile(const std::string&)>& profile_without) {
    const auto of_class = [&](RowClass of, const char* name) {
        return ClassFit({.kernel_class = name,
                         .rows_name = std::string(name) + " rows",
                         .options = {.starts = 1, .iterations = 40, .row_log_stddev = 0.1},
                         .rows_per_stratum = 250,
                         .in_fit_fold = false,
                         .held_out_fold = "a fifth of the shapes left out",
                         .left_out_folds = {{"the GPU left out"}}},
                        rows, of, options);
    };
    return {
        fit_layer_class<kernels::FlashParameters>(of_class(RowClass::attention, "attention"), profile, profile_without),
        fit_layer_class<kernels::TokenParameters>(of_class(RowClass::row_wise, "row-wise"), profile, profile_without)};
}

}  // namespace ftax::fit
