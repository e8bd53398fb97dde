#include "graphs/short_names.hpp"

#include <fmt/format.h>

namespace ftax {

void shorten_names(Graph& graph) {
    int weights = 0, activations = 0;
    for (Tensor& tensor : graph.tensors) {
        switch (tensor.role) {
            case TensorRole::input:
                break;
            case TensorRole::weight:
            case TensorRole::constant:
                tensor.name = fmt::format("w{}", ++weights);
                break;
            case TensorRole::activation:
                tensor.name = fmt::format("{}", ++activations);
                break;
        }
    }
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
        Op& op = graph.ops[i];
        op.name = op.outputs.empty() ? fmt::format("op{}", i) : graph.tensors[op.outputs[0]].name;
    }
}

}  // namespace ftax
