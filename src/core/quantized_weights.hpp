#pragma once

#include <string_view>

#include "ftax/graph.hpp"

namespace ftax {

/// Attribute of a layer with quantised weights in the checkpoint: name of the precision (ftax/precision.hpp).
inline constexpr std::string_view weights_attribute = "weights";

/// Attribute of the layer that computes logits: tokens are sampled without top-k and top-p.
inline constexpr std::string_view samples_all_attribute = "samples_all";

/// Returns the half-precision type of a model's weights; f32 if there is none.
[[nodiscard]] inline DType half_type_of_weights(const Graph& graph) {
    for (const Tensor& tensor : graph.tensors) {
        if (tensor.role == TensorRole::weight && (tensor.dtype == DType::f16 || tensor.dtype == DType::bf16))
            return tensor.dtype;
    }
    return DType::f32;
}

}  // namespace ftax
