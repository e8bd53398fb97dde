#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "calibration/fit/operator_fit.hpp"
#include "calibration/fit/scoped_fit.hpp"
#include "ftax/precision.hpp"
#include "graphs/base/mapped.hpp"
#include "predictors/kernels/kernel_models.hpp"
#include "predictors/operator_model.hpp"

/// Fits of kernels timed alone in CUDA graphs.
namespace ftax::fit {
namespace {

ScopedFit shared_fit(std::string kernel_class) {
    return {.kernel_class = std::move(kernel_class),
            .options = {.starts = 1, .iterations = 40, .row_log_stddev = 0.1},
            .rows_per_stratum = 250,
            .in_fit_fold = false,
            .held_out_fold = "a fifth of the shapes left out",
            .left_out_folds = {{"the GPU left out"}}};
}

ScopedFit generation_fit(std::string kernel_class) {
    ScopedFit fit = shared_fit(std::move(kernel_class));
    fit.options.iterations = 30;
    fit.rows_per_stratum = 450;
    fit.rounds = 3;
    fit.centre = Centre::median;
    fit.centre_shared = true;
    fit.expects_kin = false;
    return fit;
}

/// Whether a shape is in the fifth that a fold leaves out on all devices.
bool is_held_out(const OperatorRow& row) {
    const auto by_primes = [](std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d, std::int64_t e) {
        const std::int64_t hash = a * 73856093 ^ b * 19349663 ^ c * 83492791 ^ d * 49979687 ^ e * 15485863;
        return static_cast<std::uint64_t>(hash) % 5 == 4;
    };
    if (const auto* s = std::get_if<kernels::GemmShape>(&row.shape)) return by_primes(s->m, s->n, s->k, 0, 0);
    if (const auto* s = std::get_if<kernels::MixtureShape>(&row.shape))
        return by_primes(s->tokens, s->hidden, s->width, s->experts, s->per_token);
    std::uint64_t hash = 14695981039346656037ULL;  // hash of the dimensions' names and sizes (FNV-1a)
    const auto mix = [&](std::uint64_t byte) { hash = (hash ^ byte) * 1099511628211ULL; };
    for (const auto& [name, size] : row.measured->shape) {
        for (const char letter : name) mix(static_cast<unsigned char>(letter));
        for (int shift = 0; shift < 64; shift += 8) mix(static_cast<std::uint64_t>(size) >> shift & 255U);
    }
    return (hash >> 32U) % 5 == 0;
}

/// Models of kernels alone on each device, as a profile has them but for what a fit is trying.
class Models {
  public:
    explicit Models(DeviceProfileFile profile) : profile_(std::move(profile)) {}

    [[nodiscard]] KernelModels& of(const DeviceSpec& device) {
        return kept_in(models_, device.slug, [&] {
            return graph_kernels(KernelModels(device, kernel_parameters(compose(profile_, device))));
        });
    }

