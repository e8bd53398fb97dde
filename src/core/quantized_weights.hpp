#pragma once

#include <string_view>

#include "ftax/graph.hpp"

namespace ftax {

/// Attribute of a layer whose weights a checkpoint keeps in a precision of their own: its name (ftax/precision.hpp).
inline constexpr std::string_view weights_attribute = "weights";

/// Attribute of the layer that computes logits: tokens are sampled without top-k and top-p.
inline constexpr std::string_view samples_all_attribute = "samples_all";

/// The half-precision type of a model's weights; f32 where they have none.
[[nodiscard]] inline DType half_type_of_weights(const Graph& graph) {
    for (const Tensor& tensor : graph.tensors) {
        if (tensor.role == TensorRole::weight && (tensor.dtype == DType::f16 || tensor.dtype == DType::bf16))
            return tensor.dtype;
    }
    return DType::f32;
}

}  // namespace ftax
