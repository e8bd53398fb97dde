#include "predictors/kernels/kernel_detail.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "ftax/types.hpp"
#include "predictors/kernels/kernel_cost.hpp"

namespace ftax {
namespace {

using kernels::AttentionPath;
using kernels::ConvAlgorithm;
using kernels::MemoryClass;

std::string_view name_of(MemoryClass cls) {
    static constexpr std::array<std::string_view, kernels::memory_class_count> names = {
        "pointwise",  "transcendental", "power", "copy",   "transpose", "reduce", "softmax", "layer-norm",
        "batch-norm", "group-norm",     "pool",  "gather", "concat",    "resize", "sort"};
    return names[static_cast<std::size_t>(cls)];
}

std::string slower_by(std::string_view name, double seconds, double chosen_s) {
    return fmt::format("{} {:+.0f} %", name, 100 * (seconds / chosen_s - 1));
}

/// Fills in what chose the tile and what the next best one would have cost.
void explain_choice(const kernels::GemmShape& s, const KernelModels<double>& models, MathPath path,
                    const kernels::GemmPlan<double>& plan, KernelDetail& detail) {
    const auto& rates = models.at(path);
    const auto& p = models.parameters.gemm;
    if (kernels::gemm::is_gemv(s, rates.architecture, path)) {
        detail.reason = "few rows: the weights stream past them once";
        return;
    }
    const bool batched = kernels::gemm::is_batched(s);
    if (kernels::gemm::has_kernel_without_lt(s, rates.architecture, rates.sms)) {
        detail.reason = "cuBLAS takes it for layers that do not go through cublasLt";
        return;
    }
    const auto tiles = kernels::gemm_tiles(rates.architecture, path, batched);
    if (tiles.size() == 1) {
        detail.reason = "the only tile cuBLAS takes for batches here";
        return;
    }
    double least_s = std::numeric_limits<double>::infinity();
    std::string_view next;
    for (const kernels::GemmTile& tile : tiles) {
        if (tile.name == plan.tile->name) continue;
        const double seconds = kernels::gemm::plan_choice(s, {&tile, 1}, rates, p).seconds;
        if (seconds >= least_s) continue;
        least_s = seconds;
        next = tile.name;
    }
    detail.reason = fmt::format("least {} of {} tiles; as timed, {}",
                                kernels::is_tensor(path) ? "arithmetic and L2 traffic" : "credited work", tiles.size(),
                                slower_by(next, least_s, plan.seconds));
}

KernelDetail detail_of(const KernelModels<double>& models, const kernels::GemmShape& s, MathPath path) {
    const auto plan = kernels::plan_gemm(s, models.at(path), models.parameters.gemm);
    KernelDetail detail{.compute_s = plan.compute_s, .memory_s = plan.memory_s, .waves = plan.waves};
    detail.name = plan.split > 1 ? fmt::format("gemm {} split {:.0f}", plan.tile->name, plan.split)
                                 : fmt::format("gemm {}", plan.tile->name);
    const auto batch = static_cast<double>(s.batch), m = static_cast<double>(s.m), n = static_cast<double>(s.n),
               k = static_cast<double>(s.k);
    detail.flops = 2 * batch * m * n * k;
    detail.bytes = s.element_bytes * (batch * m * (k + n) + (s.linear ? 1 : batch) * k * n);
    explain_choice(s, models, path, plan, detail);
    return detail;
}

KernelDetail detail_of(const KernelModels<double>& models, const kernels::ConvShape& s, MathPath path) {
    const auto& rates = models.at(path);
    const auto& p = models.parameters.conv;
    const auto plan = kernels::plan_conv(s, rates, p);
    const auto counts = kernels::conv_counts(s);
    KernelDetail detail{.compute_s = plan.compute_s, .memory_s = plan.memory_s, .waves = plan.waves};
    const bool tiled = plan.tile.rows > 0;
    detail.name = tiled ? fmt::format("{} {}x{}", kernels::name_of(plan.algorithm), plan.tile.rows, plan.tile.columns)
                        : std::string(kernels::name_of(plan.algorithm));
    detail.flops = 2 * counts.rows * counts.reduction * counts.columns * static_cast<double>(s.groups);
    detail.bytes = counts.in_bytes + counts.out_bytes + counts.weight_bytes;
    if (path != MathPath::fp32 || s.groups > 1 || !kernels::is_winograd(s)) {
        detail.reason = "the only algorithm for this shape and path";
        return detail;
    }
    detail.reason = "cheapest;";
    for (const auto other :
         {ConvAlgorithm::implicit_gemm, ConvAlgorithm::winograd_fused, ConvAlgorithm::winograd_nonfused}) {
        if (other == plan.algorithm || (other == ConvAlgorithm::winograd_nonfused && s.element_bytes < 4)) continue;
        const double seconds = kernels::convolution::plan_algorithm(other, counts, s, rates, p).seconds;
        detail.reason += " " + slower_by(kernels::name_of(other), seconds, plan.seconds);
    }
    return detail;
}

KernelDetail detail_of(const KernelModels<double>& models, const kernels::MemoryShape& s, MathPath) {
    KernelDetail detail{.name = std::string(name_of(s.cls))};
    detail.flops = static_cast<double>(s.elements);
    detail.bytes = static_cast<double>(s.read_bytes + s.write_bytes);
    detail.memory_s = detail.bytes / models.at(MathPath::fp32).bandwidth_bytes_per_s;
    detail.reason = "each operand once; memory is the time at full bandwidth";
    return detail;
}

KernelDetail detail_of(const KernelModels<double>& models, const kernels::AttentionShape& s, MathPath path) {
    KernelDetail detail{.name = s.path == AttentionPath::math               ? "attention, math"
                                : s.path == AttentionPath::memory_efficient ? "attention, memory-efficient"
                                                                            : "attention, flash"};
    const double heads = static_cast<double>(s.batch) * static_cast<double>(s.heads);
    const auto q = static_cast<double>(s.q_length), kv = static_cast<double>(s.kv_length),
               head = static_cast<double>(s.head_dim);
    detail.flops = kernels::attention::flops(s);
    detail.bytes = s.element_bytes * heads * 2 * (q + kv) * head;
    detail.compute_s = detail.flops / models.at(path).flops_per_s;
    detail.memory_s = detail.bytes / models.at(path).bandwidth_bytes_per_s;
    detail.reason = "as the graph asks";
    return detail;
}

}  // namespace

KernelDetail kernel_detail(const KernelModels<double>& models, const KernelShape& shape, MathPath path) {
    return std::visit(
        [&](const auto& s) {
            KernelDetail detail = detail_of(models, s, path);
            const KernelCost cost = kernel_cost(models, s, path);
            detail.path = name_of(path);
            detail.seconds = cost.seconds;
            detail.bound = cost.bound;
            detail.ridge = models.at(path).flops_per_s / models.at(path).bandwidth_bytes_per_s;
            return detail;
        },
        shape);
}

}  // namespace ftax
