#include "predictors/lowering/kernel_shapes.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <tuple>

#include "graphs/base/checked_math.hpp"
#include "graphs/ir/operands.hpp"
#include "predictors/kernels/bound_kernel.hpp"

namespace ftax {

KernelShape kernel_shape(const Graph& graph, const Schedule& schedule, const Kernel& kernel, const BoundShapes& bound) {
    KernelShape shape = kernel.shape;
    const BoundKernel operands{graph, schedule.storage, schedule.weight_bytes, kernel, bound};
    std::visit([&](auto& s) { bind_dimensions(s, operands); }, shape);
    return shape;
}

bool is_launched(const Graph& graph, const Kernel& kernel, const BoundShapes& bound) {
    if (kernel.when == LaunchCondition::always) return true;
    const Op& op = graph.ops[kernel.op];
    const Tensor& result = graph.tensors[op.outputs[0]];
    const auto read = [&]() -> const Tensor& { return graph.tensors[kernel.reads[0]]; };
    switch (kernel.when) {
        case LaunchCondition::always:
            return true;
        case LaunchCondition::unless_viewable:
            return !is_viewable(read(), graph.tensors[kernel.writes[0]], bound);
        case LaunchCondition::unless_contiguous:
            return !is_contiguous(graph.tensors[op.inputs[0]], bound);
        case LaunchCondition::unless_in_format_of_result:
            return is_channels_last(result, bound) ? !is_channels_last(read(), bound) : !is_contiguous(read(), bound);
        case LaunchCondition::within_longest:
        case LaunchCondition::beyond_longest: {
            const std::int64_t length =
                std::max(dim(graph.tensors[op.inputs[0]], bound, -2), dim(graph.tensors[op.inputs[1]], bound, -2));
            return (length <= kernel.longest) == (kernel.when == LaunchCondition::within_longest);
        }
        case LaunchCondition::beyond_few_rows:
            return element_count(result, bound) > kernel.longest * dim(result, bound, -1);
        case LaunchCondition::unless_batch_merges:
            return !leading_dims_merge(read(), bound);
    }
    return true;
}

std::int64_t repetitions(const Graph& graph, const Kernel& kernel, const BoundShapes& bound) {
    const Op& op = graph.ops[kernel.op];
    if (op.kind != OpKind::recurrent || kernel.part == OperatorPart::whole) return 1;
    const RecurrentDimensions d = recurrent_dimensions(graph, op, bound);
    if (kernel.part == OperatorPart::later_input_products) return d.layers - 1;
    if (kernel.part == OperatorPart::steps) return checked_multiply(d.layers, d.directions);
    const bool each_step = kernel.part == OperatorPart::state_product || kernel.part == OperatorPart::state_update;
    return each_step ? checked_multiply(checked_multiply(d.steps, d.layers), d.directions) : 1;
}

std::vector<CountedKernel> list_kernels(const Graph& graph, const Schedule& schedule, const BoundShapes& bound) {
    std::vector<CountedKernel> listed;
    for (const Kernel& kernel : schedule.kernels) {
        if (!is_launched(graph, kernel, bound)) continue;
        const auto count = static_cast<double>(repetitions(graph, kernel, bound));
        const KernelShape shape = kernel_shape(graph, schedule, kernel, bound);
        const auto same = std::ranges::find_if(
            listed, [&](const CountedKernel& other) { return other.path == kernel.path && other.shape == shape; });
        if (same == listed.end()) {
            listed.push_back({shape, kernel.path, count});
        } else {
            same->count += count;
        }
    }
    return listed;
}

namespace {

/// Returns, for each of `count` things, the first one that equals it, possibly itself.
template <class Hash, class Equal>
std::vector<std::uint32_t> first_equal(std::size_t count, const Hash& hash, const Equal& equal) {
    constexpr std::uint32_t none = ~std::uint32_t{0};
    std::vector<std::uint32_t> first(count), table(std::bit_ceil(2 * count + 1), none);
    for (std::uint32_t i = 0; i < count; ++i) {
        std::size_t at = hash(i) % table.size();
        while (table[at] != none && !equal(table[at], i)) at = (at + 1) % table.size();
        if (table[at] == none) table[at] = i;
        first[i] = table[at];
    }
    return first;
}

std::size_t mixed(std::size_t hash, std::size_t value) {
    return (hash ^ value) * 0x9E3779B97F4A7C15 >> 7;
}

}  // namespace

// Tensors are equal in the fields that binding reads; operators and kernels are equal if their operands are.
std::vector<std::uint32_t> first_equal_kernels(const Graph& graph, const Schedule& schedule) {
    const auto tensors = first_equal(
        graph.tensors.size(),
        [&](TensorId id) {
            auto hash = static_cast<std::size_t>(schedule.storage[id]);
            for (const Expression dim : graph.tensors[id].shape) hash = mixed(hash, dim.id);
            return hash;
        },
        [&](TensorId first, TensorId second) {
            const Tensor &a = graph.tensors[first], &b = graph.tensors[second];
            return schedule.storage[first] == schedule.storage[second] && a.known_shape == b.known_shape &&
                   a.shape == b.shape && a.strides == b.strides;
        });
    const auto place = [&](TensorId id) { return id == no_tensor ? id : tensors[id]; };
    const auto alike = [&](const auto& a, const auto& b) { return std::ranges::equal(a, b, {}, place, place); };
    const auto hash_of = [&](std::size_t hash, const std::vector<TensorId>& ids) {
        for (const TensorId id : ids) hash = mixed(hash, place(id));
        return hash;
    };
    const auto ops = first_equal(
        graph.ops.size(),
        [&](OpId id) { return hash_of(static_cast<std::size_t>(graph.ops[id].kind), graph.ops[id].inputs); },
        [&](OpId first, OpId second) {
            const Op &a = graph.ops[first], &b = graph.ops[second];
            return a.kind == b.kind && alike(a.inputs, b.inputs) && alike(a.outputs, b.outputs) &&
                   a.attributes == b.attributes;
        });
    return first_equal(
        schedule.kernels.size(),
        [&](std::uint32_t i) { return hash_of(ops[schedule.kernels[i].op], schedule.kernels[i].writes); },
        [&](std::uint32_t first, std::uint32_t second) {
            // Names every member: a new one does not compile without its comparison.
            const auto& [shape, path, when, longest, part, op, reads, writes, strided, type] = schedule.kernels[first];
            const Kernel& b = schedule.kernels[second];
            return ops[op] == ops[b.op] && path == b.path && when == b.when && longest == b.longest && part == b.part &&
                   type == b.written_type && place(strided) == place(b.strided_read) && alike(reads, b.reads) &&
                   alike(writes, b.writes) && shape == b.shape;
        });
}

std::vector<std::uint32_t> first_equal_launches(const Graph& graph, const Schedule& schedule,
                                                const std::vector<std::uint32_t>& first_equal_kernels) {
    const std::vector<Launch>& all = schedule.launches;
    const auto key_of = [&](const Launch& launch) {
        const bool depends = launch.blas_call == BlasCall::at_batch_one;
        const auto batch = depends ? graph.tensors[graph.ops[launch.op].inputs[0]].shape[0].id : 0;
        return std::tuple(launch.host_kind, launch.module_calls, launch.list_parts, launch.blas_call,
                          launch.further_calls, batch);
    };
    const auto kernels_of = [&](const Launch& launch) {
        return std::span(first_equal_kernels).subspan(launch.first_kernel, launch.kernel_count);
    };
    std::vector<std::uint32_t> launches = first_equal(
        all.size(),
        [&](std::uint32_t i) {
            std::size_t hash = all[i].on_host ? i : static_cast<std::size_t>(all[i].host_kind);
            for (const std::uint32_t kernel : kernels_of(all[i])) hash = mixed(hash, kernel);
            return hash;
        },
        [&](std::uint32_t a, std::uint32_t b) {
            return !all[a].on_host && !all[b].on_host && key_of(all[a]) == key_of(all[b]) &&
                   std::ranges::equal(kernels_of(all[a]), kernels_of(all[b]));
        });
    for (std::uint32_t& launch : launches) ++launch;
    launches.insert(launches.begin(), 0);
    return launches;
}

}  // namespace ftax
