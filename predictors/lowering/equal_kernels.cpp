#include "predictors/lowering/equal_kernels.hpp"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

namespace ftax {
namespace {

/// Compares everything that kernel_shape() and is_launched() read from a kernel, its operator and their tensors.
class KernelComparison {
  public:
    KernelComparison(const Graph& graph, const Schedule& schedule) : graph_(graph), schedule_(schedule) {}

    [[nodiscard]] bool equal(std::uint32_t first, std::uint32_t second) const {
        const Kernel& a = schedule_.kernels[first];
        const Kernel& b = schedule_.kernels[second];
        return a.cls == b.cls && a.memory_class == b.memory_class && a.path == b.path && a.condition == b.condition &&
               a.conv_library == b.conv_library && a.conv_workspace_bytes == b.conv_workspace_bytes &&
               a.cublas_lt_limit == b.cublas_lt_limit && a.engine == b.engine && a.whole_heads == b.whole_heads &&
               a.part == b.part && a.longest == b.longest && a.older_blas == b.older_blas && a.torch == b.torch &&
               a.cudnn_attention == b.cudnn_attention && a.row_bytes_per_cycle == b.row_bytes_per_cycle &&
               a.operands == b.operands && a.wide_activations == b.wide_activations &&
               a.dot_products == b.dot_products && a.lookup == b.lookup &&
               a.divides_coordinates == b.divides_coordinates && a.written_type == b.written_type &&
               equal(a.reads, b.reads) && equal(a.writes, b.writes) && equal_operators(a.op, b.op);
    }

    /// Hash of the accessed dimensions; equal kernels have equal hashes.
    [[nodiscard]] std::size_t hash(std::uint32_t kernel) const {
        std::size_t sum = 0;
        for (const auto* list : {&schedule_.kernels[kernel].reads, &schedule_.kernels[kernel].writes}) {
            for (const TensorId id : *list) {
                for (const Expression dim : graph_.tensors[id].shape) sum = sum * 31 + dim.id;
            }
        }
        return sum;
    }

  private:
    [[nodiscard]] bool equal(const std::vector<TensorId>& a, const std::vector<TensorId>& b) const {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                          [&](TensorId x, TensorId y) { return equal_tensors(x, y); });
    }

    [[nodiscard]] bool equal_tensors(TensorId first, TensorId second) const {
        if (first == second) return true;
        if (first == no_tensor || second == no_tensor) return false;
        const Tensor& a = graph_.tensors[first];
        const Tensor& b = graph_.tensors[second];
        return schedule_.storage[first] == schedule_.storage[second] && a.role == b.role &&
               a.known_shape == b.known_shape && a.shape == b.shape && a.strides == b.strides;
    }

    [[nodiscard]] bool equal_operators(OpId first, OpId second) const {
        if (first == second) return true;
        const Op& a = graph_.ops[first];
        const Op& b = graph_.ops[second];
        return a.kind == b.kind && equal(a.inputs, b.inputs) && equal(a.outputs, b.outputs) &&
               a.attributes == b.attributes;
    }

    const Graph& graph_;
    const Schedule& schedule_;
};

}  // namespace

std::vector<std::uint32_t> first_equal_kernels(const Graph& graph, const Schedule& schedule) {
    const KernelComparison comparison(graph, schedule);
    const auto hash = [&](std::uint32_t kernel) { return comparison.hash(kernel); };
    const auto equal = [&](std::uint32_t a, std::uint32_t b) { return comparison.equal(a, b); };
    const auto count = static_cast<std::uint32_t>(schedule.kernels.size());
    std::unordered_set<std::uint32_t, decltype(hash), decltype(equal)> different(count, hash, equal);
    std::vector<std::uint32_t> first(count);
    for (std::uint32_t kernel = 0; kernel < count; ++kernel) first[kernel] = *different.insert(kernel).first;
    return first;
}

std::vector<std::uint32_t> first_equal_launches(const Graph& graph, const Schedule& schedule,
                                                const std::vector<std::uint32_t>& first_equal_kernels) {
    std::map<std::vector<std::uint32_t>, std::uint32_t> different;
    std::vector<std::uint32_t> first(schedule.launches.size());
    for (std::uint32_t i = 0; i < first.size(); ++i) {
        const Launch& launch = schedule.launches[i];
        first[i] = i;
        if (launch.on_host) continue;
        std::vector<std::uint32_t> key{static_cast<std::uint32_t>(launch.host_kind), launch.module_calls,
                                       launch.list_parts, static_cast<std::uint32_t>(launch.blas_call),
                                       launch.further_calls};
        if (launch.blas_call == BlasCall::at_batch_one)
            key.push_back(graph.tensors[graph.ops[launch.op].inputs[0]].shape[0].id);
        for (std::uint32_t k = 0; k < launch.kernel_count; ++k)
            key.push_back(first_equal_kernels[launch.first_kernel + k]);
        first[i] = different.try_emplace(std::move(key), i).first->second;
    }
    return first;
}

}  // namespace ftax
