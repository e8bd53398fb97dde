#include "calibration/fit/gemm_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <variant>
#include <vector>

#include "calibration/fit/scoped_unknowns.hpp"
#include "predictors/kernels/gemm.hpp"
#include "predictors/kernels/sustained.hpp"
#include "predictors/operator_model.hpp"
#include "src/io/number.hpp"

namespace ftax::fit {
namespace {

using kernels::DeviceRates;
using kernels::GemmParameters;
using kernels::SustainedParameters;

using DeviceRows = std::map<std::string, std::vector<const GemmRow*>>;

enum HostUnknown : std::size_t { host_linear, host_bmm };

/// Blocks: shared, architecture, device, host. A device's block begins with its sustained rates.
enum BlockOrder : std::size_t { of_shared, of_architecture, of_device, of_host };

/// The first shared unknowns are those of a call.
enum CallUnknown : std::size_t { call_power_control, call_launch_share, call_unknowns };

/// Moves `device` behind the sustained rates.
template <class T>
DeviceRates<T> rates_of(const GemmRow& row, const T*& device) {
    SustainedParameters<T> p;
    visit_parameters(p, *row.device, [&](std::string_view, T& value, const ParameterSpec&) { value = *device++; });
    return kernels::device_rates(*row.device, row.path, p);
}

template <class T>
GemmParameters<T> parameters_of(const T* shared, const T* architecture, const T* device) {
    GemmParameters<T> p;
    visit_parameters(p, [&](std::string_view, T& value, const ParameterSpec& spec) {
        switch (spec.scope) {
            case ParameterScope::shared:
                value = *shared++;
                break;
            case ParameterScope::architecture:
                value = *architecture++;
                break;
            case ParameterScope::device:
                value = *device++;
                break;
        }
    });
    return p;
}

template <class T>
const T& host_of(const GemmRow& row, const T* host) {
    return host[row.shape.linear ? host_linear : host_bmm];
}

/// A row whose kernel is chosen.
struct GemmModel {
    const GemmRow* row;
    kernels::gemm::Choice choice;

    template <class T>
    T operator()(T const* const* blocks) const {
        const T* device = blocks[of_device];
        const auto rates = rates_of(*row, device);
        const auto p = parameters_of(blocks[of_shared] + call_unknowns, blocks[of_architecture], device);
        const auto plan = kernels::gemm::plan_choice(row->shape, choice, rates, p);
        const T* call = blocks[of_shared];
        return operator_latency_s(host_of(*row, blocks[of_host]), call[call_launch_share],
                                  kernels::within_power<T>(plan, call[call_power_control]));
    }
};

LogFit::Block declared(ParameterScope scope) {
    LogFit::Block block;
    GemmParameters<double> p;
    visit_parameters(p, [&](std::string_view name, double&, const ParameterSpec& spec) {
        if (spec.scope != scope) return;
        block.push_back(unknown(std::string(name), spec));
    });
    return block;
}

LogFit::Block declared_shared() {
    LogFit::Block block = {{"operator.power_control_time_s", 1e-3, 1e-5, 1e-1, 1.0},
                           {"operator.product_launch_share", 0.7, 0.05, 1, 0.3}};
    for (Unknown& u : declared(ParameterScope::shared)) block.push_back(std::move(u));
    return block;
}

/// Whether the power limit rather than the boost clock sets the rate of a stream of products.
bool is_held_back(const DeviceSpec& device) {
    const double drawn_w = kernels::core_energy_per_flop_j(device) * device.peak(MathPath::fp32).value_or(0);
    return drawn_w > 1.2 * kernels::arithmetic_power_w(device);
}

/// Log standard deviation of the clock at which a kernel starts: the boost clock, give or take what a datasheet rounds.
/// What a power limit takes is not part of it.
constexpr double clock_log_stddev = 0.02;

LogFit::Block declared_device(const DeviceSpec& device) {
    LogFit::Block block;
    SustainedParameters<double> p;
    visit_parameters(p, device, [&](std::string_view name, double&, const ParameterSpec& spec) {
        block.push_back(unknown(std::string(name), spec));
        block.back().fixed = name != "clock.fp32" && name != "bandwidth";
        if (name == "clock.fp32") block.back().prior_log_stddev = clock_log_stddev;
    });
    for (Unknown& u : declared(ParameterScope::device)) block.push_back(std::move(u));
    return block;
}

LogFit::Block declared_host() {
    return {{"operator.dispatch_s.linear", 58e-6, 5e-6, 3e-4, 0.5},
            {"operator.dispatch_s.bmm", 35e-6, 5e-6, 3e-4, 0.5}};
}

ScopedUnknowns unknowns_for(const DeviceRows& rows, const GemmFitOptions& options) {
    ScopedUnknowns unknowns{.shared = declared_shared()};
    for (const auto& [slug, of_device_rows] : rows) {
        const DeviceSpec& device = *of_device_rows.front()->device;
        unknowns.architectures[device.architecture] = declared(ParameterScope::architecture);
        unknowns.devices[slug] = declared_device(device);
        hold(unknowns.devices[slug], options.held, slug);
        unknowns.hosts[slug] = declared_host();
    }
    return unknowns;
}

/// The kernel that cuBLAS would take for a row; rows are of CUDA cores.
kernels::gemm::Choice choose(const GemmRow& row) {
    return kernels::gemm::choose_kernel(row.shape, row.device->chip(), row.device->sms);
}

/// The values of one device's blocks, as a row sees them.
struct DeviceValues {
    std::array<std::vector<double>, 4> blocks;

