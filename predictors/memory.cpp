#include "predictors/memory.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ftax/precision.hpp"
#include "graphs/ir/operands.hpp"

namespace ftax {
namespace {

class Liveness {
  public:
    Liveness(const Graph& graph, const Schedule& schedule)
        : graph_(graph),
          schedule_(schedule),
          is_cache_(written_weights(graph)),
          root_(graph.tensors.size()),
          last_(graph.tensors.size()) {
        for (TensorId id = 0; id < graph.tensors.size(); ++id) {
            const Tensor& tensor = graph.tensors[id];
            const bool is_given = tensor.role == TensorRole::input || tensor.role == TensorRole::weight;
            is_cache_[id] = is_cache_[id] || (is_given && is_cache_name(tensor.name));
        }
        std::iota(root_.begin(), root_.end(), TensorId{0});
        for (OpId id = 0; id < graph.ops.size(); ++id) visit(id);
        note_narrow_weights();
        for (const TensorId output : graph.outputs) last_[root_[output]] = static_cast<OpId>(graph.ops.size());
        list_steps();
    }

    MemoryUse sum(const BoundShapes& bound) const {
        MemoryUse use;
        double alive = 0;
        for (const Step& step : steps_) {
            const double bytes =
                static_cast<double>(element_count(graph_.tensors[step.tensor], bound)) * step.value_bytes;
            use.weights_bytes += step.weights * bytes;
            use.cache_bytes += step.cache * bytes;
            if (step.cache != 0 && is_state_name(graph_.tensors[step.tensor].name)) use.state_bytes += bytes;
            alive += step.alive * bytes;
            use.activations_bytes = std::max(use.activations_bytes, alive);
        }
        return use;
    }

  private:
    /// How often the bytes of a tensor count from one point of the run on; negative where it is freed.
    struct Step {
        TensorId tensor;
        int weights = 0, cache = 0, alive = 0;
        double value_bytes = 0;
    };

    void add(Step step) {
        const Tensor& tensor = graph_.tensors[step.tensor];
        if (!tensor.known_shape || tensor.role == TensorRole::constant) return;
        const auto narrow = narrow_bytes_.find(step.tensor);
        step.value_bytes =
            narrow != narrow_bytes_.end() ? narrow->second : bits_of(schedule_.storage[step.tensor]) / 8.0;
        steps_.push_back(step);
    }

    void list_steps() {
        std::vector<bool> counted(graph_.tensors.size(), false);
        const auto add_once = [&](const Step& step) {
            if (!counted[step.tensor]) add(step);
            counted[step.tensor] = true;
        };
        for (const TensorId input : graph_.inputs)
            add_once({.tensor = input, .cache = is_cache_[input], .alive = !is_cache_[input]});
        // Lists of the tensors that each operator is the last to read.
        std::vector<TensorId> first_freed(graph_.ops.size() + 1, no_tensor), next_freed(graph_.tensors.size());
        for (OpId id = 0; id < graph_.ops.size(); ++id) {
            const Op& op = graph_.ops[id];
            for (const TensorId input : op.inputs)
                if (input != no_tensor && graph_.tensors[input].role == TensorRole::weight)
                    add_once({.tensor = input, .weights = !is_cache_[input], .cache = is_cache_[input]});
            bool replaced = false;  // the old contents of a growing cache, alive while the operator runs
            for (const TensorId output : op.outputs) {
                const TensorId root = root_[output];
                if (counted[root]) continue;
                if (grows_cache(op)) {
                    replaced = true;
                    add({.tensor = op.inputs[0], .cache = -1, .alive = 1});
                    add_once({.tensor = root, .cache = 1});
                    continue;
                }
                add_once({.tensor = root, .alive = 1});
                next_freed[root] = std::exchange(first_freed[std::max(last_[root], id)], root);
            }
            if (replaced) add({.tensor = op.inputs[0], .alive = -1});
            for (TensorId dead = first_freed[id]; dead != no_tensor; dead = next_freed[dead])
                add({.tensor = dead, .alive = -1});
        }
    }

