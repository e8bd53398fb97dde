#include "predictors/lowering/launch_rules.hpp"

#include <algorithm>
#include <array>

#include "src/core/rewriting/graph_edits.hpp"

namespace ftax {
namespace {

using kernels::MemoryClass;

using Action = LaunchRule::Action;
constexpr std::array<LaunchRule, op_kind_count> rules{{
    {OpKind::conv, Action::contract, HostKind::conv},
    {OpKind::conv_transpose, Action::contract, HostKind::conv},
    {OpKind::linear, Action::contract, HostKind::gemm},
    {OpKind::matmul, Action::contract, HostKind::bmm},
    {OpKind::attention, Action::contract, HostKind::bmm},
    {OpKind::recurrent, Action::contract, HostKind::conv},
    {OpKind::batch_norm, Action::move, HostKind::batch_norm, MemoryClass::batch_norm},
    {OpKind::layer_norm, Action::move, HostKind::layer_norm, MemoryClass::layer_norm},
    {OpKind::group_norm, Action::move, HostKind::batch_norm, MemoryClass::group_norm},
    {OpKind::instance_norm, Action::move, HostKind::batch_norm, MemoryClass::group_norm},
    {OpKind::rms_norm, Action::move, HostKind::layer_norm, MemoryClass::layer_norm},
    {OpKind::local_response_norm, Action::move, HostKind::layer_norm, MemoryClass::group_norm},
    {OpKind::softmax, Action::move, HostKind::elementwise, MemoryClass::softmax},
    {OpKind::log_softmax, Action::move, HostKind::elementwise, MemoryClass::softmax},
    {OpKind::pointwise, Action::move},
    {OpKind::cast, Action::move},
    {OpKind::reduce, Action::move, HostKind::elementwise, MemoryClass::reduce},
    {OpKind::cumulative, Action::move, HostKind::elementwise, MemoryClass::sort},
    {OpKind::sort, Action::move, HostKind::elementwise, MemoryClass::sort},
    {OpKind::pool, Action::move, HostKind::elementwise, MemoryClass::pool},
    {OpKind::global_pool, Action::move, HostKind::elementwise, MemoryClass::reduce},
    {OpKind::resize, Action::move, HostKind::elementwise, MemoryClass::resize},
    {OpKind::embedding, Action::move, HostKind::elementwise, MemoryClass::gather},
    {OpKind::gather, Action::move, HostKind::elementwise, MemoryClass::gather},
    {OpKind::scatter, Action::move, HostKind::elementwise, MemoryClass::gather},
    {OpKind::reshape, Action::view, HostKind::view},
    {OpKind::transpose, Action::view, HostKind::view, MemoryClass::transpose},
    {OpKind::slice, Action::view, HostKind::view, MemoryClass::copy},
    {OpKind::split, Action::view, HostKind::view, MemoryClass::copy},
    {OpKind::expand, Action::view, HostKind::view, MemoryClass::copy},
    {OpKind::concat, Action::move, HostKind::elementwise, MemoryClass::concat},
    {OpKind::pad, Action::move, HostKind::elementwise, MemoryClass::transpose},
    {OpKind::copy, Action::move, HostKind::elementwise, MemoryClass::transpose},
    {OpKind::fill, Action::move, HostKind::elementwise, MemoryClass::copy},
    {OpKind::fft, Action::move, HostKind::gemm, MemoryClass::transpose},
    {OpKind::quantize, Action::move},
    {OpKind::dequantize, Action::move},
    {OpKind::nonzero, Action::wait, HostKind::synchronize, MemoryClass::reduce},
    {OpKind::to_host, Action::wait, HostKind::synchronize, MemoryClass::copy},
    {OpKind::shape, Action::nothing},
    {OpKind::identity, Action::view, HostKind::view},
    {OpKind::all_reduce, Action::move, HostKind::elementwise, MemoryClass::copy},
    {OpKind::control, Action::nothing},
    {OpKind::custom, Action::move},
}};

// One for each kind, in their order.
static_assert(std::ranges::adjacent_find(rules, std::ranges::greater_equal{}, &LaunchRule::kind) == rules.end());

}  // namespace

const LaunchRule& launch_rule(OpKind kind) noexcept {
    return rules[static_cast<std::size_t>(kind)];
}

bool scales_channels(const Op& op) {
    return op.kind == OpKind::batch_norm && op.integer("training", 0) == 0;
}

MemoryClass memory_class(const Op& op) {
    if (op.kind == OpKind::batch_norm && !scales_channels(op)) return MemoryClass::group_norm;
    if (computes(op, "pow")) return MemoryClass::power;
    // Functions with significant arithmetic compared with their traffic.
    if (computes(op, "exp", "log", "tanh", "sigmoid", "gelu", "erf", "div", "sqrt", "rsqrt", "silu", "mish", "softplus",
                 "elu", "selu", "sin", "cos", "atan", "hardsigmoid", "log1p"))
        return MemoryClass::transcendental;
    return launch_rule(op.kind).memory_class;
}

}  // namespace ftax