    DeviceValues(const ScopedUnknowns& unknowns, const DeviceSpec& device)
        : blocks{values(unknowns.shared), values(unknowns.architectures.at(device.architecture)),
                 values(unknowns.devices.at(device.slug)), values(unknowns.hosts.at(device.slug))} {}

    [[nodiscard]] double log_error(const GemmRow& row) const {
        const double* pointers[] = {blocks[0].data(), blocks[1].data(), blocks[2].data(), blocks[3].data()};
        return std::log(GemmModel{&row, choose(row)}(pointers) / row.latency_s);
    }
};

/// Every fourth row is held out when the fold asks for it.
bool is_held_out(std::size_t index) {
    return index % 4 == 3;
}

/// Takes an even selection of the rows that may be fitted, for each operator.
std::vector<const GemmRow*> selection(const std::vector<const GemmRow*>& rows, std::size_t most, bool hold_out) {
    std::array<std::vector<const GemmRow*>, 2> by_operator;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i]->scored_only || (hold_out && is_held_out(i))) continue;
        by_operator[rows[i]->shape.linear ? host_linear : host_bmm].push_back(rows[i]);
    }
    std::vector<const GemmRow*> selected;
    for (const auto& group : by_operator) {
        const std::size_t count = std::min(group.size(), most);
        for (std::size_t i = 0; i < count; ++i) selected.push_back(group[i * group.size() / count]);
    }
    return selected;
}

/// Tells how much of a fitted value is the rows' say rather than its prior's: 0 for none of it, 1 for all.
double evidence(const Unknown& u) {
    if (u.prior_log_stddev <= 0) return 1;
    const double left = u.relative_stddev / u.prior_log_stddev;
    return std::clamp(1 - left * left, 1e-6, 1.0);
}

/// Moves the centres of the architectures' priors to the geometric mean of what their rows show.
void centre_on_mean(std::map<Architecture, LogFit::Block>& centres,
                    const std::map<Architecture, LogFit::Block>& fitted) {
    const std::size_t size = centres.begin()->second.size();
    for (std::size_t i = 0; i < size; ++i) {
        double log_sum = 0, weights = 0;
        for (const auto& [_, block] : fitted) {
            if (block[i].fixed) continue;
            log_sum += evidence(block[i]) * std::log(block[i].value);
            weights += evidence(block[i]);
        }
        for (auto& [_, block] : centres) {
            if (!block[i].fixed) block[i].value = std::exp(log_sum / weights);
        }
    }
}

