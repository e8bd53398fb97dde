#include <algorithm>
#include <utility>
#include <variant>

#include "calibration/fit/operator_fit.hpp"
#include "calibration/fit/scoped_fit.hpp"
#include "predictors/kernels/gemm.hpp"
#include "predictors/operator_model.hpp"
#include "src/io/number.hpp"

namespace ftax::fit {
namespace {

/// The first shared unknowns belong to the call.
enum CallUnknown : std::size_t { call_power_control, call_launch_share, call_unknowns };
enum HostUnknown : std::size_t { host_linear, host_bmm };

/// Whether the power limit rather than the boost clock sets the rate of a stream of products.
bool is_power_limited(const DeviceSpec& device) {
    const double drawn_w = kernels::core_energy_per_flop_j(device) * device.peak(MathPath::fp32).value_or(0);
    return drawn_w > 1.2 * kernels::arithmetic_power_w(device);
}

/// Log standard deviation of the clock at which a kernel starts: the boost clock within the rounding of a datasheet,
/// before a power limit lowers it.
constexpr double clock_log_stddev = 0.02;

LogFit::Block declared_device(const DeviceSpec& device) {
    LogFit::Block block = declared_sustained(device, {"clock.fp32", "bandwidth"});
    for (Unknown& u : block) {
        if (u.name == "clock.fp32") u.prior_log_stddev = clock_log_stddev;
    }
    return block;
}

double latency_s(const GemmRow& row, const kernels::gemm::Choice& choice, ScopedValues values) {
    const double* call = std::exchange(values.shared, values.shared + call_unknowns);
    const auto rates = take_rates(*row.device, row.path, values);
    const auto plan = kernels::gemm::plan_choice(row.shape, choice, rates, take<kernels::GemmParameters>(values));
    return operator_latency_s(values.host[row.shape.linear ? host_linear : host_bmm], call[call_launch_share],
                              kernels::within_power(plan, call[call_power_control]));
}

/// Frees bandwidth and the sustained clock under load: the energy of an operation where a power limit sets it.
void free_sustained_clock(const DeviceSpec& device, ScopedUnknowns& unknowns) {
    const bool power_limited = is_power_limited(device);
    for (Unknown& u : unknowns.shared) u.fixed = !power_limited || u.name != "gemm.energy_scale";
    for (Unknown& u : unknowns.devices.at(device.slug)) {
        u.fixed = u.name != "bandwidth" && (power_limited || u.name != "clock.fp32");
    }
}

/// Reads the kernel of a row from names as a profiler lists them ("volta_sgemm_128x64_tn+splitkreduce_kernel") and its
/// grid ("16x31x10"), whose depth is the parts of a single product's reduction; nullopt for a kernel that the chip's
/// catalogues lack.
std::optional<kernels::gemm::Choice> recorded_kernel(const kernels::GemmShape& shape, const ArchitectureSpec& chip,
                                                     std::string_view kernel_names, std::string_view grid) {
    constexpr std::string_view family = "sgemm_";
    const std::size_t begin = kernel_names.find(family);
    if (begin == kernel_names.npos) return std::nullopt;
    const std::string_view name = kernel_names.substr(begin + family.size());
    std::string tile(name.substr(0, name.find('_')));
    if (name.find("sliced") != name.npos) tile += " sliced";
    const GemmTile* ran = nullptr;
    for (const GemmCatalogue* catalogue : {&chip.layers, &chip.layers_without_lt, &chip.batched}) {
        for (const GemmCandidate& candidate : catalogue->candidates) {
            if (candidate.tile.name == tile) ran = &candidate.tile;
        }
    }
    if (ran == nullptr) return std::nullopt;
    const std::string_view depth = grid.substr(grid.rfind('x') + 1);
    const bool is_swizzled = ran->loop == MainLoop::vector;  // the depth is that of the grid's pairs of rows
    const std::int64_t parts = kernels::gemm::is_batched(shape) || is_swizzled ? 1 : parse_integer(depth).value_or(1);
    return kernels::gemm::Choice{ran, std::max(1.0, static_cast<double>(parts))};
}

}  // namespace

bool is_outlier_row(const OperatorMeasurement& measured, std::string_view device_slug, std::string_view split,
                    std::int64_t order) {
    if (split == "test") return true;
    if (measured.op != "bmm") return false;
    if (device_slug == "a100-pcie-40gb") return order < 600;
    if (device_slug == "t4") return order < 1650;
    if (device_slug == "p100-pcie-16gb") return order < 700;
    if (device_slug == "v100-pcie-32gb") return order < 300;
    return false;
}

std::optional<GemmRow> gemm_row(const OperatorMeasurement& measured, const DeviceSpec& device, std::string_view split,
                                std::int64_t order, std::string_view grid) {
    const auto shape = operator_shape(measured);
    if (!shape || !std::holds_alternative<kernels::GemmShape>(*shape)) return std::nullopt;
    const auto& product = std::get<kernels::GemmShape>(*shape);
    return GemmRow{.device = &device,
                   .shape = product,
                   .latency_s = measured.latency_s,
                   .scored_only = product.library == kernels::BlasLibrary::cublas_lt &&
                                  is_outlier_row(measured, device.slug, split, order),
                   .ran = recorded_kernel(product, device.chip(), measured.kernel, grid)};
}

FitReport fit_gemm(std::span<const GemmRow> rows, const GemmFitOptions& options) {
    ScopedFit fit{.kernel_class = "gemm",
                  .rows_name = "linear and bmm rows",
                  .options = options.fit,
                  .rows_per_stratum = options.rows_per_group,
                  .rounds = options.rounds,
                  .centre = Centre::mean,
                  .folds = options.folds,
                  .held = options.held};
    fit.shared = {{"operator.power_control_time_s", 1e-3, 1e-5, 1e-1, 1.0},
                  {"operator.product_launch_share", 0.7, 0.05, 1, 0.3}};
    for (Unknown& u : declared<kernels::GemmParameters>(ParameterScope::shared)) fit.shared.push_back(std::move(u));
    fit.architecture = declared<kernels::GemmParameters>(ParameterScope::architecture);
    fit.device = declared_device;
    fit.host = {{"operator.dispatch_s.linear", 58e-6, 5e-6, 3e-4, 0.5},
                {"operator.dispatch_s.bmm", 35e-6, 5e-6, 3e-4, 0.5}};
    std::vector<kernels::gemm::Choice> chosen;  // the kernels that cuBLAS would take
    std::map<std::string, std::size_t> places;  // next row of each device
    for (const GemmRow& row : rows) {
        chosen.push_back(kernels::gemm::choose_kernel(row.shape, row.device->chip(), row.device->sms));
        const std::string op = row.shape.linear ? "linear" : "bmm";
        fit.rows.push_back({.device = row.device,
                            .latency_s = row.latency_s,
                            .stratum = op,
                            .fold_class = op,
                            .fitted = !row.scored_only,
                            .usual = !row.scored_only && row.shape.library == kernels::BlasLibrary::cublas_lt,
                            .held_out = places[row.device->slug]++ % 4 == 3});
    }
    fit.latency_s = [&](std::size_t i, const ScopedValues& values, bool scored) {
        const GemmRow& row = rows[i];
        return latency_s(row, row.ran && !scored ? *row.ran : chosen[i], values);
    };
    fit.held_out_fold = "a quarter held out";
    fit.usual_suffix = "without rows under other conditions";
    fit.left_out_folds = {{"left out: datasheet, host of the others"},
                          {"left out: datasheet, host known", LeftOutFold::Device::expected, true},
                          {"left out: clock and bandwidth measured, host known", LeftOutFold::Device::refitted, true}};
    fit.expects_device_of_others = true;
    fit.prepare_refit = free_sustained_clock;

    auto [report, unknowns] = solve(fit);
    // A card's clock is written though rows hardly narrow its prior: convolutions keep what products showed.
    add_parameters(fit, unknowns, report, true);
    for (const auto& [slug, block] : unknowns.hosts) {
        const auto scale = options.host_scales.find(slug);
        add_parameters(block, ParameterScope::device, slug, source_of(fit), report,
                       scale == options.host_scales.end() ? 1 : scale->second, true);
    }
    return report;
}

}  // namespace ftax::fit
