#include "calibration/fit/layer_kernel_fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "calibration/fit/scoped_unknowns.hpp"
#include "predictors/kernels/kernel_models.hpp"
#include "predictors/kernels/sustained.hpp"
#include "predictors/operator_model.hpp"

namespace ftax::fit {
namespace {

using kernels::FlashParameters;
using kernels::SustainedParameters;
using kernels::TensorGemmParameters;
using kernels::TokenParameters;
using Row = LayerKernelRow;
using Rows = std::vector<const Row*>;

/// What a profile says of a device that these kernels share with others.
struct Known {
    const DeviceSpec* device;
    KernelParameters<double> parameters;

    Known(const DeviceProfileFile& profile, const DeviceSpec& spec)
        : device(&spec), parameters(kernel_parameters(compose(profile, spec))) {}

    template <class T>
    [[nodiscard]] TensorGemmParameters<T> gemm() const {
        std::vector<double> values;
        auto own = parameters.tensor_gemm;
        visit_parameters(own,
                         [&](std::string_view, const double& value, const ParameterSpec&) { values.push_back(value); });
        TensorGemmParameters<T> p;
        std::size_t i = 0;
        visit_parameters(p, [&](std::string_view, T& value, const ParameterSpec&) { value = T(values[i++]); });
        return p;
    }
    /// With the floor of a CUDA graph's nodes.
    template <class T>
    [[nodiscard]] kernels::DeviceRates<T> rates(MathPath path, const TensorGemmParameters<T>& gemm) const {
        const auto& own = parameters.sustained;
        const SustainedParameters<T> sustained{T(own.clock_fp32), T(own.clock_tensor), T(own.bandwidth),
                                               T(own.kernel_floor_s)};
        auto rates = kernels::device_rates(*device, path, sustained);
        rates.floor_s = gemm.floor_s * kernels::tensor_gemm::cycle_scale(rates, gemm);
        return rates;
    }
};
using KnownDevices = std::map<std::string, Known>;  // by slug

template <class Parameters>
LogFit::Block declared() {
    LogFit::Block block;
    Parameters p;
    visit_parameters(p, [&](std::string_view name, double&, const ParameterSpec& spec) {
        block.push_back(unknown(std::string(name), spec));
    });
    return block;
}

/// Attention or row-wise kernels: which rows, and how one is planned.
struct Attention {
    template <class T>
    using Parameters = FlashParameters<T>;
    static constexpr std::string_view name = "attention";
    static bool holds(const Row& row) { return std::holds_alternative<kernels::AttentionShape>(row.shape); }
    template <class T>
    static auto plan(const Row& row, const Known& known, const FlashParameters<T>& p) {
        const auto gemm = known.gemm<T>();
        return kernels::plan_flash(std::get<kernels::AttentionShape>(row.shape), known.rates<T>(row.path, gemm), p,
                                   gemm);
    }
};
struct RowWise {
    template <class T>
    using Parameters = TokenParameters<T>;
    static constexpr std::string_view name = "row-wise";
    static bool holds(const Row& row) { return std::holds_alternative<kernels::MemoryShape>(row.shape); }
    template <class T>
    static auto plan(const Row& row, const Known& known, const TokenParameters<T>& p) {
        const auto gemm = known.gemm<T>();
        return kernels::plan_token(std::get<kernels::MemoryShape>(row.shape), known.rates<T>(MathPath::fp32, gemm), p,
                                   gemm);
    }
};

template <class Class>
struct Model {
    const Row* row;
    const Known* known;

