#include "graphs/ir/splice.hpp"

#include <utility>

namespace ftax {

void splice(Graph& whole, const Graph& part, std::vector<TensorId>& ids, const std::string& path,
            const std::map<std::string, Expression, std::less<>>& sizes, DType own, DType type) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] != no_tensor) continue;
        Tensor tensor = part.tensors[i];
        ids[i] = static_cast<TensorId>(whole.tensors.size());
        for (auto* dims : {&tensor.shape, &tensor.strides})
            for (Expression& e : *dims) e = whole.expressions.import(part.expressions, e, sizes);
        if (tensor.dtype == own) tensor.dtype = type;
        whole.tensors.push_back(std::move(tensor));
    }
    for (const ModuleCall& call : part.module_calls)
        whole.module_calls.push_back({path_below(path, call.path), call.type});
    for (Op op : part.ops) {
        for (std::vector<TensorId>* tensors : {&op.inputs, &op.outputs})
            for (TensorId& id : *tensors) id = ids.at(id);
        for (const TensorId id : op.outputs) whole.tensors[id].producer = static_cast<OpId>(whole.ops.size());
        op.module = path_below(path, op.module);
        whole.ops.push_back(std::move(op));
    }
}

void name_sizes(const Graph& part, std::size_t i, TensorId given, const Graph& whole,
                std::map<std::string, Expression, std::less<>>& sizes) {
    const auto& named = part.tensors[part.inputs[i]].shape;
    for (std::size_t axis = 0; axis < named.size(); ++axis)
        sizes.emplace(part.expressions.to_string(named[axis]), whole.tensors[given].shape.at(axis));
}

}  // namespace ftax