  private:
    DeviceProfileFile profile_;
    std::map<std::string, KernelModels> models_;
};

/// Appends the values of every generation with tensor cores: where no row determines one, the centre of the others,
/// which is closer on GPUs left out than the nearest kin's value.
void add_generations(const ScopedFit& fit, const ScopedUnknowns& unknowns, FitReport& report) {
    add_parameters(unknowns.shared, ParameterScope::shared, "", source_of(fit), report);
    if (unknowns.architectures.empty()) return;
    const LogFit::Block expected = centre_of(fit.centre, unknowns.architectures);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const bool unseen_everywhere = std::ranges::all_of(
            unknowns.architectures, [&](const auto& generation) { return is_unseen(generation.second[i]); });
        if (unseen_everywhere) continue;
        for (auto index = static_cast<std::size_t>(Architecture::volta); index < architecture_names.size(); ++index) {
            const auto generation = static_cast<Architecture>(index);
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

/// Fits those parameters of kernels, all others as `models` has them.
template <class Place>
ScopedResult fit_alone(ClassFit& own, Models& models, Place parameters) {
    using Parameters = std::decay_t<std::invoke_result_t<Place, KernelParameters&>>;
    own.fit.shared = declared<Parameters>(ParameterScope::shared);
    own.fit.architecture = declared<Parameters>(ParameterScope::architecture);
    for (std::size_t i = 0; i < own.rows.size(); ++i) own.fit.rows[i].held_out = is_held_out(*own.rows[i]);
    own.fit.latency_s = [&](std::size_t i, ScopedValues values, bool) {
        const OperatorRow& row = *own.rows[i];
        KernelModels& tried = models.of(*row.device);
        std::invoke(parameters, tried.parameters) = take<Parameters>(values);
        return alone_s(*row.measured, row.shape, tried, path_of(*row.measured, *row.device));
    };
    return solve(own.fit);
}

bool has_units(std::string_view generation, QuantizedKernels family) {
    return std::any_of(device_specs().begin(), device_specs().end(), [&](const DeviceSpec& device) {
        return name_of(device.architecture) == generation &&
               std::any_of(precision_specs().begin(), precision_specs().end(), [&](const PrecisionSpec& precision) {
                   return precision.kernels == family && runs(device, precision);
               });
    });
}

std::string class_of(const OperatorRow& row) {
    if (row.op == "context_attention") return "prefill";
    if (row.op == "generation_attention") return "decode";
    if (row.op == "encoder_attention") return "encoder";
    return row.op == "attention" ? "mixed" : "row-wise";
}

}  // namespace

FitReport fit_tensor_gemm(std::span<const OperatorRow> rows, const ClassFitOptions& options) {
    ScopedFit usual = generation_fit("tensor_gemm");
    usual.rows_name = "gemm rows";
    usual.centre = Centre::mean;
    ClassFit own(std::move(usual), rows, RowClass::tensor_gemm, options);
    for (ScopedRow& row : own.fit.rows) row.fold_class = "gemm";
    Models datasheets{{}};  // where clocks and bandwidths come from
    auto [report, unknowns] = fit_alone(own, datasheets, &KernelParameters::tensor_gemm);
    add_parameters(own.fit, unknowns, report);
    return report;
}

std::vector<FitReport> fit_on_tensor_gemm(std::span<const OperatorRow> rows, const DeviceProfileFile& profile,
                                          const ClassFitOptions& options) {
    std::vector<FitReport> reports;
    for (const QuantizedKernels family :
         {QuantizedKernels::fp8, QuantizedKernels::fp8_block, QuantizedKernels::nvfp4}) {
        const auto precision = std::ranges::find(precision_specs(), family, &PrecisionSpec::kernels);
        ClassFit own(generation_fit(std::string(precision->name)), rows, RowClass::quantized, options,
                     [&](const OperatorRow& row) { return precision_spec(row.measured->precision).kernels == family; });
        if (own.rows.empty()) continue;
        Models models(profile);
        auto [report, unknowns] = fit_alone(own, models, &KernelParameters::quantized);
        add_generations(own.fit, unknowns, report);
        std::erase_if(report.parameters, [&](const ScopedParameter& p) {
            return p.scope == ParameterScope::architecture && !has_units(p.key, family);
        });
        reports.push_back(std::move(report));
    }
    ClassFit own(generation_fit("moe"), rows, RowClass::mixture, options);
    if (own.rows.empty()) return reports;
    for (std::size_t i = 0; i < own.rows.size(); ++i) {
        const bool quantized = precision_spec(own.rows[i]->measured->precision).quantizes_weights();
        own.fit.rows[i].group = own.rows[i]->device->slug + (quantized ? " fp8" : " 16 bits");
    }
    Models models(profile);
    auto [report, unknowns] = fit_alone(own, models, &KernelParameters::mixture);
    add_generations(own.fit, unknowns, report);
    reports.push_back(std::move(report));
    return reports;
}

std::vector<FitReport> fit_layer_kernels(std::span<const OperatorRow> rows, const DeviceProfileFile& profile,
                                         const ClassFitOptions& options,
                                         const std::function<DeviceProfileFile(const std::string&)>& profile_without) {
    const auto fit = [&](RowClass of, const char* name, auto parameters) {
        ClassFit own(shared_fit(name), rows, of, options);
        for (std::size_t i = 0; i < own.rows.size(); ++i)
            own.fit.rows[i].stratum = own.fit.rows[i].fold_class = class_of(*own.rows[i]);
        Models models(profile);
        if (profile_without)
            own.fit.forget = [&](const DeviceSpec& device) { models = Models(profile_without(device.slug)); };
        auto [report, unknowns] = fit_alone(own, models, parameters);
        add_parameters(own.fit, unknowns, report);
        return report;
    };
    return {fit(
                RowClass::attention, "attention", [](KernelParameters & p) -> auto& { return p.attention.flash; }),
            fit(RowClass::row_wise, "row-wise", &KernelParameters::token)};
}

}  // namespace ftax::fit