    template <class T>
    T operator()(T const* const* blocks) const {
        typename Class::template Parameters<T> p;
        const T* next = blocks[0];
        visit_parameters(p, [&](std::string_view, T& value, const ParameterSpec&) { value = *next++; });
        const auto plan = Class::plan(*row, *known, p);
        return kernels::within_power<T>(plan) * row->kernels + row->beside_s;
    }
};

template <class Class>
LogFit::Block fit_rows(const Rows& rows, const KnownDevices& known, const LayerKernelFitOptions& options,
                       bool& converged) {
    std::map<std::string, Rows> groups;
    for (const Row* row : rows) groups[row->kernel_class + row->device->slug].push_back(row);
    LogFit fit(options.fit);
    const std::size_t shared = fit.add_block(declared<typename Class::template Parameters<double>>());
    for (const auto& [_, group] : groups) {
        const std::size_t count = std::min(group.size(), options.rows_per_class);
        for (std::size_t i = 0; i < count; ++i) {
            const Row* row = group[i * group.size() / count];
            fit.add_row(Model<Class>{row, &known.at(row->device->slug)}, row->latency_s, {shared});
        }
    }
    converged = fit.solve().converged;
    return fit.block(shared);
}

/// Errors by class and device.
using Errors = std::map<std::string, std::vector<double>>;

template <class Class>
void add_errors(const Rows& rows, const KnownDevices& known, const LogFit::Block& block, Errors& errors) {
    const std::vector<double> shared = values(block);
    const double* blocks[] = {shared.data()};
    for (const Row* row : rows) {
        const double predicted_s = Model<Class>{row, &known.at(row->device->slug)}(blocks);
        errors[row->kernel_class + ", " + row->device->slug].push_back(std::log(predicted_s / row->latency_s));
    }
}

void add_fold(std::string name, Errors errors, FitReport& report) {
    Fold fold{.name = std::move(name)};
    for (auto& [group, of_group] : errors) {
        fold.groups.push_back(summarize(group, std::move(of_group)));
        fold.mean += fold.groups.back().mean / static_cast<double>(errors.size());
    }
    report.folds.push_back(std::move(fold));
}

template <class Class>
FitReport fit_class(std::span<const Row> all, const KnownDevices& known, const LayerKernelFitOptions& options) {
    FitReport report{.kernel_class = std::string(Class::name)};
    Rows rows;
    for (const Row& row : all) {
        if (Class::holds(row)) rows.push_back(&row);
    }
    if (rows.empty()) return report;
    const std::string source = "fitted: " + report.kernel_class + " rows, " + std::to_string(rows.size());
    for (const Unknown& u : fit_rows<Class>(rows, known, options, report.converged)) {
        if (is_unseen(u)) continue;
        report.parameters.push_back({{u.name, u.value, u.relative_stddev, source}, ParameterScope::shared, ""});
    }
    if (!options.folds) return report;
    const auto split = [&](const auto& left_out) {
        std::pair<Rows, Rows> parts;
        for (const Row* row : rows) (left_out(*row) ? parts.second : parts.first).push_back(row);
        return parts;
    };
    bool converged = false;
    Errors errors;
    const auto [kept, unseen] = split([](const Row& row) { return row.held_out; });
    add_errors<Class>(unseen, known, fit_rows<Class>(kept, known, options, converged), errors);
    add_fold("a fifth of the shapes left out", std::move(errors), report);
    errors.clear();
    for (const auto& entry : known) {
        const std::string& slug = entry.first;
        const auto [others, own] = split([&](const Row& row) { return row.device->slug == slug; });
        if (others.empty() || own.empty()) continue;
        KnownDevices without;
        const DeviceProfileFile profile = options.profile_without(slug);
        for (const auto& [name, device] : known) without.emplace(name, Known(profile, *device.device));
        add_errors<Class>(own, without, fit_rows<Class>(others, without, options, converged), errors);
    }
    add_fold("the GPU left out", std::move(errors), report);
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
    KnownDevices known;
    for (const Row& row : rows) {
        if (!known.contains(row.device->slug)) known.emplace(row.device->slug, Known(profile, *row.device));
    }
    return {fit_class<Attention>(rows, known, options), fit_class<RowWise>(rows, known, options)};
}

}  // namespace ftax::fit