/// Fits what is not fixed in `unknowns`: in turns fits all times and centres priors on what was found.
FitSummary fit_rows(const DeviceRows& rows, ScopedUnknowns& unknowns, const GemmFitOptions& options, bool hold_out) {
    FitSummary summary;
    ScopedUnknowns centres = unknowns;
    for (int round = 0; round < options.rounds; ++round) {
        FitOptions of_round = options.fit;
        if (round > 0) of_round.starts = 1;
        LogFit fit(of_round);
        const std::size_t shared = fit.add_block(centres.shared);
        std::map<Architecture, std::size_t> architectures;
        for (const auto& [architecture, block] : centres.architectures) {
            architectures[architecture] = fit.add_block(block);
        }
        std::map<std::string, std::pair<std::size_t, std::size_t>> devices;
        for (const auto& [slug, of_device_rows] : rows) {
            const DeviceSpec& device = *of_device_rows.front()->device;
            const auto& [device_block, host_block] =
                devices[slug] = {fit.add_block(centres.devices.at(slug)), fit.add_block(centres.hosts.at(slug))};
            for (const GemmRow* row : selection(of_device_rows, options.rows_per_group, hold_out)) {
                fit.add_row(GemmModel{row, row->ran ? *row->ran : choose(*row)}, row->latency_s,
                            {shared, architectures.at(device.architecture), device_block, host_block});
            }
        }
        summary = fit.solve();
        unknowns.shared = fit.block(shared);
        for (const auto& [architecture, index] : architectures) unknowns.architectures[architecture] = fit.block(index);
        for (const auto& [slug, blocks] : devices) {
            unknowns.devices[slug] = fit.block(blocks.first);
            unknowns.hosts[slug] = fit.block(blocks.second);
        }
        centre_on_mean(centres.architectures, unknowns.architectures);
    }
    return summary;
}

/// Errors by operator and device, of all rows and without those under other conditions.
struct OperatorErrors {
    using ByDevice = std::map<std::string, std::vector<double>>;
    std::map<std::string, ByDevice> all, clean;

    template <class Select>
    void add(const std::vector<const GemmRow*>& rows, const ScopedUnknowns& unknowns, Select select) {
        const DeviceSpec& device = *rows.front()->device;
        const DeviceValues current(unknowns, device);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (!select(i)) continue;
            const std::string op = rows[i]->shape.linear ? "linear" : "bmm";
            const double error = current.log_error(*rows[i]);
            all[op][device.slug].push_back(error);
            if (!rows[i]->scored_only && rows[i]->shape.library == kernels::BlasLibrary::cublas_lt)
                clean[op][device.slug].push_back(error);
        }
    }

    void add(const std::vector<const GemmRow*>& rows, const ScopedUnknowns& unknowns) {
        add(rows, unknowns, [](std::size_t) { return true; });
    }
};

void add_folds(const std::string& name, const OperatorErrors& errors, FitReport& report) {
    const auto add = [&](const std::string& fold_name, const OperatorErrors::ByDevice& by_device) {
        Fold fold{.name = fold_name};
        for (const auto& [slug, of_device_rows] : by_device) {
            fold.groups.push_back(summarize(slug, of_device_rows));
            fold.mean += fold.groups.back().mean / static_cast<double>(by_device.size());
        }
        report.folds.push_back(std::move(fold));
    };
    for (const auto& [op, by_device] : errors.all) add(op + ", " + name, by_device);
    for (const auto& [op, by_device] : errors.clean) {
        add(op + ", " + name + ", without rows under other conditions", by_device);
    }
}

/// Region of a row in which errors are reported: what its time consists of, long reductions apart.
std::string region_of(const GemmRow& row, const DeviceValues& current) {
    const double host = host_of(row, current.blocks[of_host].data());
    if (row.latency_s < 2 * host) return "mostly host";
    const double* device = current.blocks[of_device].data();
    const auto rates = rates_of(row, device);
    const auto plan = kernels::gemm::plan_choice(row.shape, choose(row), rates,
                                                 parameters_of(current.blocks[of_shared].data() + call_unknowns,
                                                               current.blocks[of_architecture].data(), device));
    if (plan.bound() == Bound::memory) return row.shape.k > 8192 ? "memory, k > 8192" : "memory, k <= 8192";
    return plan.waves < 1 ? "arithmetic, less than one wave" : "arithmetic";
}

