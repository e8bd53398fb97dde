#include "predictors/lowering/launch_rules.hpp"

#include <vector>

#include "graphs/base/data_rows.hpp"
#include "graphs/base/embedded.hpp"
#include "graphs/base/named.hpp"
#include "graphs/ir/rewriting/graph_edits.hpp"

namespace ftax {
namespace {

using kernels::MemoryClass;

std::vector<LaunchRule> read_launch_rules() {
    const auto hosts = by_name<HostKind>(FTAX_NAMED(HostKind::conv, HostKind::gemm, HostKind::bmm, HostKind::batch_norm,
                                                    HostKind::layer_norm, HostKind::elementwise, HostKind::view,
                                                    HostKind::synchronize));
    const auto classes = by_name<MemoryClass>(FTAX_NAMED(
        MemoryClass::pointwise, MemoryClass::copy, MemoryClass::transpose, MemoryClass::reduce, MemoryClass::softmax,
        MemoryClass::layer_norm, MemoryClass::batch_norm, MemoryClass::group_norm, MemoryClass::pool,
        MemoryClass::gather, MemoryClass::concat, MemoryClass::resize, MemoryClass::sort));
    std::vector<LaunchRule> rules(op_kind_count);
    for_each_data_row(embedded_text("data/operator_kinds.tsv"), [&](DataRow row) {
        LaunchRule& rule = rules[static_cast<std::size_t>(op_kind_from_name(row.text()).value())];
        for (int of_work = 0; of_work < 2; ++of_work) static_cast<void>(row.text());
        rule.action = row.choice<LaunchRule::Action>("contract move view wait nothing");
        rule.host_kind = hosts.at(row.text());
        rule.memory_class = classes.at(row.text());
    });
    return rules;
}

}  // namespace

const LaunchRule& launch_rule(OpKind kind) {
    static const std::vector<LaunchRule> rules = read_launch_rules();
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
