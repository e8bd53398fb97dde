#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>

#include "ftax/precision.hpp"
#include "ftax/types.hpp"
#include "predictors/kernels/kernel_models.hpp"

namespace ftax {
namespace {

using kernels::ConvAlgorithm;
using kernels::KernelPlan;

std::string slower_by(std::string_view name, double seconds, double chosen_s) {
    return fmt::format("{} {:+.0f} %", name, 100 * (seconds / chosen_s - 1));
}

/// Why a kernel was chosen, and what the next best one would have cost.
std::string reason_of(const kernels::GemmShape& s, const KernelModels& models, MathPath path, const KernelPlan& plan) {
    const auto& rates = models.at(models.path_of(s, path));
    const bool tensor = kernels::tensor_gemm::runs_on_tensor_cores(rates);
    if (plan.algorithm == kernels::tensor_gemm::streamed || (!tensor && kernels::gemm::is_gemv(s, *rates.chip)))
        return "few rows: the weights stream past them once";
    const auto& candidates =
        (tensor ? kernels::tensor_gemm::catalogue(s, *rates.chip) : kernels::gemm::catalogue(s, *rates.chip))
            .candidates;
    if (tensor && s.engine) return fmt::format("least time of {} tiles", candidates.size());
    if (candidates.size() == 1) return "the only tile the library takes for batches here";
    double least_s = std::numeric_limits<double>::infinity();
    std::string_view next;
    const auto block = kernels::gemm::block_rates(rates, models.parameters.gemm);
    for (const GemmCandidate& candidate : candidates) {
        if (candidate.tile.name == plan.tile.name || real(s.m) > candidate.most_rows) continue;
        for (const double split_k : {1.0, plan.split_k}) {
            const kernels::gemm::Choice other{&candidate.tile, split_k};
            const double seconds =
                tensor ? kernels::tensor_gemm::plan_choice(s, other, rates,
                                                           models.quantized(s, models.parameters.tensor_gemm))
                             .seconds
                       : kernels::gemm::plan_choice(s, other, rates, models.parameters.gemm, block).seconds;
            if (seconds >= least_s) continue;
            least_s = seconds;
            next = candidate.tile.name;
        }
    }
    return fmt::format("least {} of {} tiles; as timed, {}", tensor ? "time" : "weighted work", candidates.size(),
                       slower_by(next, least_s, plan.seconds));
}

constexpr std::array core_algorithms{ConvAlgorithm::implicit_gemm, ConvAlgorithm::winograd_fused,
                                     ConvAlgorithm::winograd_nonfused};

/// Whether a convolution of the tensor cores' path runs on CUDA cores all the same.
bool runs_on_cores(const KernelPlan& plan, MathPath path) {
    const auto ran = [&](ConvAlgorithm algorithm) { return plan.algorithm == kernels::name_of(algorithm); };
    return kernels::is_tensor(path) && std::ranges::any_of(core_algorithms, ran);
}

std::string reason_of(const kernels::ConvShape& s, const KernelModels& models, MathPath path, const KernelPlan& plan) {
    const auto counts = kernels::conv_counts(s);
    if (runs_on_cores(plan, path)) {
        const double tensor_s =
            kernels::convolution::plan_tensor_gemm(counts, s, models.at(path), models.parameters.conv).seconds;
        return tensor_s < plan.seconds
                   ? "no room for the tensor cores' kernel"
                   : fmt::format("on CUDA cores; {}", slower_by("tensor-gemm", tensor_s, plan.seconds));
    }
    if (path != MathPath::fp32 || s.groups > 1 || !kernels::is_winograd(s))
        return "the only algorithm for this shape and path";
    if (kernels::convolution::is_named_for_few_channels(s)) return "what cuDNN 7 names for few channels";
    std::string reason = "cheapest;";
    for (const ConvAlgorithm other : core_algorithms) {
        if (other == ConvAlgorithm::winograd_nonfused && s.element_bytes < 4) continue;
        const KernelPlan passed =
            kernels::convolution::plan_algorithm(other, counts, s, models.at(path), models.parameters.conv);
        if (passed.algorithm != plan.algorithm)
            reason += " " + slower_by(passed.algorithm, passed.seconds, plan.seconds);
    }
    return reason;
}

/// Returns the expected number of experts that have some of `tokens` of a text.
double touched_experts(const auto& shape, double tokens) {
    return kernels::mixture::touched_experts(tokens, real(shape.per_token), real(shape.experts),
                                             kernels::mixture::spread_of_texts);
}

std::string reason_of(const kernels::GroupedGemmShape& s, const KernelModels& models, MathPath path,
                      const KernelPlan&) {
    const auto& rates = models.at(path);
    return kernels::tensor_gemm::runs_on_tensor_cores(rates)
               ? fmt::format("{:.0f} of {} experts have rows", touched_experts(s, real(s.rows) / real(s.per_token)),
                             s.experts)
               : "a batch of equal products, one per expert";
}
/// The other kernels leave no choice.
template <class Shape>
std::string reason_of(const Shape&, const KernelModels&, MathPath, const KernelPlan&) {
    if (std::is_same_v<Shape, kernels::MemoryShape>) return "traffic and work of the multiprocessors";
    if (std::is_same_v<Shape, kernels::AttentionShape>) return "as the graph asks";
    if (std::is_same_v<Shape, kernels::MixtureShape>) return "routing, two grouped products and a sum";
    if (std::is_same_v<Shape, kernels::RecurrentShape>) return "the weights of a small state stay on the chip";
    return "the product takes narrower operands than the activations are";
}

double bytes_of(const kernels::QuantizeShape& s) {
    const PrecisionSpec& precision = precision_spec(s.operands);
    return real(s.rows) * real(s.columns) * (bits_of(precision.storage) / 8.0 + precision.activation_bytes());
}
double bytes_of(const kernels::GroupedGemmShape& s) {
    return real(s.rows) * (real(s.k) * activation_bytes(s) + real(s.n) * s.element_bytes) +
           touched_experts(s, real(s.rows) / real(s.per_token)) * real(s.n) * real(s.k) * weight_bytes(s);
}
double bytes_of(const kernels::MixtureShape& s) {
    return 2.0 * real(s.tokens) * real(s.hidden) * s.element_bytes +
           (s.gated ? 3 : 2) * touched_experts(s, real(s.tokens)) * real(s.width) * real(s.hidden) * weight_bytes(s);
}
double bytes_of(const kernels::RecurrentShape& s) {
    return s.element_bytes * (real(s.gates) * real(s.hidden) * real(s.hidden) +
                              real(s.steps) * real(s.batch) * real(s.gates + 1) * real(s.hidden));
}
double bytes_of(const kernels::GemmShape& s) {
    const auto batch = real(s.batch), m = real(s.m), n = real(s.n), k = real(s.k);
    return batch * m * (k * activation_bytes(s) + n * s.element_bytes) +
           (s.linear ? 1 : batch) * k * n * weight_bytes(s);
}
double bytes_of(const kernels::ConvShape& s) {
    const auto counts = kernels::conv_counts(s);
    return counts.in_bytes + counts.out_bytes + counts.weight_bytes;
}
double bytes_of(const kernels::MemoryShape& s) {
    return real(s.read_bytes) + real(s.write_bytes);
}
double bytes_of(const kernels::AttentionShape& s) {
    return s.element_bytes * kernels::attention::elements(s);
}

std::string name_of(const KernelPlan& plan) {
    std::string name(plan.algorithm);
    if (!plan.tile.name.empty()) {
        name += fmt::format(" {}", plan.tile.name);
    } else if (plan.tile.rows > 0) {
        name += fmt::format(" {}x{}", plan.tile.rows, plan.tile.columns);
    }
    if (plan.split_k > 1) name += fmt::format(" split {:.0f}", plan.split_k);
    return name;
}

/// Returns the execution units of a kernel; for copies, which do no arithmetic, the element width.
std::string units_of(const KernelShape& shape, MathPath path) {
    using kernels::MemoryClass;
    const auto* memory = std::get_if<kernels::MemoryShape>(&shape);
    constexpr std::array copies{MemoryClass::copy, MemoryClass::transpose, MemoryClass::gather, MemoryClass::concat};
    if (memory == nullptr || std::ranges::count(copies, memory->cls) == 0) return std::string(name_of(path));
    return fmt::format("{} bit", 8 * memory->element_bytes);
}

}  // namespace

double energy_j(const KernelModels& models, const KernelShape& shape, MathPath path) {
    const double flop_j = models.at(path).energy_per_flop_j;
    return std::visit([&](const auto& s) { return flop_j * kernels::flops(s) + 31e-12 * bytes_of(s); }, shape);
}

KernelDetail kernel_detail(const KernelModels& models, const KernelShape& shape, MathPath path) {
    return std::visit(
        [&](const auto& s) {
            const KernelPlan plan = models.plan(s, path);
            KernelDetail detail{.name = name_of(plan),
                                .path = units_of(shape, runs_on_cores(plan, path) ? MathPath::fp32 : path),
                                .reason = reason_of(s, models, path, plan),
                                .seconds = plan.seconds,
                                .compute_s = plan.compute_s,
                                .memory_s = plan.memory_s,
                                .waves = plan.waves,
                                .flops = kernels::flops(s),
                                .bytes = bytes_of(s),
                                .bound = plan.bound()};
            detail.ridge = models.at(path).flops_per_s / models.at(path).bandwidth_bytes_per_s;
            return detail;
        },
        shape);
}

}  // namespace ftax