void add_regions(const DeviceRows& rows, const ScopedUnknowns& unknowns, FitReport& report) {
    std::map<std::string, std::vector<double>> regions;
    for (const auto& [slug, of_device_rows] : rows) {
        const DeviceValues current(unknowns, *of_device_rows.front()->device);
        for (const GemmRow* row : of_device_rows) {
            const std::string name = slug + (row->shape.linear ? " linear, " : " bmm, ");
            const std::string region = row->scored_only                                     ? "other conditions"
                                       : row->shape.library == kernels::BlasLibrary::cublas ? "without cublasLt"
                                                                                            : region_of(*row, current);
            regions[name + region].push_back(current.log_error(*row));
        }
    }
    for (auto& [name, errors] : regions) report.regions.push_back(summarize(name, std::move(errors)));
}

/// Expects of a device by how far the others are from what their datasheets let expect.
LogFit::Block expected_device(const DeviceSpec& wanted, const DeviceRows& others, const ScopedUnknowns& fitted) {
    LogFit::Block block = declared_device(wanted);
    for (std::size_t i = 0; i < block.size(); ++i) {
        double log_sum = 0;
        for (const auto& [slug, of_device_rows] : others) {
            log_sum +=
                std::log(fitted.devices.at(slug)[i].value / declared_device(*of_device_rows.front()->device)[i].value);
        }
        if (!block[i].fixed) block[i].value *= std::exp(log_sum / static_cast<double>(others.size()));
    }
    return block;
}

LogFit::Block expected_host(const DeviceRows& others, const ScopedUnknowns& fitted) {
    LogFit::Block block = declared_host();
    for (std::size_t i = 0; i < block.size(); ++i) {
        double log_sum = 0;
        for (const auto& [slug, _] : others) log_sum += std::log(fitted.hosts.at(slug)[i].value);
        block[i].value = std::exp(log_sum / static_cast<double>(others.size()));
    }
    return block;
}

void fix(LogFit::Block& block) {
    for (Unknown& u : block) u.fixed = true;
}

/// Fixes all but bandwidth and the sustained clock under load: the energy of an operation where a power limit sets it.
void free_sustained_clock(const DeviceSpec& device, ScopedUnknowns& unknowns) {
    const bool held_back = is_held_back(device);
    for (Unknown& u : unknowns.shared) u.fixed = !held_back || u.name != "gemm.energy_scale";
    for (Unknown& u : unknowns.devices.at(device.slug)) {
        u.fixed = u.name != "bandwidth" && (held_back || u.name != "clock.fp32");
    }
}

/// Leaves out one device at a time: nothing known of it; its host's dispatch times, which are no property of the card;
/// then also its sustained clock and bandwidth, two numbers.
void add_left_out_folds(const DeviceRows& rows, const ScopedUnknowns& known, const GemmFitOptions& options,
                        FitReport& report) {
    OperatorErrors blind, host_known, measured;
    for (const auto& [slug, of_device_rows] : rows) {
        DeviceRows others = rows;
        others.erase(slug);
        if (others.empty()) return;
        const DeviceSpec& device = *of_device_rows.front()->device;
        ScopedUnknowns unknowns = unknowns_for(others, options);
        (void)fit_rows(others, unknowns, options, false);
        if (!unknowns.architectures.contains(device.architecture)) {
            unknowns.architectures[device.architecture] =
                block_of_kin(device.architecture, unknowns.architectures, declared(ParameterScope::architecture));
        }
        unknowns.devices[slug] = expected_device(device, others, unknowns);
        unknowns.hosts[slug] = expected_host(others, unknowns);
        blind.add(of_device_rows, unknowns);
        unknowns.hosts[slug] = known.hosts.at(slug);
        host_known.add(of_device_rows, unknowns);

        for (auto& [_, block] : unknowns.architectures) fix(block);
        free_sustained_clock(device, unknowns);
        fix(unknowns.hosts.at(slug));
        ScopedUnknowns own = unknowns;
        std::erase_if(own.architectures, [&](const auto& entry) { return entry.first != device.architecture; });
        (void)fit_rows({{slug, of_device_rows}}, own, options, false);
        measured.add(of_device_rows, own);
    }
    add_folds("left out: datasheet, host of the others", blind, report);
    add_folds("left out: datasheet, host known", host_known, report);
    add_folds("left out: clock and bandwidth measured, host known", measured, report);
}