    void visit(OpId id) {
        const Op& op = graph_.ops[id];
        for (const TensorId input : op.inputs)
            if (input != no_tensor) last_[root_[input]] = id;
        if (is_view(op) && !op.inputs.empty() && op.inputs[0] != no_tensor) {
            for (const TensorId output : op.outputs) root_[output] = root_[op.inputs[0]];
        } else if (op.kind == OpKind::scatter && !scattered(graph_, op).empty()) {
            for (std::size_t i = 0; i < std::min(op.outputs.size(), scatter_bases(op)); ++i)
                if (op.inputs[i] != no_tensor) root_[op.outputs[i]] = root_[op.inputs[i]];
        }
    }

    bool grows_cache(const Op& op) const {
        return op.kind == OpKind::concat && !op.inputs.empty() && op.inputs[0] != no_tensor &&
               graph_.tensors[op.inputs[0]].role == TensorRole::input && is_cache_[op.inputs[0]] &&
               !is_state_name(graph_.tensors[op.inputs[0]].name);
    }

    /// Weights of quantised products are stored with their scales. Embeddings keep their type, also one that a product
    /// reads; files of GGUF quantise them, and heads with more bits are in the mean of the file's.
    void note_narrow_weights() {
        double of_file = 0;  // bytes of a value outside of experts
        for (const Kernel& kernel : schedule_.kernels) {
            const PrecisionSpec& precision = precision_spec(weight_precision(kernel.shape));
            if (!precision.quantizes_weights()) continue;
            const bool head = precision.precision == Precision::q6_k && of_file > 0;
            if (precision.is_of_gguf() && !head) of_file = std::max(of_file, precision.weight_bytes());
            const Op& op = graph_.ops[kernel.op];
            if (op.inputs.size() > 1 && op.inputs[1] != no_tensor)
                narrow_bytes_[root_[op.inputs[1]]] = head ? of_file : precision.weight_bytes();
        }
        if (narrow_bytes_.empty()) return;
        for (const Op& op : graph_.ops) {
            if (op.kind != OpKind::embedding || op.inputs.empty()) continue;
            narrow_bytes_.erase(root_[op.inputs[0]]);
            if (of_file > 0) narrow_bytes_[root_[op.inputs[0]]] = of_file;
        }
    }

    const Graph& graph_;
    const Schedule& schedule_;
    std::vector<bool> is_cache_;                         ///< by name, or as a weight that the run modifies
    std::unordered_map<TensorId, double> narrow_bytes_;  ///< bytes per value of a quantised weight, including its scale
    std::vector<TensorId> root_;                         ///< tensor that owns the storage of each
    std::vector<OpId> last_;                             ///< last operator that reads a storage
    std::vector<Step> steps_;
};

}  // namespace

std::function<MemoryUse(const BoundShapes&)> memory_model(const Graph& graph, const Schedule& schedule,
                                                          const FrameworkModel& framework, const DeviceSpec& device) {
    return [&framework, &device, liveness = Liveness(graph, schedule)](const BoundShapes& bound) {
        MemoryUse use = liveness.sum(bound);
        // cuBLAS 8.1 MiB, from Hopper on 32 MiB, and cublasLt 1 MiB. Source: PyTorch, ATen/cuda/CublasHandlePool.cpp
        // (parseChosenWorkspaceSize), Blas.cpp (CUBLASLT_WORKSPACE_SIZE).
        use.workspace_bytes = is_cpu(device) ? 0 : (device.compute_capability_major >= 9 ? 33 : 9.125) * (1 << 20);
        use.context_bytes = is_cpu(device) ? 0 : framework.context_bytes;
        use.capacity_bytes = device.memory_bytes;
        return use;
    };
}

}  // namespace ftax
