#include "calibration/fit/operator_fit.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "ftax/error.hpp"
#include "ftax/precision.hpp"
#include "graphs/files/number.hpp"
#include "predictors/host/operator_host.hpp"
#include "predictors/kernels/gemm.hpp"
#include "predictors/operator_model.hpp"

namespace ftax::fit {
namespace {

std::tuple<std::string_view, ParameterScope, std::string_view> parameter_key(const ScopedParameter& p) {
    return {p.parameter.name, p.scope, p.key};
}

/// The parameters of all reports, in the order of a profile.
std::vector<ScopedParameter> merged(std::span<const FitReport> reports,
                                    std::vector<ScopedParameter> FitReport::*parameters) {
    std::vector<ScopedParameter> all;
    for (const FitReport& report : reports)
        all.insert(all.end(), (report.*parameters).begin(), (report.*parameters).end());
    std::ranges::stable_sort(all, {}, parameter_key);
    const auto same = [](const ScopedParameter& a, const ScopedParameter& b) {
        return parameter_key(a) == parameter_key(b);
    };
    all.erase(std::unique(all.begin(), all.end(), same), all.end());
    return all;
}

}  // namespace

Unknown declared_call(std::string_view name) {
    const LogFit::Block all = declared<OperatorHostParameters>({});
    return *std::ranges::find(all, name, &Unknown::name);
}

ClassFit::ClassFit(ScopedFit usual, std::span<const OperatorRow> all, RowClass of, const ClassFitOptions& options,
                   const std::function<bool(const OperatorRow&)>& wanted)
    : fit(std::move(usual)) {
    fit.folds = options.folds;
    if (options.fit) fit.options = *options.fit;
    if (options.rows_per_stratum > 0) fit.rows_per_stratum = options.rows_per_stratum;
    for (const OperatorRow& row : all) {
        if (row.of != of || (wanted && !wanted(row))) continue;
        rows.push_back(&row);
        fit.rows.push_back({.device = row.device, .latency_s = row.latency_s});
    }
}

OperatorFit fit_operators(std::span<const OperatorRow> rows, const OperatorFitOptions& options) {
    OperatorFit fitted;
    std::vector<FitReport>& reports = fitted.reports;
    const ClassFitOptions of_class{.folds = options.folds};
    reports.push_back(fit_memory(rows, of_class));
    reports.push_back(fit_gemm(rows, reports, of_class));
    reports.push_back(siblings_report(rows, reports));
    reports.push_back(fit_conv(rows, reports, of_class));
    const auto devices = [&] { return operator_profile(reports, options.profile_version); };
    const auto hosts = [&] { return call_profile(reports, options.framework, options.framework_version); };
    reports.push_back(fit_dispatch(rows, devices(), hosts()));
    fitted.profile = devices();
    fitted.hosts = hosts();
    return fitted;
}

DeviceProfileFile operator_profile(std::span<const FitReport> reports, std::string version) {
    DeviceProfileFile profile{std::move(version), {}, {}, merged(reports, &FitReport::parameters)};
    add_fitted_devices(profile);
    return profile;
}

HostProfileFile call_profile(std::span<const FitReport> reports, std::string framework, std::string version) {
    return {std::move(framework), std::move(version), merged(reports, &FitReport::nuisance)};
}

void add_fitted_devices(DeviceProfileFile& profile) {
    std::set<std::string> devices(profile.fitted_on.begin(), profile.fitted_on.end());
    for (const ScopedParameter& p : profile.parameters)
        if (p.scope == ParameterScope::device) devices.insert(p.key);
    profile.fitted_on.assign(devices.begin(), devices.end());
}

void replace_parameters(DeviceProfileFile& profile, std::span<const ScopedParameter> fitted) {
    for (const ScopedParameter& p : fitted) {
        const auto at = std::ranges::lower_bound(profile.parameters, parameter_key(p), {}, parameter_key);
        if (at != profile.parameters.end() && parameter_key(*at) == parameter_key(p)) {
            *at = p;
        } else {
            profile.parameters.insert(at, p);
        }
    }
}

void add_fitted_kernels(DeviceProfileFile& profile, const std::string& slug, Factor kernels) {
    auto at = std::ranges::lower_bound(profile.partly_fitted_on, slug, {}, &PartlyFittedDevice::slug);
    if (at == profile.partly_fitted_on.end() || at->slug != slug) at = profile.partly_fitted_on.insert(at, {slug, {}});
    at->kernels[static_cast<std::size_t>(kernels)] = true;
}

namespace {

/// Reads the kernel of a row from names as a profiler lists them ("volta_sgemm_128x64_tn+splitkreduce_kernel") and its
/// grid ("16x31x10"), whose depth is the parts of a single product's reduction; nullopt outside the chip's catalogues.
std::optional<kernels::gemm::Choice> recorded_kernel(const kernels::GemmShape& shape, const ArchitectureSpec& chip,
                                                     std::string_view kernel_names, std::string_view grid) {
    constexpr std::string_view family = "sgemm_";
    const std::size_t begin = kernel_names.find(family);
    if (begin == kernel_names.npos) return std::nullopt;
    const std::string_view name = kernel_names.substr(begin + family.size());
    std::string tile(name.substr(0, name.find('_')));
    if (name.find("sliced") != name.npos) tile += " sliced";
    const GemmTile* ran = nullptr;
    for (const GemmCatalogue* catalogue : {&chip.layers, &chip.layers_without_lt, &chip.batched})
        for (const GemmCandidate& candidate : catalogue->candidates)
            if (candidate.tile.name == tile) ran = &candidate.tile;
    if (ran == nullptr) return std::nullopt;
    const std::string_view depth = grid.substr(grid.rfind('x') + 1);
    const bool is_swizzled = ran->loop == MainLoop::vector;  // the depth is that of the grid's pairs of rows
    const std::int64_t parts = kernels::gemm::is_batched(shape) || is_swizzled ? 1 : parse_integer(depth).value_or(1);
    return kernels::gemm::Choice{ran, std::max(1.0, static_cast<double>(parts))};
}

void require_conv(const OperatorMeasurement& measured) {
    const auto refuse = [&](const std::string& why) {
        throw Error(ErrorCode::profile, "line " + std::to_string(measured.line) + ": " + why);
    };
    for (const std::string name : {"b", "cin", "cout", "kernel", "hw", "stride", "pad"}) {
        const auto found = measured.shape.find(name);
        if (found == measured.shape.end() || found->second < (name == "pad" ? 0 : 1))
            refuse("a conv row needs a shape with a positive " + name);
    }
    if (std::get<kernels::ConvShape>(*operator_shape(measured)).out_height == 0)
        refuse("the kernel is larger than the padded input");
}

std::optional<RowClass> class_of(const OperatorMeasurement& measured, const KernelShape& shape,
                                 const DeviceSpec& device) {
    const PrecisionSpec& precision = precision_spec(measured.precision);
    const bool is_half = measured.precision == Precision::fp16 || measured.precision == Precision::bf16;
    if (measured.mode != "device_hot") {
        if (std::holds_alternative<kernels::GemmShape>(shape)) return RowClass::gemm;
        if (std::holds_alternative<kernels::ConvShape>(shape)) return RowClass::conv;
        if (std::holds_alternative<kernels::MemoryShape>(shape) && operator_index(measured.op)) return RowClass::memory;
        return std::nullopt;
    }
    if (measured.op == "gemm") {
        if (is_half) return RowClass::tensor_gemm;
        if (precision.quantizes_activations() && runs(device, precision)) return RowClass::quantized;
        return std::nullopt;
    }
    if (std::holds_alternative<kernels::MixtureShape>(shape))
        return runs(device, precision) ? std::optional(RowClass::mixture) : std::nullopt;
    if (!is_half) return std::nullopt;
    if (const auto* attention = std::get_if<kernels::AttentionShape>(&shape)) {
        constexpr std::int64_t widest_head = 256;
        return attention->head_dim <= widest_head ? std::optional(RowClass::attention) : std::nullopt;
    }
    return std::holds_alternative<kernels::MemoryShape>(shape) ? std::optional(RowClass::row_wise) : std::nullopt;
}

}  // namespace

std::string_view name_of(Conditions conditions) {
    constexpr std::array<std::string_view, 4> names = {
        "usual", "layers without cublasLt", "second campaign, other clocks", "start of a campaign, idle clock"};
    return names[static_cast<std::size_t>(conditions)];
}

Conditions conditions_of(std::string_view op, std::string_view slug, std::string_view split, std::int64_t order) {
    struct IdleRows {
        std::string_view device;
        std::int64_t memory, bmm;  ///< first rows of the campaigns of memory-bound operators and of batched products
    };
    constexpr std::array<IdleRows, 5> idle{{{"a100-pcie-40gb", 1500, 600},
                                            {"t4", 1000, 1650},
                                            {"p4", 850, 0},
                                            {"p100-pcie-16gb", 0, 700},
                                            {"v100-pcie-32gb", 0, 300}}};
    if (op == "conv") return Conditions::usual;
    if (split == "test" && is_product(op)) return Conditions::second_campaign;
    const auto* const at = std::ranges::find(idle, slug, &IdleRows::device);
    if (split != "train" || op == "linear" || at == idle.end()) return Conditions::usual;
    return order < (op == "bmm" ? at->bmm : at->memory) ? Conditions::campaign_start : Conditions::usual;
}

std::optional<kernels::ConvAlgorithm> conv_algorithm_from_kernel(std::string_view names) {
    using kernels::ConvAlgorithm;
    const auto has = [&](std::string_view part) { return names.find(part) != names.npos; };
    if (has("winogradForwardData") || has("winogradforwarddata")) return ConvAlgorithm::winograd_nonfused;
    if (has("_winograd_")) return ConvAlgorithm::winograd_fused;
    if (has("fft")) return std::nullopt;
    if (has("scudnn") || has("convolve_sgemm")) return ConvAlgorithm::implicit_gemm;
    return std::nullopt;
}

std::optional<OperatorRow> operator_row(const OperatorMeasurement& measured, const DeviceSpec& device,
                                        std::string_view split, std::string_view grid) {
    if (measured.op == "conv") require_conv(measured);
    const auto shape = operator_shape(measured);
    const auto of = shape ? class_of(measured, *shape, device) : std::nullopt;
    if (!of) return std::nullopt;
    OperatorRow row{.device = &device,
                    .measured = &measured,
                    .of = *of,
                    .op = measured.op,
                    .shape = *shape,
                    .latency_s = measured.latency_s,
                    .order = static_cast<double>(measured.order.value_or(0))};
    if (measured.mode == "device_hot") return row;
    row.conditions = conditions_of(measured.op, device.slug, split, measured.order.value_or(0));
    if (const auto* product = std::get_if<kernels::GemmShape>(&*shape)) {
        if (product->library == kernels::BlasLibrary::cublas) row.conditions = Conditions::without_lt;
        row.ran = recorded_kernel(*product, device.chip(), measured.kernel, grid);
    }
    if (measured.op == "conv") row.algorithm = conv_algorithm_from_kernel(measured.kernel);
    return row;
}

void OperatorRows::add(CsvTable table, const std::vector<std::string>& left_out) {
    const auto& file = files_.emplace_back(read_operator_measurements(std::move(table)));
    for (std::size_t i = 0; i < file.rows.size(); ++i) {
        const OperatorMeasurement& measured = file.rows[i];
        if (!file.problems[i].empty()) continue;
        const DeviceSpec& device = device_spec(measured.gpu);
        if (std::ranges::find(left_out, device.slug) != left_out.end()) continue;
        if (auto row = operator_row(measured, device, file.table.cell(i, "split"), file.table.cell(i, "grid")))
            rows.push_back(std::move(*row));
    }
}

}  // namespace ftax::fit