/// A card's clock is written though rows hardly narrow its prior, the datasheet's: convolutions hold what products
/// showed.
void add_parameters(const LogFit::Block& block, ParameterScope scope, const std::string& key, const std::string& source,
                    double divisor, std::vector<ScopedParameter>& parameters) {
    for (const Unknown& u : block) {
        if (u.fixed || (scope != ParameterScope::device && is_unseen(u))) continue;
        parameters.push_back({{u.name, u.value / divisor, u.relative_stddev, source}, scope, key});
    }
}

void add_all_parameters(const ScopedUnknowns& unknowns, const GemmFitOptions& options, std::size_t rows,
                        FitReport& report) {
    const std::string source = "fitted: linear and bmm rows, " + std::to_string(rows);
    const auto kernels_begin = unknowns.shared.begin() + call_unknowns;
    const LogFit::Block call(unknowns.shared.begin(), kernels_begin);
    const LogFit::Block shared(kernels_begin, unknowns.shared.end());
    add_parameters(call, ParameterScope::shared, "", source, 1, report.nuisance);
    add_parameters(shared, ParameterScope::shared, "", source, 1, report.parameters);
    for (const auto& [architecture, block] : unknowns.architectures) {
        add_parameters(block, ParameterScope::architecture, std::string(name_of(architecture)), source, 1,
                       report.parameters);
    }
    for (const auto& [slug, block] : unknowns.devices) {
        add_parameters(block, ParameterScope::device, slug, source, 1, report.parameters);
    }
    for (const auto& [slug, block] : unknowns.hosts) {
        const auto scale = options.host_scales.find(slug);
        add_parameters(block, ParameterScope::device, slug, source,
                       scale == options.host_scales.end() ? 1 : scale->second, report.nuisance);
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

bool is_unlike_its_campaign(const OperatorMeasurement& measured, std::string_view device_slug, std::string_view split,
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
                                  is_unlike_its_campaign(measured, device.slug, split, order),
                   .ran = recorded_kernel(product, device.chip(), measured.kernel, grid)};
}

FitReport fit_gemm(std::span<const GemmRow> rows, const GemmFitOptions& options) {
    DeviceRows by_device;
    for (const GemmRow& row : rows) by_device[row.device->slug].push_back(&row);
    FitReport report{.kernel_class = "gemm"};
    if (by_device.empty()) return report;

    ScopedUnknowns unknowns = unknowns_for(by_device, options);
    report.converged = fit_rows(by_device, unknowns, options, false).converged;

    OperatorErrors in_fit;
    for (const auto& [_, of_device_rows] : by_device) in_fit.add(of_device_rows, unknowns);
    add_folds("in the fit", in_fit, report);
    add_regions(by_device, unknowns, report);
    if (options.folds) {
        ScopedUnknowns without = unknowns_for(by_device, options);
        (void)fit_rows(by_device, without, options, true);
        OperatorErrors held_out;
        for (const auto& [_, of_device_rows] : by_device) held_out.add(of_device_rows, without, is_held_out);
        add_folds("a quarter held out", held_out, report);
        add_left_out_folds(by_device, unknowns, options, report);
    }
    add_all_parameters(unknowns, options, rows.size(), report);
    return report;
}

}  // namespace ftax::fit
